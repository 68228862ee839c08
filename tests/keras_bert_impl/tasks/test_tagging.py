"""Sentences in; a tag for every word, and spans, out."""

import dataclasses

import numpy as np
import pytest
from taggers import EagerTagging, told_tagger
from task_models import toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertTokenClassifier
from keras_bert_impl.tasks import TaskSettings, WordTagging
from keras_bert_impl.tasks.word_answers import Span, joined
from keras_bert_impl.tasks.word_windows import sentence_rows

LABELS = ["O", "B-person", "I-person", "B-place", "I-place"]
TOLD = {"good": "B-person", "fine": "I-person", "film": "B-place", "play": "I-place", "z": "B-place", "##y": "I-person"}
TOKENIZER = toy_tokenizer()


@pytest.fixture(scope="module")
def model():
    return told_tagger(TOKENIZER, LABELS, TOLD)


@pytest.fixture(scope="module")
def tagging(model):
    return EagerTagging(model=model, tokenizer=TOKENIZER)


@pytest.fixture(scope="module")
def all_pieces(model):
    settings = TaskSettings(task="tagging", labelled_pieces="all", max_length=16)
    return EagerTagging(model=model, tokenizer=TOKENIZER, settings=settings)


def test_every_word_has_a_tag_and_words_of_a_span_are_together(tagging):
    first, none, second = tagging([["the", "good", "fine", "book", "film"], [], ["play", "good", "good"]])
    assert first.words == ("the", "good", "fine", "book", "film")
    assert first.tags == ("O", "B-person", "I-person", "O", "B-place")
    assert [dataclasses.replace(span, probability=0.0) for span in first.spans] == [
        Span("person", 1, 3, "good fine", 0.0),
        Span("place", 4, 5, "film", 0.0),
    ]
    assert first.spans[0].probability == pytest.approx(np.mean(first.probabilities[1:3]))
    assert all(0.5 < probability <= 1 for probability in first.probabilities)
    assert (none.words, none.tags, none.spans, none.windows) == ((), (), (), 0)
    # A span that the model begins with I counts as begun; the tags are as the model gave them.
    assert second.tags == ("I-place", "B-person", "B-person")
    assert [(span.label, span.start_word, span.end_word) for span in second.spans] == [
        ("place", 0, 1),
        ("person", 1, 2),
        ("person", 2, 3),
    ]


def test_a_text_is_split_into_words_and_spans_are_slices_of_it(tagging):
    text = "  The GOOD  fine, FİLM?"
    tokenized = tagging([text, "good"])
    assert tokenized[0].words == ("The", "GOOD", "fine", ",", "FİLM", "?")
    assert [(span.label, span.text, span.start, span.end) for span in tokenized[0].spans[:1]] == [
        ("person", "GOOD  fine", 6, 16)
    ]
    assert all(text[span.start : span.end] == span.text for span in tokenized[0].spans)
    assert tokenized[1].spans[0].text == "good"


def test_the_text_of_words_has_spaces_but_not_between_ideographs():
    assert joined(["New", "York"]) == "New York"
    assert joined(["北", "京", "Olympics", "村"]) == "北京 Olympics 村"


def test_probabilities_of_all_labels_are_those_of_the_first_piece_or_the_mean_of_all(tagging, all_pieces, model):
    words = ["good", "zyy", "film"]  # z ##y ##y
    (first,), (mean,) = tagging.probabilities([words]), all_pieces.probabilities([words])
    ids = sentence_rows(TOKENIZER, words, 62, 31).rows[0].row.token_ids
    inputs = {"token_ids": [ids], "segment_ids": [[0] * 7], "padding_mask": [[1] * 7]}
    logits = np.asarray(model({name: np.array(value) for name, value in inputs.items()}))[0]
    of_pieces = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(first, of_pieces[[1, 2, 5]], atol=1e-5)
    np.testing.assert_allclose(mean[[0, 2]], of_pieces[[1, 5]], atol=1e-5)
    np.testing.assert_allclose(mean[1], of_pieces[2:5].mean(axis=0), atol=1e-5)
    assert tagging([words])[0].tags[1] == "B-place" and all_pieces([words])[0].tags[1] == "I-person"
    assert first.dtype == "float32"


