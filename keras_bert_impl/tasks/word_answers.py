"""Tags and spans of words, from what a model gives for rows."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.rows import check_characters
from keras_bert_impl.tasks.softmax import softmax
from keras_bert_impl.tasks.tag_spans import tag_form, tag_spans, with_marks
from keras_bert_impl.tasks.text_words import TextWord, text_words
from keras_bert_impl.tasks.word_windows import SentenceRows, sentence_rows, window_sizes
from keras_bert_impl.tokenization.unicode_tables import CJK, unicode_tables


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Words that have a label together, such as a name.

    Attributes:
        label: such as `"person"`.
        start_word, end_word: the words from `start_word` on, before `end_word`.
        text: a slice of the text; of a list of words these, with spaces between but for ideographs.
        probability: the mean of those of its words' tags.
        start, end: `text[start:end]` is the span; None for a list of words.
    """

    label: str
    start_word: int
    end_word: int
    text: str
    probability: float
    start: int | None = None
    end: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class TaggedWords:
    """A sentence with a tag for each word.

    Attributes:
        words: the words as given, or as found in the text.
        tags: the likeliest tag of each, as the model names them.
        probabilities: that of each tag.
        spans: of the tags, by the rules of conlleval; none if the model's tags do not mark spans.
        windows: rows that the sentence took.
        cut_words: words of more pieces than a row holds, of which only the beginning was read.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    spans: tuple[Span, ...]
    windows: int
    cut_words: int = 0


class WordAnswers(AskedModel):
    """Answers sentences, by the logits of rows."""

    def cut_into_rows(self) -> None:
        """Makes ready for sentences, by the settings."""
        stride = self.settings.stride
        if self._max_length is not None and stride is not None and stride > self._max_length - 2:
            stride = None  # It was meant for the longer rows of the training.
        self._room, self._stride = window_sizes(self.max_length, stride)
        self._form_of_tags = tag_form(self.model.labels)
        self._cut_words = self._unknown_words = 0

    @property
    def notes(self) -> list[str]:
        """What the caller may say about all sentences so far."""
        return [*super().notes, *word_notes(self._cut_words, self._unknown_words, self._room)]

    def __call__(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        batch_size: int = 32,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[TaggedWords]:
        """Tags sentences.

        Args:
            sentences: texts, or lists of words.
            batch_size: rows that are worked on at once.
            on_progress: takes the number of rows of each batch that is done.

        Returns:
            One `TaggedWords` for each sentence, in order; one without words for an empty sentence.

        Raises:
            InputError: if a sentence is neither a text nor a list of words.
        """
        texts = [_sentence(sentence, place) for place, sentence in enumerate(_checked(sentences))]
        words = [
            text_words(self.tokenizer, text) if isinstance(text, str) else [TextWord(word, -1, -1) for word in text]
            for text in texts
        ]
        cut = [self._rows([word.text for word in sentence]) for sentence in words]
        scores = self._scores(cut, [len(sentence) for sentence in words], batch_size, on_progress)
        return [self._tagged(*sentence) for sentence in zip(texts, words, cut, scores, strict=True)]

    def probabilities(self, sentences: Iterable[Sequence[str]], *, batch_size: int = 32) -> list[np.ndarray]:
        """Returns the probabilities of all labels for every word of lists of words: float32 `(words, labels)` each.

        Raises:
            InputError: if a sentence is no list of words.
        """
        lists = [_sentence(sentence, place) for place, sentence in enumerate(_checked(sentences))]
        for words in lists:
            if isinstance(words, str):
                raise InputError(f"`sentences` must be lists of words. Received: a text, {words[:40]!r}")
        return self._scores([self._rows(words) for words in lists], [len(words) for words in lists], batch_size, None)

    def _rows(self, words: Sequence[str]) -> SentenceRows:
        rows = sentence_rows(self.tokenizer, words, self._room, self._stride)
        self.count_texts([" ".join(words)])
        self._cut_words += rows.cut_words
        self._unknown_words += rows.unknown_words
        return rows

    def _scores(
        self,
        sentences: Sequence[SentenceRows],
        counts: Sequence[int],
        batch_size: int,
        on_progress: Callable[[int], None] | None,
    ) -> list[np.ndarray]:
        """Returns the probabilities of the labels of all words, from the rows in which each is read."""
        outputs = iter(self.outputs([row.row for rows in sentences for row in rows.rows], batch_size, on_progress))
        scores = []
        for rows, count in zip(sentences, counts, strict=True):
            of_words = np.empty((count, len(self.model.labels)), "float32")
            for row in rows.rows:
                of_pieces = softmax(next(outputs))
                places = [word.word for word in row.words]
                if self.settings.labelled_pieces == "all":
                    of_words[places] = [of_pieces[word.start : word.end].mean(axis=0) for word in row.words]
                else:
                    of_words[places] = of_pieces[[word.start for word in row.words]]
            scores.append(of_words)
        return scores

    def _tagged(
        self, text: str | Sequence[str], words: Sequence[TextWord], rows: SentenceRows, scores: np.ndarray
    ) -> TaggedWords:
        labels = self.model.labels
        tags = [labels[place] for place in scores.argmax(axis=1)]
        sure = scores.max(axis=1)
        spans = []
        for label, first, last in tag_spans(with_marks(tags, self._form_of_tags)) if self._marks_spans else ():
            start, end = words[first].start, words[last - 1].end
            spans.append(
                Span(
                    label,
                    first,
                    last,
                    text[start:end] if isinstance(text, str) else joined([word.text for word in words[first:last]]),
                    float(sure[first:last].mean()),
                    *((start, end) if isinstance(text, str) else ()),
                )
            )
        return TaggedWords(
            tuple(word.text for word in words),
            tuple(tags),
            tuple(map(float, sure)),
            tuple(spans),
            len(rows.rows),
            rows.cut_words,
        )

    @property
    def _marks_spans(self) -> bool:
        return self._form_of_tags != "words"


def word_notes(cut_words: int, unknown_words: int, room: int) -> list[str]:
    """Returns sentences on words that were not read as they are."""
    notes = []
    if cut_words:
        notes.append(f"{_words(cut_words)} more pieces than a row holds ({room}): only the beginning is read.")
    if unknown_words:
        notes.append(f"{_words(unknown_words)} no piece in the vocabulary's terms: the unknown token stands for it.")
    return notes


def joined(words: Sequence[str]) -> str:
    """Returns words as a text, with spaces between, but none where one ideograph follows another."""
    text = ""
    for before, word in itertools.pairwise(["", *words]):
        text += word if not before or (_is_ideographic(before) and _is_ideographic(word)) else f" {word}"
    return text


def _is_ideographic(word: str) -> bool:
    return bool(word and unicode_tables().flags[ord(word[0])] & CJK)


def _words(count: int) -> str:
    return "1 word has" if count == 1 else f"{count:,} words have"


def _checked(sentences: Any) -> Iterable[Any]:
    if isinstance(sentences, str | bytes) or not isinstance(sentences, Iterable):
        raise InputError(f"`sentences` must be a list of texts or of lists of words. Received: {sentences!r}")
    return sentences


def _sentence(sentence: Any, place: int) -> str | Sequence[str]:
    if isinstance(sentence, str):
        check_characters("sentences", sentence, place)
        return sentence
    words = None if isinstance(sentence, bytes | dict) or not isinstance(sentence, Iterable) else list(sentence)
    if words is None or not all(isinstance(word, str) for word in words):
        raise InputError(
            f"`sentences` must be texts or lists of words. Received: {type(sentence).__name__} at place {place}: "
            f"{str(sentence)[:60]}"
        )
    for word in words:
        check_characters("sentences", word, place)
    return words
