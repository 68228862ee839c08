"""From a text to the ids of its pieces, of TFLite operators and three of tensorflow-text."""

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import CONTINUATION, WordPieceTokenizer

from ..graph.graph import Graph, Value
from ..graph.layers import reshape
from .normalizer_model import normalizer_model
from .values import between

_NORMALIZE, _WORDS, _BYTES, _PIECES = (
    "FastBertNormalize",
    "TFText>WhitespaceTokenizeWithOffsetsV2",
    "TFText>ByteSplitWithOffsets",
    "FastWordpieceTokenizeWithOffsets",
)
CUSTOM_OPERATORS = (_NORMALIZE, _WORDS, _BYTES, _PIECES)
"""What an app must register for a graph that takes text."""

_LONGEST_PIECE = 256  # what the operator can hold
_BYTES_OF_A_LETTER = 4
_FIRST_CONTINUING, _FIRST_LEADING = 0x80, 0xC0  # bytes of UTF-8 between these go on with a letter
# A bit for each character that separates words: the space alone, since no other one is left by then.
_SPACE_ALONE = b"\0\0\0\0\x01"


def pieces(graph: Graph, tokenizer: WordPieceTokenizer, text: Value) -> Value:
    """Adds what cuts a text into pieces, as `encode_ids` with `keep_special_tokens=False` does.

    The operators get our own tables, so the rules are those of the tokenizer and its frozen Unicode version. What
    depends on a character's neighbours is not in them: a capital sigma is never taken for a final one, and spacing
    marks are not put into canonical order. Texts must be UTF-8.

    Args:
        graph: receives it.
        tokenizer: the specification.
        text: string, `(1,)`.

    Returns:
        int32, `(pieces,)`.

    Raises:
        InputError: if the tokenizer has tokens to be kept whole, or a piece of over 256 bytes.
    """
    if tokenizer.added_tokens:
        raise InputError(
            "`model` must have no added tokens for text in, which are kept whole before anything else is done. "
            f"Received: {', '.join(map(repr, tokenizer.added_tokens[:3]))}"
        )
    rules = _stored_bytes(graph, normalizer_model(tokenizer.normalizer), "normalizer")
    row = ((None,), "int64")
    normal, *_ = graph.custom(_NORMALIZE, text, rules, outputs=[((1,), "string"), row, row], get_offsets=False)
    places = [((None,), "int32")] * 2
    words, *_ = graph.custom(
        _WORDS, normal, graph.text(_SPACE_ALONE, "separators"), outputs=[((None,), "string"), row, *places]
    )
    letters, letter_splits, *_ = graph.custom(_BYTES, words, outputs=[((None,), "uint8"), row, *places])
    model, ids_of = _piece_model(tokenizer)
    _, found, piece_splits, *_ = graph.custom(
        _PIECES, words, _stored_bytes(graph, model, "pieces"), outputs=[((None,), "string"), row, row, row, row]
    )
    numbers = graph.cast(found, "int32")
    table = graph.stored(np.array(ids_of, np.int32), "ids")
    ids = graph.add("GATHER", table, numbers, shape=(None,), axis=0)
    is_long = _long_words(graph, letters, graph.cast(letter_splits, "int32"), tokenizer.max_chars_per_word)
    return _unknown_where(graph, ids, graph.cast(piece_splits, "int32"), is_long, tokenizer.unk_token_id)


def _piece_model(tokenizer: WordPieceTokenizer) -> tuple[bytes, list[int]]:
    """Returns the operator's table of the vocabulary, and the id of each of its numbers."""
    from tensorflow_text.core.pybinds import pywrap_fast_wordpiece_tokenizer_model_builder as builder

    # The operator goes astray where a token has white space, and wants letters behind the mark of a continuation.
    used = {
        token: number
        for token, number in tokenizer.start_pieces.items()
        if token == tokenizer.unk_token or (not any(map(str.isspace, token)) and token not in ("", CONTINUATION))
    }
    if longest := max((token for token in used if len(token.encode()) > _LONGEST_PIECE), default="", key=len):
        raise InputError(
            f"`model` must have no piece of over {_LONGEST_PIECE} bytes for text in. "
            f"Received: one of {len(longest.encode())}"
        )
    most_bytes = _BYTES_OF_A_LETTER * tokenizer.max_chars_per_word
    model = builder.build_fast_wordpiece_model(list(used), most_bytes, CONTINUATION, tokenizer.unk_token, True, False)
    return bytes(model), list(used.values())


def _long_words(graph: Graph, letters: Value, splits: Value, limit: int) -> Value:
    """Adds which words have more letters than they may: bool, `(words,)`.

    The operator's own limit counts bytes.
    """
    byte = graph.cast(letters, "int32")
    is_plain = graph.add("LESS", byte, graph.constant(_FIRST_CONTINUING, "int32"), shape=(None,), dtype="bool")
    leads = graph.add("GREATER_EQUAL", byte, graph.constant(_FIRST_LEADING, "int32"), shape=(None,), dtype="bool")
    begins = graph.cast(graph.add("LOGICAL_OR", is_plain, leads, shape=(None,)), "int32")
    sums = graph.add("CUMSUM", begins, graph.constant(0, "int32"), shape=(None,))
    sums = graph.add("CONCATENATION", graph.constant([0], "int32"), sums, shape=(None,), axis=0)
    at_splits = graph.add("GATHER", sums, splits, shape=(None,), axis=0)
    counts = graph.add("SUB", between(graph, at_splits, 1, None), between(graph, at_splits, None, -1), shape=(None,))
    return graph.add("GREATER", counts, graph.constant(limit, "int32"), shape=(None,), dtype="bool")


def _unknown_where(graph: Graph, ids: Value, splits: Value, is_long: Value, unknown: int) -> Value:
    """Puts the unknown token for all pieces of the words that are too long."""
    one, starts = graph.constant(1, "int32"), between(graph, splits, None, -1)
    count = graph.add("SHAPE", ids, shape=(1,), dtype="int32", outType=2)
    ones = graph.add("ADD", graph.add("MUL", starts, graph.constant(0, "int32"), shape=(None,)), one, shape=(None,))
    places = reshape(graph, starts, (None, 1))
    firsts = graph.add("SCATTER_ND", places, ones, count, shape=(None,), dtype="int32")
    words = graph.add("CUMSUM", firsts, graph.constant(0, "int32"), shape=(None,))
    words = graph.add("SUB", words, one, shape=(None,))
    of_long = graph.add("GATHER", graph.cast(is_long, "int32"), words, shape=(None,), axis=0)
    replaced = graph.add("EQUAL", of_long, one, shape=(None,), dtype="bool")
    ids = graph.add("SELECT_V2", replaced, graph.constant(unknown, "int32"), ids, shape=(None,), dtype="int32")
    kept = graph.add("GREATER_EQUAL", firsts, of_long, shape=(None,), dtype="bool")
    found = graph.add("WHERE", kept, shape=(None, 1), dtype="int64")
    return graph.add("GATHER", ids, graph.cast(reshape(graph, found, (None,)), "int32"), shape=(None,), axis=0)


def _stored_bytes(graph: Graph, content: bytes, name: str) -> Value:
    return graph.stored(np.frombuffer(content, np.uint8), name)
