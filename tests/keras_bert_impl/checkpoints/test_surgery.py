"""Weights of other sizes: what must not change, and where the new values come from."""

import numpy as np
import pytest
from harness import arrays, small_config

from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.surgery import extend_vocabulary, keep_blocks, resize_positions
from keras_bert_impl.models import BertEncoder, BertPretrainer
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "he", "##art", "##s", "art", "x"]
TABLE = "embeddings.word_embeddings.weight"
BIAS = "cls.predictions.bias"
POSITIONS = "embeddings.position_embeddings.weight"


@pytest.fixture(scope="module")
def model():
    model = BertPretrainer(small_config(vocab_size=len(VOCABULARY)), seed=3)
    model.mlm_head.bias.assign(np.arange(10.0))
    return model


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def values(checkpoint):
    return {key: np.asarray(tensor.read()) for key, tensor in checkpoint.tensors.items()}


def assert_all_else_is_as_it_was(before, after, changed):
    before, after = values(before), values(after)
    assert before.keys() == after.keys()
    for key in before.keys() - set(changed):
        np.testing.assert_array_equal(before[key], after[key], err_msg=key)


def test_new_tokens_get_the_mean_of_their_pieces_and_old_rows_stay(model, tokenizer):
    checkpoint = open_checkpoint(model)
    extended, larger = extend_vocabulary(checkpoint, tokenizer, ["heart", "hearts", "unknownword"])
    assert larger.vocabulary == (*VOCABULARY, "heart", "hearts", "unknownword")
    assert larger.tokenize("Heart hearts") == ["heart", "hearts"]
    assert extended.config.vocab_size == 13
    old, new = values(checkpoint), values(extended)
    for key in (TABLE, BIAS):
        np.testing.assert_array_equal(new[key][:10], old[key])
        np.testing.assert_allclose(new[key][10], old[key][[5, 6]].mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(new[key][11], old[key][[5, 6, 7]].mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(new[key][12], old[key][1], rtol=1e-6)
    assert_all_else_is_as_it_was(checkpoint, extended, [TABLE, BIAS])


def test_the_extended_model_answers_as_before_on_old_tokens(model, tokenizer):
    extended, _ = extend_vocabulary(open_checkpoint(model), tokenizer, ["heart"])
    larger = BertPretrainer.from_pretrained(extended)
    assert larger.load_report.complete
    batch = {
        "token_ids": np.array([[2, 5, 6, 3]]),
        "segment_ids": np.zeros((1, 4), int),
        "padding_mask": np.ones((1, 4), int),
        "mask_positions": np.array([[1]]),
    }
    before, after = arrays(model(batch)), arrays(larger(batch))
    np.testing.assert_allclose(after["mlm_logits"][..., :10], before["mlm_logits"], atol=1e-6)
    np.testing.assert_array_equal(after["nsp_logits"], before["nsp_logits"])


def test_other_rules_for_new_tokens(model, tokenizer):
    checkpoint = open_checkpoint(model)
    mean = values(extend_vocabulary(checkpoint, tokenizer, ["heart"], rule="mean")[0])
    np.testing.assert_allclose(mean[TABLE][10], values(checkpoint)[TABLE].mean(axis=0), rtol=1e-5)
    words = [f"q{i}" for i in range(900)]
    drawn = [values(extend_vocabulary(checkpoint, tokenizer, words, rule="random", seed=s)[0]) for s in (1, 1, 2)]
    rows = drawn[0][TABLE][10:]
    assert np.abs(rows).max() <= 2 * 0.02 and abs(rows.std() - 0.88 * 0.02) < 0.001
    assert not drawn[0][BIAS][10:].any()
    np.testing.assert_array_equal(drawn[0][TABLE], drawn[1][TABLE])
    assert (drawn[0][TABLE][10:] != drawn[2][TABLE][10:]).all()


def test_spare_rows_are_used_first(tokenizer):
    model = BertEncoder(small_config(vocab_size=16))
    extended, larger = extend_vocabulary(open_checkpoint(model), tokenizer, ["heart", "hearts"])
    assert (extended.config.vocab_size, larger.vocab_size) == (16, 12)
    old, new = values(open_checkpoint(model))[TABLE], values(extended)[TABLE]
    np.testing.assert_array_equal(np.delete(new, [10, 11], axis=0), np.delete(old, [10, 11], axis=0))
    np.testing.assert_allclose(new[10], old[[5, 6]].mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    "tokens,message",
    [
        ([], r"`tokens` must be a list of one or more words. Received: tokens=\[\]"),
        ("heart", r"must be a list .*Received: tokens='heart'"),
        (["heart", " "], r"must be a list of one or more words"),
        (["art"], r"must be new and different. Received: 'art', which is in the vocabulary already"),
        (["heart", "heart"], r"Received: 'heart', which is given twice"),
        (["Heart"], r"must be words as the tokenizer sees them. Received: 'Heart', which it sees as \['he', '##art'\]"),
        (["##Bad"], r"Received: '##Bad', which it sees as \['abad'\]"),
        (["##a\nb"], r"Received: '##a\\nb', which it sees as \['aa', 'b'\]"),
        (["##中"], r"Received: '##中', which it sees as \['a', '中'\]"),
        (["he art"], r"Received: 'he art', which it sees as \['he', 'art'\]"),
    ],
)
def test_words_that_cannot_be_added_are_refused(model, tokenizer, tokens, message):
    with pytest.raises(ValueError, match=message):
        extend_vocabulary(open_checkpoint(model), tokenizer, tokens)


def test_a_vocabulary_larger_than_the_model_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"not have more tokens than the model has rows. Received: 10 tokens, 9 rows"):
        extend_vocabulary(open_checkpoint(BertEncoder(small_config(vocab_size=9))), tokenizer, ["heart"])


@pytest.mark.parametrize("rule", ["repeat", "random", "interpolate"])
def test_longer_positions(model, rule):
    checkpoint = open_checkpoint(model)
    longer = resize_positions(checkpoint, 40, rule=rule)
    assert longer.config.max_position_embeddings == 40
    old, new = values(checkpoint)[POSITIONS], values(longer)[POSITIONS]
    if rule == "interpolate":
        np.testing.assert_array_equal(new[[0, 39]], old[[0, 15]])
        np.testing.assert_allclose(new[13], old[5], atol=1e-7)  # 13/39 of the way is 5/15 of it
        assert (np.diff(new[:3], axis=0) * (old[1] - old[0]) > 0).all()
    else:
        np.testing.assert_array_equal(new[:16], old)
    if rule == "repeat":
        np.testing.assert_array_equal(new[16:32], old)
        np.testing.assert_array_equal(new[32:], old[:8])
    assert_all_else_is_as_it_was(checkpoint, longer, [POSITIONS])
    assert BertPretrainer.from_pretrained(longer).load_report.complete


def test_shorter_positions_are_the_first_ones(model):
    shorter = resize_positions(open_checkpoint(model), 6)
    np.testing.assert_array_equal(values(shorter)[POSITIONS], values(open_checkpoint(model))[POSITIONS][:6])


def test_fewer_blocks(model):
    checkpoint = open_checkpoint(model)
    for blocks, kept in ((1, [0]), ([1], [1]), ([1, 0], [1, 0])):
        shorter = keep_blocks(checkpoint, blocks)
        assert shorter.config.num_hidden_layers == len(kept)
        old, new = values(checkpoint), values(shorter)
        for i, number in enumerate(kept):
            name = "encoder.layer.{}.output.dense.weight"
            np.testing.assert_array_equal(new[name.format(i)], old[name.format(number)])
        assert len(shorter.passed_over) == 16 * (2 - len(kept))
        assert BertPretrainer.from_pretrained(shorter).load_report.complete


@pytest.mark.parametrize("blocks", [0, 3, 10**20, [], [0, 0], [2], [-1], True])
def test_blocks_that_are_not_there_are_refused(model, blocks):
    with pytest.raises(ValueError, match=r"`blocks` must be different numbers from 0 to 1, or how many of the first 2"):
        keep_blocks(open_checkpoint(model), blocks)


def test_a_negative_seed_is_refused(model):
    with pytest.raises(ValueError, match=r"`seed` must be a whole number of at least 0. Received: seed=-1"):
        resize_positions(model, 20, rule="random", seed=-1)


def test_unknown_rules_are_refused(model, tokenizer):
    with pytest.raises(ValueError, match=r"`rule` must be one of pieces, mean, random. Received: rule='guess'"):
        extend_vocabulary(open_checkpoint(model), tokenizer, ["heart"], rule="guess")
    with pytest.raises(ValueError, match=r"`rule` must be one of repeat, interpolate, random. Received: rule='guess'"):
        resize_positions(open_checkpoint(model), 20, rule="guess")
    with pytest.raises(ValueError, match="`max_position_embeddings` must be a positive whole number"):
        resize_positions(open_checkpoint(model), 0)
