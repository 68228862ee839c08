"""Spans of tags, as conlleval and seqeval find them."""

import random

import pytest

from keras_bert_impl.tasks.tag_spans import tag_form, tag_spans, with_marks


def test_spans_begin_and_end_as_the_tags_say():
    tags = ["B-PER", "I-PER", "O", "B-LOC", "B-LOC", "I-PER", "O", "I-ORG", "I-ORG"]
    assert tag_spans(tags) == [("PER", 0, 2), ("LOC", 3, 4), ("LOC", 4, 5), ("PER", 5, 6), ("ORG", 7, 9)]


def test_spans_are_those_of_seqeval():
    get_entities = pytest.importorskip("seqeval.metrics.sequence_labeling").get_entities
    rng = random.Random(0)
    for _ in range(500):
        tags = [rng.choice(["O", "B-a", "I-a", "B-b", "I-b", "E-a", "S-a", "S-b"]) for _ in range(rng.randrange(12))]
        assert [(label, start, end - 1) for label, start, end in tag_spans(tags)] == get_entities(tags), tags


@pytest.mark.parametrize(
    "tags,form",
    [
        (["O", "B-PER", "I-PER"], "marks"),
        (["B-PER.NOM", "O", "L-PER.NOM", "U-A-B"], "marks"),
        (["B", "M", "E", "S"], "marks"),
        (["O", "PER", "LOC"], "types"),
        (["O"], "types"),
        (["NOUN", "VERB"], "words"),
        (["B-PER", "NOUN"], "words"),
        (["M", "P", "VV"], "words"),
        (["M"], "words"),
        (["O", "B-PER", "I-PER", "X"], "marks"),
    ],
)
def test_what_tags_say_of_words_is_told_by_all_of_them(tags, form):
    assert tag_form(tags) == form


def test_other_marks_are_read_as_the_usual_ones():
    tags = ["B-x", "L-x", "U-x", "O", "B-y", "M-y", "E-y", "W-y"]
    assert tag_spans(with_marks(tags, "marks")) == [("x", 0, 2), ("x", 2, 3), ("y", 4, 7), ("y", 7, 8)]
    assert tag_spans(with_marks(["B-x", "X", "[PAD]"], "marks")) == [("x", 0, 1)]
    assert tag_spans(with_marks(["B", "M", "E", "S"], "marks")) == [("_", 0, 3), ("_", 3, 4)]


def test_neighbours_of_one_type_are_a_span_and_words_are_each_by_themselves():
    assert tag_spans(with_marks(["PER", "PER", "O", "LOC"], "types")) == [("PER", 0, 2), ("LOC", 3, 4)]
    assert tag_spans(with_marks(["NOUN", "NOUN"], "words")) == [("NOUN", 0, 1), ("NOUN", 1, 2)]