def test_an_entity_far_into_a_sentence_is_found_in_its_window(tagging, all_pieces):
    words = ["the"] * 139 + ["good", "fine", "film"] + ["and"] * 60  # the 140th word, with length 64
    for model, length in ((tagging, 64), (all_pieces, 16)):
        assert model.max_length == length
        tagged = model([words, ["good"]])[0]
        assert [(span.label, span.start_word, span.end_word) for span in tagged.spans] == [
            ("person", 139, 141),
            ("place", 141, 142),
        ]
        assert tagged.windows > 3 and len(tagged.tags) == len(words)


def test_windows_tag_every_word_as_the_model_does_in_the_window_of_most_context():
    model = BertTokenClassifier(told_tagger(TOKENIZER, LABELS, {}).config, labels=LABELS, seed=3)
    tagging = EagerTagging(model=model, tokenizer=TOKENIZER, settings=TaskSettings(task="tagging", max_length=10))
    words = "the good book was not fine and i play a very dull song".split()
    (scores,) = tagging.probabilities([words])
    for row in sentence_rows(TOKENIZER, words, 8, 4).rows:
        first = row.words[0].word - row.words[0].start + 1
        (alone,) = tagging.probabilities([words[first : first + len(row.row.token_ids) - 2]])
        for word, _, _ in row.words:
            np.testing.assert_allclose(scores[word], alone[word - first], atol=1e-5)


def test_words_that_are_not_read_whole_are_counted_and_said(model, all_pieces):
    tagging = EagerTagging(model=model, tokenizer=TOKENIZER, settings=all_pieces.settings)
    assert not tagging.notes
    (tagged,) = tagging([["good", "x" * 30, "\u200b"]])
    assert tagged.tags[0] == "B-person" and len(tagged.tags) == 3 and tagged.cut_words == 1
    tagging([["Good"]])
    assert tagging.notes == [
        "The model lower-cases texts; 50% of them have upper-case letters.",
        "1 word has more pieces than a row holds (14): only the beginning is read.",
        "1 word has no piece in the vocabulary's terms: the unknown token stands for it.",
    ]


def test_other_forms_of_tags_make_spans_of_neighbours_or_none():
    told = {"good": "PER", "fine": "PER"}
    types = EagerTagging(model=told_tagger(TOKENIZER, ["O", "PER"], told), tokenizer=TOKENIZER)
    assert [span.text for span in types([["good", "fine", "the", "good"]])[0].spans] == ["good fine", "good"]
    told = {"film": "NOUN", "good": "ADJ"}
    speech = EagerTagging(model=told_tagger(TOKENIZER, ["DET", "NOUN", "ADJ"], told), tokenizer=TOKENIZER)
    tagged = speech(["The good film"])[0]
    assert tagged.tags == ("DET", "ADJ", "NOUN") and tagged.spans == ()


def test_a_model_directory_answers_as_the_model_with_its_settings(model, tagging, all_pieces, tmp_path):
    model.save_pretrained(tmp_path / "model", TOKENIZER)
    sentences = [["the", "good", "zyy"], ["film"] * 20]
    assert [t.tags for t in EagerTagging(tmp_path / "model")(sentences)] == [t.tags for t in tagging(sentences)]
    dataclasses.replace(all_pieces.settings, stride=12).save(tmp_path / "model")
    read = EagerTagging(tmp_path / "model")
    assert read.settings.labelled_pieces == "all" and read.max_length == 16
    assert [t.tags for t in read(sentences)] == [t.tags for t in all_pieces(sentences)]
    # A stride that was meant for longer rows is half of those that are asked for.
    assert [t.windows for t in EagerTagging(tmp_path / "model", max_length=10)(sentences)] == [1, 4]


def test_a_stride_beyond_a_window_is_refused(model):
    settings = TaskSettings(task="tagging", max_length=16, stride=15)
    with pytest.raises(InputError, match=r"`stride` must be at most `max_length` - 2"):
        WordTagging(model=model, tokenizer=TOKENIZER, settings=settings)


@pytest.mark.parametrize(
    "sentences,message",
    [
        ("good film", r"must be a list of texts or of lists of words. Received: 'good film'"),
        (None, r"must be a list of texts or of lists of words. Received: None"),
        ([["a"], 7], r"must be texts or lists of words. Received: int at place 1: 7"),
        ([["a", None]], r"must be texts or lists of words. Received: list at place 0: \['a', None\]"),
    ],
)
def test_what_is_no_sentence_is_refused(tagging, sentences, message):
    with pytest.raises(InputError, match="`sentences` " + message):
        tagging(sentences)


def test_probabilities_are_of_words(tagging):
    with pytest.raises(InputError, match=r"`sentences` must be lists of words. Received: a text, 'good'"):
        tagging.probabilities(["good"])
