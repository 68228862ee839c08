"""Texts in, vectors out."""

import json

import numpy as np
import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder
from keras_bert_impl.tasks import SentenceEmbedding
from keras_bert_impl.tasks.rows import batch_inputs, row_windows, text_row

TOKENIZER = toy_tokenizer()
TEXTS = ["good film", "", "the play was very bad"]


@pytest.fixture(scope="module")
def encoder():
    return BertEncoder(toy_bert_config(TOKENIZER, num_hidden_layers=1), seed=3)


def states_of(encoder, text, max_length=64):
    rows = row_windows(TOKENIZER, max_length, text)
    return [np.asarray(encoder(batch_inputs([row], 0))["sequence_output"])[0] for row in rows]


def unit(vector):
    return vector / np.linalg.norm(vector)


def test_the_mean_of_the_real_tokens_has_length_one(encoder):
    embed = SentenceEmbedding(model=encoder, tokenizer=TOKENIZER)
    vectors = embed(TEXTS)
    assert vectors.dtype == "float32" and vectors.shape == (3, 16)
    expected = [unit(states_of(encoder, text)[0].mean(axis=0)) for text in TEXTS]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert embed([]).shape == (0, 16)


def test_a_long_text_is_cut_and_flagged_or_taken_in_windows_and_averaged(encoder):
    embed = SentenceEmbedding(model=encoder, tokenizer=TOKENIZER, max_length=8)
    (cut,), (whole,) = embed.embed([TEXTS[2] * 3]), embed.embed([TEXTS[2] * 3], long_texts="windows")
    assert cut.truncated and cut.windows == 1 and not whole.truncated
    states = states_of(encoder, TEXTS[2] * 3, 8)
    assert whole.windows == len(states) > 1
    np.testing.assert_allclose(cut.vector, unit(states[0].mean(axis=0)), atol=1e-5)
    # Each window counts alike.
    np.testing.assert_allclose(whole.vector, unit(np.mean([s.mean(axis=0) for s in states], axis=0)), atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "pooler"])
def test_the_first_position_is_taken_as_it_is(encoder, pooling):
    vectors = SentenceEmbedding(model=encoder, tokenizer=TOKENIZER, pooling=pooling)(TEXTS[:1])
    given = encoder(batch_inputs([text_row(TOKENIZER, 64, TEXTS[0])], 0))
    expected = given["pooled_output"] if pooling == "pooler" else given["sequence_output"][:, 0]
    np.testing.assert_allclose(vectors, np.asarray(expected), atol=1e-5)


def test_any_model_will_do_and_files_of_other_tools_are_hints(encoder, tmp_path):
    config = toy_bert_config(TOKENIZER, num_hidden_layers=1)
    BertClassifier(config, labels=["a", "b"]).save_pretrained(tmp_path, TOKENIZER)
    assert SentenceEmbedding(tmp_path).max_length == 64
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20}))
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    embed = SentenceEmbedding(tmp_path)
    assert embed.max_length == 20 and SentenceEmbedding(tmp_path, max_length=30).max_length == 30
    assert embed.notes == ["The model was made for pooling='cls'; 'mean' is used."]
    assert SentenceEmbedding(tmp_path, pooling="cls").notes == []


def test_arguments_are_checked(encoder, tmp_path):
    with pytest.raises(InputError, match=r"`pooling` must be one of mean, cls, pooler\. Received: pooling='max'"):
        SentenceEmbedding(model=encoder, tokenizer=TOKENIZER, pooling="max")
    with pytest.raises(InputError, match=r"`texts` must be a list of texts\. Received: 'good'"):
        SentenceEmbedding(model=encoder, tokenizer=TOKENIZER)("good")
    headless = BertEncoder(toy_bert_config(TOKENIZER, num_hidden_layers=1), pooler=False)
    with pytest.raises(InputError, match=r"`model` must have a pooler for pooling='pooler'\. Received: a model with"):
        SentenceEmbedding(model=headless, tokenizer=TOKENIZER, pooling="pooler")
    headless.save_pretrained(tmp_path, TOKENIZER)
    with pytest.raises(InputError, match=r"`model` must have a pooler for pooling='pooler'\. Received: '"):
        SentenceEmbedding(tmp_path, pooling="pooler")


@pytest.mark.slow
@pytest.mark.shared
def test_vectors_are_those_of_sentence_transformers(shared):
    folder = shared / "models" / "all-MiniLM-L6-v2"
    golden = json.loads((folder / "golden_outputs.json").read_text(encoding="utf-8"))["cases"]
    cases = [case for case in golden if case["text_b"] is None]
    embed = SentenceEmbedding(folder)
    assert embed.max_length == 256 and embed.notes == []
    vectors = embed([case["text_a"] for case in cases])
    np.testing.assert_allclose(vectors, [case["sentence_embedding"] for case in cases], atol=2e-6)
