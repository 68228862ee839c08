import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from labelled_data import columns

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import Answer, Question, TaggedSentence, TextExample
from keras_bert_impl.training.finetuning.data import to_questions, to_tagged_sentences, to_text_examples


class DataSet:
    """Rows with features, as a data set of Hugging Face has them."""

    def __init__(self, rows: list[dict[str, Any]], **features: Any) -> None:
        self.rows, self.features = rows, features

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


class Frame:
    """As a data frame: gone through, it gives the names of its columns."""

    columns = ("text", "label")

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self.rows


def class_label(*names: str) -> Any:
    return types.SimpleNamespace(names=list(names))


def sequence(feature: Any) -> Any:
    return types.SimpleNamespace(feature=feature)


def test_texts_and_labels_are_taken_from_lists():
    assert to_text_examples(["a", "b"], [1, "x"]) == [
        TextExample("a", None, "1", None, "`train` number 1"),
        TextExample("b", None, "x", None, "`train` number 2"),
    ]
    assert to_text_examples(["a"], [["x", "y"]], kind="multilabel")[0].label == ("x", "y")
    assert to_text_examples(["a"], [2], kind="regression")[0].label == 2.0
    assert to_text_examples(["a"], kind=None)[0].label is None


def test_pairs_are_taken_from_lists():
    (example,) = to_text_examples(["a"], [1], ["b"])
    assert (example.text, example.text_pair, example.label) == ("a", "b", "1")


def test_generators_and_arrays_will_do():
    assert [e.label for e in to_text_examples((text for text in "ab"), np.array([1, 0]))] == ["1", "0"]
    assert [e.text for e in to_text_examples(np.array(["a", "b"]), iter("xy"))] == ["a", "b"]
    assert to_text_examples(["a"], np.array([0.5], "float32"), kind="regression")[0].label == 0.5


def test_rows_are_read_as_those_of_files():
    rows = [{"sentence1": "a", "sentence2": "b", "label": 0, "idx": 3}]
    assert to_text_examples(rows) == [TextExample("a", "b", "0", "3", "`train` number 1")]
    (example,) = to_text_examples([{"mine": "a", "y": True}], config=columns(text_column="mine", label_column="y"))
    assert (example.text, example.label) == ("a", "true")
    assert [e.text for e in to_text_examples(Frame([{"text": "a", "label": np.int64(1)}]))] == ["a"]


def test_classes_of_a_data_set_get_their_names():
    data = DataSet([{"text": "a", "label": 1}, {"text": "b", "label": 0}], label=class_label("neg", "pos"), text=None)
    assert [example.label for example in to_text_examples(data)] == ["pos", "neg"]
    data = DataSet([{"text": "a", "labels": [1, 0]}], labels=sequence(class_label("x", "y")))
    assert to_text_examples(data, kind="multilabel")[0].label == ("y", "x")
    data = DataSet([{"text": "a", "label": 5}], label=class_label("neg", "pos"))
    message = r"`dev` must have numbers of its 2 classes as labels\. Received: 5 in `dev` number 1$"
    with pytest.raises(InputError, match=message):
        to_text_examples(data, argument="dev")


def test_a_class_that_is_not_known_is_no_label():
    data = DataSet([{"text": "a", "label": -1}], label=class_label("neg", "pos"))
    with pytest.raises(
        InputError, match=r"`train` must have a label in every row\. Received: none in `train` number 1$"
    ):
        to_text_examples(data)


