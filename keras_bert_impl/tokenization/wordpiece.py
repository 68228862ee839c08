"""The WordPiece tokenizer of BERT, in Python."""

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.tokenizer_config import (
    FAST_FILE,
    read_added_tokens,
    read_fast_vocabulary,
    read_options,
    with_added_tokens,
    write_options,
)
from keras_bert_impl.tokenization.vocabulary_file import load_vocabulary, save_vocabulary

__all__ = ["Encoding", "WordPieceTokenizer", "load_vocabulary"]

CONTINUATION = "##"
_CACHED_WORDS = 1 << 17
_LONGEST_CACHED_WORD = 48


class Encoding(NamedTuple):
    """A text as pieces. Each offset pair slices the text: `text[start:end]` is what the piece was made from."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


# Id, start, end: a plain tuple, since millions are made.
_Piece = tuple[int, int, int]


class WordPieceTokenizer:
    """Cuts text into the pieces of a vocabulary, exactly as the original BERT does.

    Each word that `TextNormalizer` finds is cut from left to right into the longest pieces of the vocabulary; a
    word that cannot be cut, or is too long, becomes the unknown token. No `[CLS]` or `[SEP]` is added.

    Special tokens that are written in the text (`"the [MASK] sat"`) are kept whole, wherever they stand; with
    `keep_special_tokens=False` they are text like any other, as in the original. Added tokens are kept whole
    always. Both are looked for before anything else is done to the text, exactly as they are written, from left to
    right, and where several begin at one place the longest is taken.

    The result depends on nothing but text, vocabulary and options: not on the Python version or the locale.

    Args:
        vocabulary: sequence of tokens; the position is the id. Pieces that go on inside a word start with `##`.
        lowercase: bool. Lower-case the text.
        strip_accents: bool or None. Remove accents; None: as `lowercase`.
        split_cjk: bool. Whether every CJK ideograph is a word by itself.
        max_chars_per_word: int. A longer word becomes the unknown token.
        unk_token: string. The unknown token.
        cls_token: string. The token that starts every sequence.
        sep_token: string. The token that ends every segment.
        pad_token: string. The token that fills rows up.
        mask_token: string. The token to be predicted.
        added_tokens: sequence of tokens of the vocabulary to be kept whole, such as `"[E1]"` or `"vitamin D"`.
            Special tokens among them stay special.

    Attributes:
        special_tokens, special_token_ids: tuples, padding, unknown, first, separating, masked.
        start_pieces: dict from the pieces that may start a word to their ids.
        continuation_pieces: dict from those that go on inside a word, without `##`, to their ids.
        normalizer: the `TextNormalizer` that finds the words.

    Raises:
        InputError: if the vocabulary lacks a special or an added token or has a token twice, an added token could
            not be written to a vocabulary file, or an option is not of its kind.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805); `tokenization.py` of the released code.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_cjk: bool = True,
        max_chars_per_word: int = 200,
        unk_token: str = "[UNK]",
        cls_token: str = "[CLS]",
        sep_token: str = "[SEP]",
        pad_token: str = "[PAD]",
        mask_token: str = "[MASK]",
        added_tokens: Sequence[str] = (),
    ) -> None:
        self.vocabulary = tuple(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.split_cjk = split_cjk
        self.max_chars_per_word = max_chars_per_word
        self.unk_token = unk_token
        self.cls_token = cls_token
        self.sep_token = sep_token
        self.pad_token = pad_token
        self.mask_token = mask_token

        self._check_options()
        self.start_pieces = {token: index for index, token in enumerate(self.vocabulary)}
        self._check_vocabulary()
        self.special_tokens = (pad_token, unk_token, cls_token, sep_token, mask_token)
        self.special_token_ids = tuple(self._special_id(token) for token in self.special_tokens)
        self.pad_token_id, self.unk_token_id, self.cls_token_id, self.sep_token_id, self.mask_token_id = (
            self.special_token_ids
        )

        self.added_tokens = self._checked_added_tokens(added_tokens)

        self.normalizer = TextNormalizer(
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else strip_accents,
            split_cjk=split_cjk,
        )
        self.continuation_pieces = {
            token.removeprefix(CONTINUATION): index
            for token, index in self.start_pieces.items()
            if token.startswith(CONTINUATION)
        }
        self._longest_start = max(map(len, self.start_pieces))
        self._longest_continuation = max(map(len, self.continuation_pieces), default=0)
        self._kept_tokens = _any_of([*self.special_tokens, *self.added_tokens])
        self._added_tokens = _any_of(self.added_tokens) if self.added_tokens else None
        self._word_pieces = _Cache(self._cut_word)
        self._stretch_pieces = _Cache(self._cut_stretch)
        self._stretch_ids = _Cache(self._stretch_to_ids)

    @classmethod
    def from_vocab_file(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Builds the tokenizer from a vocabulary file, one token per line; see `load_vocabulary` for the checks."""
        return cls(load_vocabulary(path, special_tokens=_special_tokens(options)), **options)

    @classmethod
    def from_pretrained(cls, directory: str | os.PathLike[str], **options: Any) -> Self:
        """Builds the tokenizer of a model directory: `vocab.txt` (else that of `tokenizer.json`), and the options.

        Args:
            directory: path of the directory; Hugging Face's BERT directories are such.
            **options: replace those found in `tokenizer_config.json` and `tokenizer.json`.
        """
        folder = Path(directory)
        options = {**read_options(folder), **options}
        if not (folder / "vocab.txt").is_file() and (folder / FAST_FILE).is_file():
            return cls(read_fast_vocabulary(folder), **options)
        added = read_added_tokens(folder)
        required = [token for token in _special_tokens(options) if token not in added]
        vocabulary = load_vocabulary(folder / "vocab.txt", special_tokens=required)
        return cls(with_added_tokens(vocabulary, added, folder), **options)

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Writes `vocab.txt` and `tokenizer_config.json` into the directory, which is made if absent."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        save_vocabulary(self.vocabulary, folder / "vocab.txt")
        write_options(self.options, {token: self.start_pieces[token] for token in self.added_tokens}, folder)

    @property
    def options(self) -> dict[str, Any]:
        """The constructor's options, by name."""
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_cjk": self.split_cjk,
            "max_chars_per_word": self.max_chars_per_word,
            "unk_token": self.unk_token,
            "cls_token": self.cls_token,
            "sep_token": self.sep_token,
            "pad_token": self.pad_token,
            "mask_token": self.mask_token,
            "added_tokens": self.added_tokens,
        }

    @property
    def vocab_size(self) -> int:
        """Number of tokens."""
        return len(self.vocabulary)

    def id_to_token(self, token_id: int) -> str:
        """Returns the token of an id; raises `InputError` outside the vocabulary."""
        if not 0 <= token_id < len(self.vocabulary):
            raise InputError(
                f"`token_id` must be at least 0 and less than {len(self.vocabulary)}. Received: token_id={token_id}"
            )
        return self.vocabulary[token_id]

    def token_to_id(self, token: str) -> int:
        """Returns the id of a token, and that of the unknown token if it is not in the vocabulary."""
        return self.start_pieces.get(token, self.unk_token_id)

    def tokenize(self, text: str, *, keep_special_tokens: bool = True) -> list[str]:
        """Returns the pieces of the text as strings."""
        return [
            self.vocabulary[token_id] for token_id in self.encode_ids(text, keep_special_tokens=keep_special_tokens)
        ]

    def encode_ids(self, text: str, *, keep_special_tokens: bool = True) -> list[int]:
        """Returns the ids of the pieces: the fast way, where offsets are not wanted."""
        ids: list[int] = []
        stretch_ids = self._stretch_ids
        for part, _, special_id in self.parts(text, keep_special_tokens):
            if special_id is not None:
                ids.append(special_id)
                continue
            for stretch in self.normalizer.stretches(part):
                ids += stretch_ids[stretch]
        return ids

    def encode(self, text: str, *, keep_special_tokens: bool = True) -> Encoding:
        """Returns ids, tokens and offsets of the pieces.

        The offsets are in order and never overlap, except for pieces that were made from one and the same
        character (a Hangul syllable taken apart).

        Raises:
            InputError: if `text` is not a string or holds a lone surrogate.
        """
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        for part, begin, special_id in self.parts(text, keep_special_tokens):
            if special_id is not None:
                ids.append(special_id)
                offsets.append((begin, begin + len(part)))
                continue
            for match in self.normalizer.stretch_matches(part):
                shift = begin + match.start()
                for token_id, start, end in self._stretch_pieces[match[0]]:
                    ids.append(token_id)
                    offsets.append((start + shift, end + shift))
        return Encoding(ids, [self.vocabulary[token_id] for token_id in ids], offsets)

    def parts(self, text: str, keep_special_tokens: bool = True) -> Iterator[tuple[str, int, int | None]]:
        """Yields stretches of text and tokens kept whole, each with its start and, if kept whole, its id."""
        if not isinstance(text, str):
            raise InputError(f"`text` must be a string. Received: {type(text).__name__}")
        start = 0
        kept_tokens = self._kept_tokens if keep_special_tokens else self._added_tokens
        if kept_tokens is not None:
            for match in kept_tokens.finditer(text):
                yield text[start : match.start()], start, None
                yield match[0], match.start(), self.start_pieces[match[0]]
                start = match.end()
        yield text[start:], start, None

    def unknown_words(self, text: str, *, keep_special_tokens: bool = True) -> list[str]:
        """Returns the words of the text, as normalised, that become the unknown token."""
        unknown: list[str] = []
        for part, _, special_id in self.parts(text, keep_special_tokens):
            for stretch in self.normalizer.stretches(part) if special_id is None else ():
                if self.unk_token_id in self._stretch_ids[stretch]:
                    words = self.normalizer.word_texts(stretch)
                    unknown += [word for word in words if self._word_pieces[word][0][0] == self.unk_token_id]
        return unknown

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """Returns readable text: pieces of a word joined, words separated by spaces.

        Args:
            ids: token ids.
            skip_special_tokens: whether to leave out `[CLS]`, `[SEP]`, `[PAD]`, `[MASK]` and `[UNK]`.
        """
        skipped = set(self.special_token_ids) if skip_special_tokens else set()
        words: list[str] = []
        for token in (self.id_to_token(int(token_id)) for token_id in ids if int(token_id) not in skipped):
            if token.startswith(CONTINUATION) and token != CONTINUATION and words:
                words[-1] += token.removeprefix(CONTINUATION)
            else:
                words.append(token)
        return " ".join(words)

    def __reduce__(self) -> tuple[Any, ...]:
        # Worker processes get the vocabulary and the options, not the caches.
        return functools.partial(type(self), **self.options), (self.vocabulary,)

    def _check_vocabulary(self) -> None:
        if len(self.start_pieces) < len(self.vocabulary):
            twice = next(token for index, token in enumerate(self.vocabulary) if self.start_pieces[token] != index)
            raise InputError(f"`vocabulary` must not have a token twice. Received: {twice!r}")

    def _check_options(self) -> None:
        for option in ("lowercase", "strip_accents", "split_cjk"):
            value = getattr(self, option)
            if not isinstance(value, bool) and not (option == "strip_accents" and value is None):
                rule = "True, False or None" if option == "strip_accents" else "True or False"
                raise InputError(f"`{option}` must be {rule}. Received: {option}={value!r}")
        limit = self.max_chars_per_word
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InputError(
                f"`max_chars_per_word` must be a positive whole number. Received: max_chars_per_word={limit!r}"
            )

    def _checked_added_tokens(self, added_tokens: Sequence[str]) -> tuple[str, ...]:
        if isinstance(added_tokens, str):
            raise InputError(f"`added_tokens` must be a list of tokens. Received: added_tokens={added_tokens!r}")
        for token in added_tokens:
            if not isinstance(token, str) or token not in self.start_pieces:
                raise InputError(f"`added_tokens` must be tokens of the vocabulary. Received: {token!r}")
            if token != token.strip() or "\n" in token:
                raise InputError(
                    "`added_tokens` must neither begin nor end with white space nor have line ends. "
                    f"Received: {token!r}"
                )
        return tuple(sorted(set(added_tokens) - set(self.special_tokens), key=self.start_pieces.__getitem__))

    def _special_id(self, token: str) -> int:
        if not token or token not in self.start_pieces:
            raise InputError(
                f"`vocabulary` must contain the special token {token!r}. Received: a vocabulary without it"
            )
        return self.start_pieces[token]

    def _stretch_to_ids(self, stretch: str) -> tuple[int, ...]:
        word_pieces = self._word_pieces
        return tuple([piece[0] for word in self.normalizer.word_texts(stretch) for piece in word_pieces[word]])

    def _cut_stretch(self, stretch: str) -> tuple[_Piece, ...]:
        return tuple(
            [
                (token_id, word.sources[start], word.sources[end - 1] + 1)
                for word in self.normalizer.words(stretch)
                for token_id, start, end in self._word_pieces[word.text]
            ]
        )

    def _cut_word(self, word: str) -> tuple[_Piece, ...]:
        """Cuts a normalised word into the longest pieces, from left to right."""
        unknown = ((self.unk_token_id, 0, len(word)),)
        if len(word) > self.max_chars_per_word:
            return unknown
        pieces: list[_Piece] = []
        start, known, longest = 0, self.start_pieces, self._longest_start
        while start < len(word):
            end = min(len(word), start + longest)
            while end > start and word[start:end] not in known:
                end -= 1
            if end == start:
                return unknown
            pieces.append((known[word[start:end]], start, end))
            start, known, longest = end, self.continuation_pieces, self._longest_continuation
        return tuple(pieces)


def _special_tokens(options: Mapping[str, Any]) -> list[str]:
    """Returns the special tokens that a tokenizer with these options has."""
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return [options.get(name, f"[{name.removesuffix('_token').upper()}]") for name in names]


def _any_of(tokens: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(set(tokens), key=lambda token: (-len(token), token))
    return re.compile("|".join(map(re.escape, longest_first)))


class _Cache(dict[str, tuple]):
    """Remembers what `compute` made of short strings; emptied when full, so that memory stays bounded."""

    def __init__(self, compute: Any) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: str) -> tuple:
        value = self._compute(key)
        if len(key) <= _LONGEST_CACHED_WORD:
            if len(self) >= _CACHED_WORDS:
                self.clear()
            self[key] = value
        return value
