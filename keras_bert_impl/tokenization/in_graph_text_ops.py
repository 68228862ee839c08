"""The WordPiece tokenizer inside a TensorFlow graph, with tensorflow-text's operations."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import CONTINUATION, WordPieceTokenizer

_PLAIN = r"[\t\n\r -~]*"
_PIECE_OF_PLAIN = re.compile("(?:##)?[0-9A-Za-z]+|[!-/:-@[-`{-~]")
_LONGEST_PIECE = 256  # what the operation can hold
_UNKNOWN, _NEVER = "[UNK]", "é"  # the operation wants the first one, and a word; neither occurs in plain words


class TextOpsWordPiece(InGraphWordPiece):
    """Gives the ids that a `WordPieceTokenizer` gives, several times as fast as `InGraphWordPiece` on plain text.

    Texts of printable ASCII without tokens to be kept whole need no normalisation but lower-casing, and all
    Unicode versions agree on them: these go to tensorflow-text's fast WordPiece operation. The other texts of a
    batch go the way of `InGraphWordPiece`.

    Args:
        tokenizer: the specification: vocabulary and options.

    Call arguments:
        texts: string tensor, `(batch,)`, UTF-8.
        keep_special_tokens: bool. Whether special tokens written in the text are kept whole.

    Returns:
        An int32 `tf.RaggedTensor`, `(batch, pieces)`, without `[CLS]` and `[SEP]`.

    Raises:
        InputError: if the tokenizer has more than 65,536 tokens to be kept whole, or a piece of over 256 letters.

    Reference:
        [Song et al., 2021](https://arxiv.org/abs/2012.15524).
    """

    def __init__(self, tokenizer: WordPieceTokenizer, name: str | None = None) -> None:
        super().__init__(tokenizer, name=name)
        self._lowercase = tokenizer.lowercase
        self._added = _containing(tokenizer.added_tokens)
        self._kept = _containing([*tokenizer.special_tokens, *tokenizer.added_tokens])
        # The operation goes astray where a token has white space, so it gets none that cannot be in a plain text.
        pieces = [token for token in tokenizer.vocabulary if _PIECE_OF_PLAIN.fullmatch(token)]
        if longest := max((piece for piece in pieces if len(piece) > _LONGEST_PIECE), default="", key=len):
            raise InputError(
                f"`tokenizer` must have no piece of over {_LONGEST_PIECE} letters. Received: one of {len(longest)}"
            )
        self._ids = np.array(
            [tokenizer.unk_token_id] * 2 + [tokenizer.start_pieces[piece] for piece in pieces], np.int32
        )
        self._plain_text = tensorflow_text.FastWordpieceTokenizer(
            [_UNKNOWN, _NEVER, *pieces],
            CONTINUATION,
            max_bytes_per_word=tokenizer.max_chars_per_word,
            token_out_type=tf.int32,
            unknown_token=_UNKNOWN,
        )

    def with_offsets(
        self, texts: Any, keep_special_tokens: bool = True, include_marks: bool = False
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the ids and where each piece starts and ends in its text, as `InGraphWordPiece.with_offsets` does."""
        with tf.device("/device:CPU:0"):
            texts = tf.convert_to_tensor(texts, tf.string)

            def others(texts: tf.Tensor) -> _Parts:
                ids, starts, ends = InGraphWordPiece.with_offsets(self, texts, keep_special_tokens, include_marks)
                return ids.row_splits, ids.values, starts.values, ends.values

            row_splits, *values = self._each_way(texts, keep_special_tokens, self._plain_with_offsets, others)
            ids, starts, ends = (tf.RaggedTensor.from_row_splits(part, row_splits, validate=False) for part in values)
            return ids, starts, ends

    def _tokenize(self, texts: tf.Tensor, keep_special_tokens: bool) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.device("/device:CPU:0"):

            def others(texts: tf.Tensor) -> _Parts:
                ids, row_splits = InGraphWordPiece._tokenize(self, texts, keep_special_tokens)
                return row_splits, ids

            row_splits, ids = self._each_way(texts, keep_special_tokens, self._plain_ids, others)
            return ids, row_splits

    def _each_way(
        self,
        texts: tf.Tensor,
        keep_special_tokens: bool,
        cut_plain: Callable[[tf.Tensor], "_Parts"],
        cut_others: Callable[[tf.Tensor], "_Parts"],
    ) -> "_Parts":
        """Sends plain texts one way and the others another, and puts the results in the order of the texts."""
        is_plain = tf.strings.regex_full_match(texts, _PLAIN)
        tokens = self._kept if keep_special_tokens else self._added
        if tokens is not None:
            is_plain &= ~tf.strings.regex_full_match(texts, tokens)

        def mixed() -> _Parts:
            plain, others = (tf.where(mask)[:, 0] for mask in (is_plain, ~is_plain))
            plain_splits, *plain_values = cut_plain(tf.gather(texts, plain))
            other_splits, *other_values = cut_others(tf.gather(texts, others))
            row_splits = tf.concat([plain_splits, plain_splits[-1] + other_splits[1:]], axis=0)
            order = tf.argsort(tf.concat([plain, others], axis=0))
            in_order = [
                tf.gather(tf.RaggedTensor.from_row_splits(tf.concat(both, axis=0), row_splits, validate=False), order)
                for both in zip(plain_values, other_values, strict=True)
            ]
            return in_order[0].row_splits, *(part.values for part in in_order)

        return tf.cond(tf.reduce_all(is_plain), lambda: cut_plain(texts), mixed)

    def _plain_ids(self, texts: tf.Tensor) -> "_Parts":
        ids = self._plain_text.tokenize(self._cased(texts))
        return ids.row_splits, tf.gather(tf.constant(self._ids), ids.values)

    def _plain_with_offsets(self, texts: tf.Tensor) -> "_Parts":
        ids, starts, ends = self._plain_text.tokenize_with_offsets(self._cased(texts))
        offsets = (tf.cast(part.values, tf.int32) for part in (starts, ends))  # bytes, of which each is a character
        return ids.row_splits, tf.gather(tf.constant(self._ids), ids.values), *offsets

    def _cased(self, texts: tf.Tensor) -> tf.Tensor:
        # Without an encoding, lower-casing changes the 26 letters of ASCII, under every locale.
        return tf.strings.lower(texts) if self._lowercase else texts


# Row splits and flat values of ragged tensors that have them in common.
_Parts = tuple[tf.Tensor, ...]


def _containing(tokens: Iterable[str]) -> str | None:
    """Returns a regular expression for plain texts that contain one of the tokens, or None if none can."""
    plain = sorted({token for token in tokens if re.fullmatch(_PLAIN, token)})
    return f"(?s).*(?:{'|'.join(map(re.escape, plain))}).*" if plain else None
