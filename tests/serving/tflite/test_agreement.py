"""What is said of two models' answers is what they have in common, counted."""

import numpy as np
import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.serving.tflite.agreement import agreement, mask_row
from keras_bert_impl.serving.tflite.contents import Contents
from keras_bert_impl.serving.tflite.processor import processor
from keras_bert_impl.serving.tflite.remembered_outputs import remembered_outputs
from keras_bert_impl.tasks.settings import TaskSettings

TOKENIZER = toy_tokenizer()
GOOD, BAD = (TOKENIZER.token_to_id(word) for word in ("good", "bad"))


def answers(kind, run, length=16, **task):
    outputs = {"sequence_output": {}} if kind in ("embedding", "fill-mask") else {}
    return processor(
        Contents(
            kind=kind,
            tokenizer=TOKENIZER,
            config=toy_bert_config(TOKENIZER),
            settings=TaskSettings(**task) if task else None,
            labels=("bad", "good") if task.get("task") in ("classification", "multilabel", "tagging") else (),
            max_length=length,
            length=length,
            quantization="none",
            signatures={"token_ids": {"inputs": {}, "outputs": outputs}},
        ),
        run,
    )


def counts(inputs):
    ids = inputs["token_ids"]
    return np.float32([[(ids == BAD).sum(), (ids == GOOD).sum()]])


def logits(inputs):
    return {"logits": counts(inputs)}


def doubting(inputs):
    """As `logits`, but one "bad" weighs more than one "good"."""
    return {"logits": counts(inputs) * np.float32([1.5, 1.0])}


TEXTS = [("good",), ("good film",), ("bad film",), ("bad and good good",), ("good good bad bad",)]


def test_the_same_model_agrees_with_itself():
    found = agreement(*(answers("classification", logits, task="classification") for _ in range(2)), TEXTS)
    assert (found.texts, found.answers, found.share) == (5, 5, 1)
    assert (found.largest, found.mean, found.scale, found.truncated, found.examples) == (0, 0, 2, 0, ())


def test_texts_with_another_label_are_counted_and_shown():
    before, after = (answers("classification", run, task="classification") for run in (logits, doubting))
    found = agreement(before, after, [*TEXTS, ("bad good good " * 3,), ("good good good bad bad",)])
    # Of equal scores the first label is given: neither side is sure of the fifth text.
    assert found.share == pytest.approx(1 - 1 / 7)
    assert found.examples == (("good good good bad bad", "good", "bad"),)
    assert found.largest == 1.5 and found.mean == pytest.approx((0.5 + 0.5 + 1 + 1.5 + 1) / 14)


def test_texts_that_only_the_file_cuts_off_are_counted():
    before = answers("classification", logits, 16, task="classification")
    after = answers("classification", logits, 5, task="classification")
    found = agreement(before, after, [*TEXTS, ("a film " * 20,)])
    assert (found.truncated, found.truncated_before) == (3, 1)
    # Scores are compared on the rows that the file reads, answers on what each makes of the text.
    assert found.largest == 0 and found.share == pytest.approx(4 / 6)
    assert [example[0] for example in found.examples] == ["bad and good good", "good good bad bad"]


def test_of_labels_that_may_all_hold_the_sets_are_compared():
    before, after = (
        answers("classification", run, task="multilabel", label_threshold=0.8) for run in (logits, doubting)
    )
    found = agreement(before, after, TEXTS)
    assert found.share == pytest.approx(3 / 5)  # a single "bad" holds by 1.5 alone
    assert [example[0] for example in found.examples] == ["bad film", "bad and good good"]


def numbers(scale, shift=0.0):
    return lambda inputs: {"value": counts(inputs)[:, 1] * np.float32(scale) + np.float32(shift)}


def test_numbers_agree_as_far_as_their_variance_is_kept():
    before = answers("classification", numbers(1), task="regression")
    assert agreement(before, answers("classification", numbers(1), task="regression"), TEXTS).share == 1
    # 1, 1, 0, 2, 2: variance 0.56; moved by 0.28 ** 0.5 half of it is lost.
    found = agreement(before, answers("classification", numbers(1, 0.28**0.5), task="regression"), TEXTS)
    assert found.share == pytest.approx(0.5, abs=1e-6)
    alone = agreement(before, answers("classification", numbers(1.1), task="regression"), TEXTS[:1])
    assert alone.share == pytest.approx(0.99, abs=1e-6)


