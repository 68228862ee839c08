"""Chinese from text to a measured model: jieba's words, masked whole."""

import re
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.training.configs import EvaluateConfig, PhaseConfig, PrepareConfig, PretrainConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.input_pipeline import training_batches
from keras_bert_impl.training.prepare import prepare
from keras_bert_impl.training.pretrain import pretrain

pytestmark = [pytest.mark.slow, pytest.mark.shared]


@pytest.fixture(scope="module")
def wikipedia(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    pytest.importorskip("jieba")
    folder = tmp_path_factory.mktemp("chinese")
    said: list[str] = []
    config = PrepareConfig(
        inputs=(str(shared / "data/corpora/zh_wikipedia.txt.xz"),),
        vocab=str(shared / "data/vocab/bert-base-chinese-vocab.txt"),
        output=str(folder / "data"),
        language="zh",
        lengths=(128,),
        word_boundaries="jieba",
    )
    prepare(config, say=said.append)
    print("\n".join(said))
    return folder / "data", said


def test_the_unknown_share_is_told(wikipedia):
    folder, said = wikipedia
    manifest = PreparedData(folder).manifest
    assert 0 < manifest["unknown_share"] < 0.01
    assert any(re.search(rf"tokens: [\d,]+, {manifest['unknown_share']:.2%} of them unknown", line) for line in said)


def test_most_chinese_characters_are_in_words_of_two_or_more(wikipedia):
    data = PreparedData(wikipedia[0])
    rows = data.examples("train", 128).rows(np.arange(2000))
    chinese = np.array(["\u4e00" <= token <= "\u9fff" for token in data.tokenizer.vocabulary])[rows["token_ids"]]
    followed = np.roll(rows["continues_word"], -1, axis=1)
    share = ((rows["continues_word"] | followed) & chinese).sum() / chinese.sum()
    print(f"Chinese characters in words of two or more: {share:.1%}")
    assert 0.6 < share < 0.95


def test_words_are_masked_whole_in_training(wikipedia):
    data = PreparedData(wikipedia[0])
    examples = data.examples("train", 128)
    settings = {"batch_size": 256, "seed": 1, "first_step": 0, "num_steps": 2, "tokenizer": data.tokenizer}
    rows = examples.rows(np.arange(len(examples)))
    stored = {row.tobytes(): marks for row, marks in zip(rows["token_ids"], rows["continues_word"], strict=True)}
    joined = 0
    for x, y in training_batches(examples, masking="whole-word", **settings):
        token_ids = x["token_ids"].numpy()
        chosen = np.zeros(token_ids.shape, bool)
        row, slot = np.nonzero(y["mask_weights"].numpy())
        position = x["mask_positions"].numpy()[row, slot]
        chosen[row, position] = True
        token_ids[row, position] = y["mask_labels"].numpy()[row, slot]
        marks = np.array([stored[row.tobytes()] for row in token_ids])
        # The unknown token belongs to its word and is never predicted.
        known = token_ids != data.tokenizer.unk_token_id
        both = marks[:, 1:] & known[:, 1:] & known[:, :-1]
        assert (chosen[:, 1:] == chosen[:, :-1])[both].all()
        joined += int((chosen[:, 1:] & both).sum())
    assert joined > 1000


def test_a_model_learns_and_is_evaluated_on_whole_words(wikipedia, tmp_path: Path):
    folder, _ = wikipedia
    size = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 128}
    config = PretrainConfig(
        data=str(folder),
        run=str(tmp_path / "run"),
        model=size | {"max_position_embeddings": 128},
        steps=120,
        batch_size=16,
        phases=(PhaseConfig(length=128, share=1),),
        learning_rate=2e-3,
        warmup_steps=10,
        replicas=1,
        masking="whole-word",
        evaluation_examples=200,
        evaluate_every=60,
    )
    said: list[str] = []
    held_out = pretrain(config, say=said.append)["held_out"]["128"]
    print(said[-2:])
    vocab_size = PreparedData(folder).tokenizer.vocab_size
    assert held_out["mlm_loss"] < np.log(vocab_size) - 2
    settings = {"model": str(tmp_path / "run"), "data": str(folder), "examples": 200}
    words = evaluate(EvaluateConfig(**settings, masking="whole-word"), say=print)["128"]
    tokens = evaluate(EvaluateConfig(**settings, masking="token"), say=print)["128"]
    for record in (words, tokens):
        assert record["mlm_loss"] < np.log(vocab_size) - 2 and record["examples"] == 200
    # The same examples and nearly as many predictions, but of other positions.
    assert words["tokens"] == tokens["tokens"]
    assert 0.97 < words["predicted_tokens"] / tokens["predicted_tokens"] <= 1
    assert words["unigram_loss"] != tokens["unigram_loss"]
