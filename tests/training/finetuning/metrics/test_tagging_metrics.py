"""Scores of tags."""

import random
import sys

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.finetuning.metrics.tagging import score_tags

RIGHT = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC", "I-LOC"], ["B-ORG"]]
GIVEN = [["B-PER", "I-PER", "O", "B-PER"], ["O", "B-LOC", "O"], ["I-ORG"]]


def test_spans_count_when_their_words_and_label_are_right():
    metrics = score_tags(RIGHT, GIVEN)
    # Given: PER right, PER wrong, LOC too short, ORG right (it begins with I, which conlleval allows).
    assert metrics["precision"] == pytest.approx(2 / 4) and metrics["recall"] == pytest.approx(2 / 4)
    assert metrics["types"] == {
        "LOC": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "spans": 2, "given": 1},
        "ORG": {"precision": 1.0, "recall": 1.0, "f1": 1.0, "spans": 1, "given": 1},
        "PER": {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "spans": 1, "given": 2},
    }
    assert metrics["f1_macro"] == pytest.approx((0 + 1 + 2 / 3) / 3)
    assert metrics["accuracy"] == pytest.approx(5 / 8)
    assert [metrics[name] for name in ("sentences", "words", "spans", "spans_given")] == [3, 8, 4, 4]


def test_scores_are_those_of_seqeval():
    seqeval = pytest.importorskip("seqeval.metrics")
    rng = random.Random(1)
    tags = ["O", "O", "B-a", "I-a", "B-b", "I-b", "B-c"]
    right = [[rng.choice(tags) for _ in range(rng.randrange(1, 9))] for _ in range(60)]
    given = [[tag if rng.random() < 0.7 else rng.choice(tags) for tag in sentence] for sentence in right]
    metrics = score_tags([tuple(sentence) for sentence in right], given)
    report = seqeval.classification_report(right, given, output_dict=True)
    for label, values in metrics["types"].items():
        assert values["f1"] == pytest.approx(report[label]["f1-score"])
        assert values["recall"] == pytest.approx(report[label]["recall"])
        assert values["spans"] == report[label]["support"]
    assert metrics["f1"] == pytest.approx(seqeval.f1_score(right, given))
    assert metrics["f1_macro"] == pytest.approx(seqeval.f1_score(right, given, average="macro"))
    assert metrics["accuracy"] == pytest.approx(seqeval.accuracy_score(right, given))


def test_no_span_at_all_scores_zero_without_a_warning(recwarn):
    metrics = score_tags([["O", "O"], []], [["O", "O"], []])
    assert (metrics["f1"], metrics["f1_macro"], metrics["accuracy"], metrics["types"]) == (0.0, 0.0, 1.0, {})
    assert score_tags([["B-x"]], [["O"]])["f1"] == 0.0
    assert score_tags([], [])["accuracy"] == 0.0
    assert not recwarn.list


def test_tags_without_spans_are_scored_word_by_word():
    metrics = score_tags([["NOUN", "NOUN", "VERB", "ADJ"]], [["NOUN", "VERB", "VERB", "ADJ"]])
    assert metrics["f1"] == metrics["accuracy"] == 0.75
    assert metrics["types"]["NOUN"] == {
        "precision": 1.0,
        "recall": 0.5,
        "f1": pytest.approx(2 / 3),
        "spans": 2,
        "given": 1,
    }


def test_sentences_of_other_lengths_are_refused():
    with pytest.raises(
        InputError, match=r"must have a tag for every word. Received: 1 tags for the 2 words of sentence 2"
    ):
        score_tags([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(InputError, match="Received: 1 sentences for 2"):
        score_tags([["O"], ["O"]], [["O"]])


def test_seqeval_is_asked_for_by_the_name_of_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("seqeval")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "seqeval", None)
    with pytest.raises(InputError, match=r"`task` tagging needs the extra `finetune`: pip install .* Missing: seqeval"):
        score_tags([["O"]], [["O"]])