def test_what_is_not_a_number_does_not_agree():
    before = answers("classification", numbers(1), task="regression")
    found = agreement(before, answers("classification", numbers(np.nan), task="regression"), TEXTS)
    assert not found.share >= 0 and found.largest == np.inf


def tags(weight):
    def run(inputs):
        ids = inputs["token_ids"]
        return {"logits": np.stack([(ids == BAD) * weight + 0.5, ids == GOOD], axis=-1)}

    return run


def test_words_with_another_tag_are_counted():
    before, after = (answers("tagging", tags(weight), task="tagging") for weight in (1.0, -1.0))
    found = agreement(before, after, [("good film",), (["bad", "good", "bad"],), ("",)])
    assert (found.texts, found.answers) == (3, 5)
    assert found.share == pytest.approx(3 / 5)
    assert found.examples == (("bad good bad", "bad, good, bad", "good, good, good"),)


def spans(word):
    def run(inputs):
        found = np.float32(inputs["token_ids"] == word)
        return {"start_logits": found, "end_logits": found}

    return run


def test_questions_with_another_answer_are_counted():
    settings = {"task": "qa", "max_question_length": 4}
    before, after = (answers("question answering", spans(word), **settings) for word in (GOOD, BAD))
    found = agreement(before, after, [("was it", "it was"), ("was it", "good and bad")])
    assert found.share == 0.5 and found.examples == (("was it / good and bad", "good", "bad"),)
    assert found.largest == 1


def vectors(turn):
    def run(inputs):
        states = np.zeros((1, inputs["token_ids"].shape[1], 16), "float32")
        states[..., 0], states[..., 1] = np.cos(turn), np.sin(turn)
        return {"sequence_output": states}

    return run


def test_vectors_agree_by_their_cosine():
    before, after = (answers("embedding", vectors(turn)) for turn in (0, np.pi / 3))
    found = agreement(before, after, TEXTS)
    assert found.share == pytest.approx(0.5) and len(found.examples) == 5
    # Of vectors of length 1: (1, 0) and (0.5, 0.87).
    assert found.largest == pytest.approx(np.sin(np.pi / 3)) and found.scale == 1


def best_at_masks(word):
    def run(inputs):
        masks = int((inputs["token_ids"] == TOKENIZER.mask_token_id).sum())
        scores = np.zeros((1, masks, TOKENIZER.vocab_size), "float32")
        scores[0, :1, GOOD] = scores[0, 1:, word] = 3
        return {"mlm_logits": scores}

    return run


def test_masks_with_another_token_are_counted():
    before, after = (answers("fill-mask", best_at_masks(word)) for word in (GOOD, BAD))
    texts = [("a [MASK] film",), ("[MASK] and [MASK]",), ("good",), ("",), ("film " * 20,)]
    found = agreement(before, after, texts)
    assert (found.texts, found.answers, found.share, found.truncated) == (5, 6, pytest.approx(5 / 6), 1)
    assert found.examples == (("[MASK] and [MASK]", "good good", "good bad"),)


def test_a_text_without_a_mask_gets_one_in_its_middle():
    asked = answers("fill-mask", best_at_masks(GOOD))
    tokens = [TOKENIZER.vocabulary[i] for i in mask_row(asked, "a good film")[0].token_ids]
    assert tokens == ["[CLS]", "a", "[MASK]", "film", "[SEP]"]
    assert mask_row(asked, "")[0].mask_positions == [1]
    assert mask_row(asked, "[MASK] or not")[0].mask_positions == [1]


def test_a_row_is_computed_once_while_outputs_are_remembered():
    rows = []

    def run(inputs):
        rows.append(inputs)
        return logits(inputs)

    asked = answers("classification", run, task="classification")
    with remembered_outputs(asked):
        first = [asked([text for (text,) in TEXTS]) for _ in range(2)]
        assert first[0] == first[1] and len(rows) == 5
        assert agreement(answers("classification", logits, task="classification"), asked, TEXTS).share == 1
        asked(["good"])
    assert len(rows) == 5
    asked(["good"])
    assert len(rows) == 6
