"""What could stand at a mask, asked of the Keras model."""

import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.serving.fill_mask import FillMask, fill_mask
from keras_bert_impl.serving.loaded_model import LoadedMaskedLM


@pytest.fixture(scope="module")
def ask(small_run):
    return FillMask(small_run)


def test_answers_are_the_models_likeliest_tokens(ask, small_run, small_tokenizer):
    text = "the [MASK] sat on the [MASK]"
    [answer] = ask([text], top=4)
    ids = [2, *small_tokenizer.encode_ids(text), 3]
    inputs = {
        "token_ids": np.int32([ids]),
        "segment_ids": np.zeros((1, len(ids)), "int32"),
        "padding_mask": np.ones((1, len(ids)), "int32"),
        "mask_positions": np.int32([[2, 6]]),
    }
    logits = BertPretrainer.from_pretrained(small_run / "model").predict(inputs, verbose=0)["mlm_logits"][0]
    for candidates, row in zip(answer, logits, strict=True):
        best = np.argsort(-row)[:4]
        assert [candidate["token_id"] for candidate in candidates] == best.tolist()
        tokens = [small_tokenizer.vocabulary[i] if i < small_tokenizer.vocab_size else "" for i in best]
        assert [candidate["token"] for candidate in candidates] == tokens
        probabilities = np.exp(row) / np.exp(row).sum()
        np.testing.assert_allclose([c["probability"] for c in candidates], probabilities[best], rtol=1e-4)


def test_answers_keep_the_order_of_the_texts_and_do_not_depend_on_neighbours(ask):
    texts = ["[MASK]", "the cat sat on the mat [MASK] and [MASK]", "a [MASK] dog"] * 12
    together = ask(texts, top=3)
    alone = [ask([text], top=3)[0] for text in texts[:3]]
    assert [len(answer) for answer in together] == [1, 2, 1] * 12
    for answer, expected in zip(together, alone * 12, strict=True):
        assert [[c["token_id"] for c in mask] for mask in answer] == [
            [c["token_id"] for c in mask] for mask in expected
        ]


def test_no_texts_have_no_answers(ask):
    assert ask([]) == []


@pytest.mark.parametrize(
    ("texts", "top", "message"),
    [
        (["a [MASK]", "no mask here"], 5, r"`texts` must each have a \[MASK\]. Received: 'no mask here'"),
        (["a " * 23 + "[MASK]"], 5, "`texts` must be of at most 22 pieces. Received: 24 pieces, 'a a a"),
        ("a [MASK]", 5, r"`texts` must be a list of texts. Received: 'a \[MASK\]'"),
        (["[MASK]"], 0, "`top` must be at least 1 and at most .*Received: top=0"),
        (["[MASK]"], 1000, "`top` must be at least 1 and at most .*Received: top=1000"),
    ],
)
def test_each_wrong_argument_has_its_sentence(ask, texts, top, message):
    with pytest.raises(InputError, match=message):
        ask(texts, top=top)


def test_a_path_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"`model` must be a model directory .* or a run directory that has one in it"):
        fill_mask(tmp_path, ["[MASK]"])


def test_a_vocabulary_larger_than_the_models_is_refused(small_run, small_tokenizer, tmp_path):
    for file in (small_run / "model").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    with (tmp_path / "vocab.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"more{i}\n" for i in range(4))
    size = small_tokenizer.vocab_size
    with pytest.raises(InputError, match=f"a row for every token .*Received: {size + 4} tokens, {size + 3} rows"):
        fill_mask(tmp_path, ["[MASK]"])


@pytest.mark.slow
@pytest.mark.shared
def test_a_real_model_fills_a_mask_sensibly(shared):
    [[candidates]] = fill_mask(shared / "models" / "bert-tiny-splade-mlm", ["paris is the capital of [MASK]."], top=50)
    assert "france" in [candidate["token"] for candidate in candidates]


def test_only_parameters_that_were_stored_are_counted(small_run, small_tokenizer, tmp_path):
    whole = LoadedMaskedLM.from_path(small_run)
    assert whole.num_parameters == whole.model.count_params()
    masked_lm = BertMaskedLM(whole.model.config)
    masked_lm.save_pretrained(tmp_path / "model", small_tokenizer)
    assert LoadedMaskedLM.from_path(tmp_path / "model").num_parameters == masked_lm.count_params()