@pytest.mark.parametrize(
    ("texts", "more", "message"),
    [
        ("a text", {}, r"`train` must be a list or another iterable\. Received: str$"),
        (5, {}, r"`train` must be a list or another iterable\. Received: int$"),
        ([], {}, r"`train` must have examples\. Received: none$"),
        ({"train": [], "dev": []}, {}, r"one split of a data set\. Received: a mapping of 'train', 'dev'$"),
        (["a"], {}, r"`labels` must be a list as long as `train`\. Received: none$"),
        (["a"], {"labels": "x"}, r"`labels` must be a list as long as `train`\. Received: str$"),
        (
            ["a", "b"],
            {"labels": [1]},
            r"`labels` must be a list as long as `train`\. Received: 1 beside 2$",
        ),
        (
            ["a"],
            {"labels": [1], "pairs": []},
            r"`pairs` must be a list as long as `train`\. Received: 0 beside 1$",
        ),
        ([5], {"labels": [1]}, r"must have text in column 'text' of every row\. Received: int 5 in `train` number 1$"),
        ([{"text": "a", "label": 1}, "b"], {}, r"must be all rows, or none\. Received: str as `train` number 2$"),
        (
            [{"body": "a", "label": 1}],
            {},
            r"the column of the text\. Received: none; `train` has the columns 'body', 'la",
        ),
        (
            [{"text": "a"}],
            {"labels": [1]},
            r"`labels` must be a column of the rows\. Received: a list beside rows with",
        ),
        (
            [{"text": "a", "label": [1]}],
            {},
            r"must have labels that are text or numbers\. Received: \[1\] in `train` num",
        ),
    ],
)
def test_what_cannot_be_used_is_said(texts: Any, more: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        to_text_examples(texts, **more)


def test_sentences_in_words_are_taken_from_lists():
    said: list[str] = []
    assert to_tagged_sentences([["EU", "x"], ("Bonn",)], [["I-ORG", "O"], ["I-LOC"]], say=said.append) == [
        TaggedSentence(("EU", "x"), ("B-ORG", "O"), None, "`train` number 1"),
        TaggedSentence(("Bonn",), ("B-LOC",), None, "`train` number 2"),
    ]
    assert said == ["Tags of `train`: IO, converted to IOB2, 2 spans."]
    assert to_tagged_sentences([["a"]], labelled=False) == [TaggedSentence(("a",), None, None, "`train` number 1")]


def test_sentences_in_words_are_taken_from_a_data_set():
    rows = [{"id": "0", "tokens": ["EU", "x"], "ner_tags": [1, 0]}]
    for feature in (sequence(class_label("O", "B-ORG")), [class_label("O", "B-ORG")]):
        (sentence,) = to_tagged_sentences(DataSet(rows, ner_tags=feature, tokens=sequence(None)))
        assert sentence == TaggedSentence(("EU", "x"), ("B-ORG", "O"), "0", "`train` number 1")
    with pytest.raises(
        InputError, match=r"`train` must have tags by name\. Received: numbers in `train` number 1, for"
    ):
        to_tagged_sentences(rows)


@pytest.mark.parametrize(
    ("sentences", "tags", "message"),
    [
        (["a b"], [["O"]], r"must have lists of text, none of it empty, in column 'words'\. Received: 'a b' in"),
        ([["a", "b"]], [["O"]], r"must have as many tags as words\. Received: 2 words and 1 tag in `train` number 1$"),
        ([["a"]], None, r"`tags` must be a list as long as `train`\. Received: none$"),
        ([{"tokens": ["a"]}], [["O"]], r"`tags` must be a column of the rows\. Received: a list beside rows"),
        (
            [["a"], "b"],
            [["O"], ["O"]],
            r"must have lists of text, none of it empty, in column 'words'\. Received: 'b' in",
        ),
    ],
)
def test_sentences_that_cannot_be_used_are_said(sentences: Any, tags: Any, message: str):
    with pytest.raises(InputError, match=message):
        to_tagged_sentences(sentences, tags)


def test_questions_are_taken_from_lists_and_data_sets():
    said: list[str] = []
    answers = ["1973", {"text": ["Bonn"], "answer_start": [0]}, None]
    found = to_questions(["q"] * 3, ["In 1973.", "In Bonn.", "Never."], answers, say=said.append)
    assert [(question.answers, question.impossible) for question in found] == [
        ((Answer("1973", 3),), False),
        ((Answer("Bonn", 3),), False),
        ((), True),
    ]
    assert said == ["`train`: 1 answer with a wrong start, moved to the only place with its text."]
    row = {"id": "a", "question": "q", "context": "In 1973.", "answers": {"text": ["1973"], "answer_start": [3]}}
    assert to_questions([row]) == [Question("q", "In 1973.", (Answer("1973", 3),), False, "a", "`train` number 1")]
    assert to_questions([{"question": "q", "context": "c"}], labelled=False)[0].answers == ()
    assert to_questions(["q"], ["c"], labelled=False)[0].context == "c"


def test_questions_need_their_contexts():
    with pytest.raises(InputError, match=r"`contexts` must be a list as long as `train`\. Received: none$"):
        to_questions(["q"])
    with pytest.raises(InputError, match=r"`contexts` must be a column of the rows\. Received: a list beside rows"):
        to_questions([{"question": "q"}], ["c"])


def test_sets_of_labels_and_arrays_within_answers_will_do():
    examples = to_text_examples(["a", "b"], [{"y", "x"}, set()], kind="multilabel")
    assert [example.label for example in examples] == [("x", "y"), ()]
    answers = [{"text": np.array(["b"]), "answer_start": np.array([2])}]
    (question,) = to_questions(["what ?"], ["a b c"], answers)
    assert question.answers == (Answer("b", 2),)
