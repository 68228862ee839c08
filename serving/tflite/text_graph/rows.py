"""From texts to the row that a model reads, of TFLite operators."""

import numpy as np

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..graph.graph import Graph, Value
from ..graph.layers import reshape
from .pieces import pieces
from .values import between, size


def rows(
    graph: Graph, tokenizer: WordPieceTokenizer, texts: list[Value], *, max_length: int, length: int
) -> dict[str, Value]:
    """Adds what makes the row of a text or a pair, cut as `keras_bert_impl.tasks.rows.text_row` does.

    Args:
        graph: receives it.
        tokenizer: the specification.
        texts: one or two, string `(1,)`.
        max_length: most ids.
        length: columns.

    Returns:
        `token_ids`, `segment_ids` and `padding_mask`, int32 `(1, length)`; `num_tokens`, int32 `(1,)`; `truncated`,
        bool `(1,)`.
    """
    found = [pieces(graph, tokenizer, text) for text in texts]
    counts = [size(graph, of_text) for of_text in found]
    room = max_length - 1 - len(texts)
    if len(found) == 1:
        kept = [between(graph, found[0], None, room)]
    else:
        # What is left of taking, one by one, the last piece of the longer text, and of the second where they are even.
        kept = [
            _first(graph, found[0], counts[0], counts[1], room, (room + 1) // 2),
            _first(graph, found[1], counts[1], counts[0], room, room // 2),
        ]
    first, sep = (graph.constant([number], "int32") for number in (tokenizer.cls_token_id, tokenizer.sep_token_id))
    parts = [first, kept[0], sep, *([kept[1], sep] if len(kept) > 1 else [])]
    row = graph.add("CONCATENATION", *parts, shape=(None,), axis=0)
    num_tokens = size(graph, row)
    columns = graph.stored(np.arange(length, dtype=np.int32)[None], "columns")
    is_token = graph.add("LESS", columns, num_tokens, shape=(1, length), dtype="bool")
    behind = graph.add(
        "GREATER_EQUAL",
        columns,
        graph.add("ADD", size(graph, kept[0]), graph.constant(2, "int32"), shape=(1,)),
        shape=(1, length),
        dtype="bool",
    )
    is_second = graph.add("LOGICAL_AND", is_token, behind, shape=(1, length))
    missing = graph.add("SUB", graph.constant([length], "int32"), num_tokens, shape=(1,))
    paddings = graph.add("CONCATENATION", graph.constant([0], "int32"), missing, shape=(2,), axis=0)
    filled = graph.add(
        "PADV2", row, reshape(graph, paddings, (1, 2)), graph.constant(tokenizer.pad_token_id, "int32"), shape=(None,)
    )
    # Of one text the row is all in the first segment.
    segments = graph.cast(is_second, "int32")
    if len(texts) == 1:
        segments = graph.add("MUL", segments, graph.constant(0, "int32"), shape=(1, length))
    whole = counts[0] if len(texts) == 1 else graph.add("ADD", *counts, shape=(1,))
    return {
        "token_ids": reshape(graph, filled, (1, length)),
        "segment_ids": segments,
        "padding_mask": graph.cast(is_token, "int32"),
        "num_tokens": num_tokens,
        "truncated": graph.add("GREATER", whole, graph.constant(room, "int32"), shape=(1,), dtype="bool"),
    }


def _first(graph: Graph, ids: Value, count: Value, other: Value, room: int, half: int) -> Value:
    """Adds the pieces of a text that are left beside another one."""
    left = graph.add("SUB", graph.constant([room], "int32"), other, shape=(1,))
    most = graph.add("MAXIMUM", left, graph.constant(half, "int32"), shape=(1,))
    kept = graph.add("MINIMUM", most, count, shape=(1,))
    return graph.add("SLICE", ids, graph.constant([0], "int32"), kept, shape=(None,))
