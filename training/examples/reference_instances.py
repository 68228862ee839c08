"""The original's own way from text to masked sentence pairs: the oracle that the fast way is measured against.

Given the same text, vocabulary and seed, the instances are those of the released `create_pretraining_data.py`,
number for number: Python's `random.Random` is asked for the same draws in the same order. So it keeps the
original's faults too (a random second part may come from the same document and is labelled random all the same),
holds the whole corpus in memory and works on one core. For real corpora use `prepare`.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import NamedTuple

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import check_seed
from .pairs import RANDOM_NEXT, SPECIAL_TOKENS, TRUE_NEXT
from .reference_masking import masked_row, words_to_mask

_SHORTEST_ROW = SPECIAL_TOKENS + 2
_REDRAWS = 10

Document = list[list[int]]


class ReferenceInstance(NamedTuple):
    """One row with its masks, not filled up.

    Attributes:
        token_ids: `[CLS] A [SEP] B [SEP]`, the masked tokens replaced.
        segment_ids: 0 for the first part, 1 for the second.
        mask_positions: places of the tokens to predict, rising.
        mask_labels: what stood there.
        next_sentence_label: 1 if the second part was drawn at random.
    """

    token_ids: list[int]
    segment_ids: list[int]
    mask_positions: list[int]
    mask_labels: list[int]
    next_sentence_label: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReferenceSettings:
    """The original's options, with its defaults.

    Args:
        length: most tokens of a row (its `max_seq_length`), at least 5.
        max_predictions: most tokens to predict in a row (`max_predictions_per_seq`), at least 1.
        masked_share: share of the tokens to predict (`masked_lm_prob`).
        whole_words: mask all pieces of a word together (`do_whole_word_mask`).
        dupe_factor: times the corpus is gone through, at least 1.
        short_seq_prob: share of the documents, each time, that aim at a shorter length.
        seed: seed of every choice (`random_seed`).

    Raises:
        InputError: if a number is out of its range.
    """

    length: int = 128
    max_predictions: int = 20
    masked_share: float = 0.15
    whole_words: bool = False
    dupe_factor: int = 10
    short_seq_prob: float = 0.1
    seed: int = 12345

    def __post_init__(self) -> None:
        for name, least in (("length", _SHORTEST_ROW), ("max_predictions", 1), ("dupe_factor", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise InputError(f"`{name}` must be a whole number of at least {least}. Received: {name}={value!r}")
        for name in ("masked_share", "short_seq_prob"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise InputError(f"`{name}` must be a number from 0 to 1. Received: {name}={value!r}")
        check_seed(self.seed)  # Python's generator takes a negative one for its opposite.


def reference_instances(
    paths: Sequence[str | os.PathLike[str]], tokenizer: WordPieceTokenizer, settings: ReferenceSettings
) -> list[ReferenceInstance]:
    """Returns the original's instances of text files: a sentence on each line, a blank line between documents.

    As in the original, special tokens in the text are text, and a file without a blank line at its end shares
    its last document with the next file.

    Raises:
        InputError: if a file cannot be read or is not UTF-8.
    """
    return instances_of_lines(_lines(paths), tokenizer, settings)


def instances_of_lines(
    lines: Iterable[str],
    tokenizer: WordPieceTokenizer,
    settings: ReferenceSettings,
    advance: Callable[[int], object] = lambda total: None,
) -> list[ReferenceInstance]:
    """Returns the original's instances of lines of text; see `reference_instances`.

    `advance` is called after each time through a document, with how often it will have been called in the end.
    """
    rng = Random(settings.seed)
    documents = _documents(lines, tokenizer)
    rng.shuffle(documents)
    instances: list[ReferenceInstance] = []
    for _ in range(settings.dupe_factor):
        for index in range(len(documents)):
            instances += _instances_of_document(documents, index, tokenizer, settings, rng)
            advance(settings.dupe_factor * len(documents))
    rng.shuffle(instances)
    return instances


def _lines(paths: Sequence[str | os.PathLike[str]]) -> Iterator[str]:
    for path in paths:
        try:
            with Path(path).open("rb") as stream:
                for line in stream:
                    yield line.decode("utf-8")
        except OSError as error:
            raise InputError(
                f"`paths` must name files that can be read. Received: {str(path)!r} ({error.strerror})"
            ) from None
        except UnicodeDecodeError:
            raise InputError(f"`paths` must name files of UTF-8 text. Received: {str(path)!r}") from None


def _documents(lines: Iterable[str], tokenizer: WordPieceTokenizer) -> list[Document]:
    documents: list[Document] = [[]]
    for line in map(str.strip, lines):
        if not line:
            documents.append([])
        elif ids := tokenizer.encode_ids(line, keep_special_tokens=False):
            documents[-1].append(ids)
    return [document for document in documents if document]


def _instances_of_document(
    documents: list[Document], index: int, tokenizer: WordPieceTokenizer, settings: ReferenceSettings, rng: Random
) -> Iterator[ReferenceInstance]:
    most = settings.length - SPECIAL_TOKENS
    for first, second, label in _pairs_of_document(documents, index, most, settings.short_seq_prob, rng):
        _truncate(first, second, most, rng)
        row = [tokenizer.cls_token_id, *first, tokenizer.sep_token_id, *second, tokenizer.sep_token_id]
        masked, positions = masked_row(
            row,
            words_to_mask(row, tokenizer, whole_words=settings.whole_words),
            masked_share=settings.masked_share,
            max_predictions=settings.max_predictions,
            tokenizer=tokenizer,
            rng=rng,
        )
        yield ReferenceInstance(
            token_ids=masked,
            segment_ids=[0] * (len(first) + 2) + [1] * (len(second) + 1),
            mask_positions=positions,
            mask_labels=[row[position] for position in positions],
            next_sentence_label=label,
        )


def _pairs_of_document(
    documents: list[Document], index: int, most: int, short_seq_prob: float, rng: Random
) -> Iterator[tuple[list[int], list[int], int]]:
    """Yields (first, second, label), each when it is asked for: truncation and masks draw in between."""
    document = documents[index]
    target = rng.randint(2, most) if rng.random() < short_seq_prob else most
    start = 0
    while start < len(document):
        end = _end_of_chunk(document, start, target)
        middle = start + (rng.randint(1, end - start - 1) if end - start > 1 else 1)
        first = list(chain.from_iterable(document[start:middle]))
        if end - start == 1 or rng.random() < 0.5:
            yield first, _random_part(documents, index, target - len(first), rng), RANDOM_NEXT
            start = middle
        else:
            yield first, list(chain.from_iterable(document[middle:end])), TRUE_NEXT
            start = end


def _end_of_chunk(document: Document, start: int, target: int) -> int:
    size = 0
    for end in range(start, len(document)):
        size += len(document[end])
        if size >= target:
            return end + 1
    return len(document)


def _random_part(documents: list[Document], index: int, wanted: int, rng: Random) -> list[int]:
    other = index
    for _ in range(_REDRAWS):
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    document = documents[other]
    part: list[int] = []
    for sentence in document[rng.randint(0, len(document) - 1) :]:
        part += sentence
        if len(part) >= wanted:
            break
    return part


def _truncate(first: list[int], second: list[int], most: int, rng: Random) -> None:
    """Drops tokens from the front or the back of the longer part, of the second when they are equally long."""
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        longer.pop(0 if rng.random() < 0.5 else -1)
