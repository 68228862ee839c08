"""From the words of a sentence to rows of a model, each word with its place in one of them."""

import bisect
import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.rows import TextRow
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


class PlacedWord(NamedTuple):
    """A word whose pieces stand at the positions `start` to `end` (not included) of a row."""

    word: int
    start: int
    end: int


@dataclasses.dataclass(frozen=True, slots=True)
class WordRow:
    """A window of a sentence as a row of a model.

    Attributes:
        row: `[CLS]`, the pieces of the window's words, `[SEP]`.
        words: those that are read here, in order: they have their most context in this window.
    """

    row: TextRow
    words: tuple[PlacedWord, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class SentenceRows:
    """A sentence in windows.

    Attributes:
        rows: the windows; every word is among the `words` of exactly one.
        cut_words: words of more pieces than a window holds, of which the first pieces are kept.
        unknown_words: words without pieces, such as a lone control character; the unknown token stands for them.
    """

    rows: list[WordRow]
    cut_words: int
    unknown_words: int


def window_sizes(max_length: int, stride: int | None) -> tuple[int, int]:
    """Returns the pieces of a window, and those by which one begins after another: a half if `stride` is None.

    Raises:
        InputError: if windows that far apart would leave words out.
    """
    room = max_length - 2
    if stride is None:
        return room, max(room // 2, 1)
    if stride > room:
        raise InputError(
            "`stride` must be at most `max_length` - 2, the pieces of a window, so that no word is left out. "
            f"Received: stride={stride}, max_length={max_length}"
        )
    return room, stride


def sentence_rows(tokenizer: WordPieceTokenizer, words: Sequence[str], room: int, stride: int) -> SentenceRows:
    """Cuts each word into pieces by itself, and a sentence of more than `room` pieces into windows that overlap.

    Windows are made of whole words. Each begins with the first word that lies `stride` or more pieces after the
    beginning of the one before; the last begins as early as its words fit, so that they have the most context. A
    word is read in the window that has most pieces on its poorer side (as for answers in the original's
    run_squad.py), of equals in the fullest, of these in the first; a window in which no word is read is left out.

    Args:
        tokenizer: the model's.
        words: the words, each with any text in it.
        room: pieces that a window holds.
        stride: pieces from the beginning of a window to that of the next.
    """
    all_pieces = [tokenizer.encode_ids(word) for word in words]
    unknown = sum(not pieces for pieces in all_pieces)
    cut = sum(len(pieces) > room for pieces in all_pieces)
    pieces = [word_pieces[:room] or [tokenizer.unk_token_id] for word_pieces in all_pieces]
    edges = [0, *itertools.accumulate(map(len, pieces))]
    windows = _windows(edges, room, stride)
    rows = []
    for (first, last), read in zip(windows, _words_read(edges, windows), strict=True):
        if not read:
            continue
        ids = list(itertools.chain.from_iterable(pieces[first:last]))
        truncated = len(all_pieces[first]) > room  # Such a word fills a window alone.
        row = TextRow([tokenizer.cls_token_id, *ids, tokenizer.sep_token_id], [0] * (len(ids) + 2), truncated)
        shift = 1 - edges[first]
        rows.append(WordRow(row, tuple(PlacedWord(w, edges[w] + shift, edges[w + 1] + shift) for w in read)))
    return SentenceRows(rows, cut, unknown)


def _windows(edges: Sequence[int], room: int, stride: int) -> list[tuple[int, int]]:
    """Returns the first and, not included, the last word of each window; `edges` are where words begin and end."""
    count = len(edges) - 1
    begin_of_last = bisect.bisect_left(edges, edges[-1] - room)
    windows = []
    first = 0
    while count:
        last = bisect.bisect_right(edges, edges[first] + room) - 1
        windows.append((first, last))
        if last == count:
            break
        # Not after the first word that is not yet in a window.
        first = min(bisect.bisect_left(edges, edges[first] + stride), last, begin_of_last)
    return windows


def _words_read(edges: Sequence[int], windows: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Returns the words that are read in each window."""
    read: list[list[int]] = [[] for _ in windows]
    best: dict[int, tuple[tuple[int, int], int]] = {}
    for place, (first, last) in enumerate(windows):
        for word in range(first, last):
            poorer_side = min(edges[word] - edges[first], edges[last] - edges[word + 1])
            context = (poorer_side, edges[last] - edges[first])
            if word not in best or context > best[word][0]:
                best[word] = (context, place)
    for word, (_, place) in best.items():
        read[place].append(word)
    return read
