import re

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import Question, TaggedSentence, TextExample
from keras_bert_impl.training.finetuning.data.labels import (
    describe_counts,
    label_counts,
    label_of_value,
    shared_texts,
)


def label(value: object, kind: str = "classification", separator: str = ","):
    return label_of_value(value, kind, separator, "train", "a.tsv:3")


class NAType:
    """As the missing value of pandas: neither equal to anything nor unequal."""

    def __ne__(self, other: object) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(" pos ", "pos"), (1, "1"), (0, "0"), (True, "true"), (False, "false"), (1.5, "1.5"), ("001", "001")],
)
def test_a_class_is_text_numbers_and_truth_values_as_json_writes_them(value: object, expected: str):
    assert label(value) == expected


@pytest.mark.parametrize("value", [None, "", "  ", float("nan"), NAType()])
def test_a_missing_class_is_named_with_its_place(value: object):
    with pytest.raises(InputError, match=r"`train` must have a label in every row\. Received: none in a\.tsv:3$"):
        label(value)


@pytest.mark.parametrize("value", [["a"], {"a": 1}])
def test_a_nested_class_is_refused(value: object):
    message = rf"`train` must have labels that are text or numbers\. Received: {re.escape(repr(value))} in a\.tsv:3$"
    with pytest.raises(InputError, match=message):
        label(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("joy, anger ,joy", ("joy", "anger")),
        ("joy", ("joy",)),
        ("", ()),
        (" , ", ()),
        (["a,b", "c"], ("a,b", "c")),
        ([1, 2], ("1", "2")),
        ([], ()),
        (3, ("3",)),
    ],
)
def test_several_labels_come_apart_and_none_may_hold(value: object, expected: tuple[str, ...]):
    assert label(value, "multilabel") == expected


def test_labels_may_stand_between_other_marks():
    assert label("a, b||c", "multilabel", "||") == ("a, b", "c")


def test_missing_labels_are_not_the_same_as_none_that_holds():
    with pytest.raises(InputError, match=r"`train` must have labels in every row\. Received: none in a\.tsv:3$"):
        label(None, "multilabel")


@pytest.mark.parametrize(("value", "expected"), [("5.000", 5.0), (" -1e3 ", -1000.0), (4, 4.0), ("0", 0.0)])
def test_a_number_is_read(value: object, expected: float):
    assert label(value, "regression") == expected


@pytest.mark.parametrize(
    "value", ["high", "nan", "inf", "-inf", "1e999", "3,5", "４.５", "٣", "1_000", True, [1.0], float("nan")]
)
def test_what_is_no_finite_number_is_refused_with_its_place(value: object):
    message = r"`train` must have finite numbers as labels\. Received: .* in a\.tsv:3$"
    with pytest.raises(InputError, match=message):
        label(value, "regression")


@pytest.mark.parametrize("value", [None, "", " ", NAType()])
def test_a_missing_number_is_said_to_be(value: object):
    with pytest.raises(InputError, match=r"must have a label in every row\. Received: none in a\.tsv:3$"):
        label(value, "regression")


def test_names_that_cannot_be_printed_are_escaped_where_they_are_said():
    assert describe_counts({"a\nb": 1, "\x1b[2J": 3}) == r"a\nb: 1 (25%), \x1b[2J: 3 (75%)"


def test_labels_are_counted_in_order_numbers_by_size():
    assert list(label_counts([TextExample("x", label=name) for name in ("10", "9", "b", "10", "a")]).items()) == [
        ("9", 1),
        ("10", 2),
        ("a", 1),
        ("b", 1),
    ]
    assert label_counts([TextExample("x", label=("a", "b")), TextExample("y", label=("b",))]) == {"a": 1, "b": 2}
    assert label_counts([TaggedSentence(("x", "y"), ("O", "B-A")), TaggedSentence(("z",))]) == {"B-A": 1, "O": 1}
    assert label_counts([TextExample("x", label=2.5), TextExample("x")]) == {}


def test_counts_are_said_with_their_shares():
    assert describe_counts({"0": 1194, "1": 2474}) == "0: 1,194 (33%), 1: 2,474 (67%)"
    assert describe_counts({"a": 3, "b": 2}, total=4) == "a: 3 (75%), b: 2 (50%)"
    assert describe_counts({}) == ""


def test_what_is_in_train_and_dev_is_counted():
    train = [TextExample("a"), TextExample("b", "c")]
    assert shared_texts(train, [TextExample("a", label="1"), TextExample("b"), TextExample("b", "c")]) == 2
    assert shared_texts([TaggedSentence(("a", "b"))], [TaggedSentence(("a", "b"), ("O", "O"))]) == 1
    assert shared_texts([Question("q", "c")], [Question("q", "c", id="7"), Question("q", "d")]) == 1
