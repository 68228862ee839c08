"""The encoder of a BERT of TFLite operators, for one row at a time.

One row needs no batch axis, so that a length that is free needs no arithmetic with shapes, and nothing becomes a tensor
whose size the interpreter knows only while it runs.
"""

import math
from typing import Any, NamedTuple

from .graph import Graph, Value
from .layers import activation, dense, first_row, layer_norm, reshape

# Far below any score, and within float16, in which some phones compute.
_MASKED = -10_000.0


class Encoded(NamedTuple):
    """What an encoder makes of a row.

    Attributes:
        vectors: float32, `(length, hidden_size)`, or `(1, hidden_size)` of the first token; of no use at padding.
        is_token: float32, `(length, 1)`; 1 where there is a token, else 0.
    """

    vectors: Value
    is_token: Value


def encode(
    graph: Graph, encoder: Any, token_ids: Value, segment_ids: Value, padding_mask: Value, *, of_first: bool
) -> Encoded:
    """Adds an encoder, of which the pooler is left to `layers.pooled`.

    Args:
        graph: receives it.
        encoder: `BertEncoder`.
        token_ids, segment_ids, padding_mask: int32, `(1, length)`; the mask is 1 at tokens. No row is without its
            first position.
        of_first: whether only the first token's vector is wanted: the last block works out no other.
    """
    length = token_ids.shape[1]
    tokens, segments, mask = (reshape(graph, ids, (length,)) for ids in (token_ids, segment_ids, padding_mask))
    positions = _positions(graph, tokens)
    x = _embedded(graph, encoder.embeddings, tokens, segments, positions)
    is_token, bias = _padding(graph, mask, positions)
    for i, block in enumerate(encoder.blocks):
        is_last = i == len(encoder.blocks) - 1
        x = _block(graph, block, x, bias, of_first=of_first and is_last)
    return Encoded(first_row(graph, x) if of_first else x, is_token)


def _positions(graph: Graph, tokens: Value) -> Value:
    """The numbers of the columns, int32 `(length,)`: sums of ones, whose shape follows the input's."""
    zeros = graph.add("MUL", tokens, graph.constant(0, "int32"), shape=tokens.shape)
    ones = graph.add("ADD", zeros, graph.constant(1, "int32"), shape=tokens.shape)
    return graph.add("CUMSUM", ones, graph.constant(0, "int32"), shape=tokens.shape, exclusive=True)


def _padding(graph: Graph, mask: Value, positions: Value) -> tuple[Value, Value]:
    """Where there are tokens, `(length, 1)`, and what is added to the scores of all queries, `(1, 1, length)`."""
    length = mask.shape[0]
    is_first = graph.add("EQUAL", positions, graph.constant(0, "int32"), shape=(length,), dtype="bool")
    of_first, of_mask = (graph.cast(value, "float32") for value in (is_first, mask))
    is_read = graph.add("MAXIMUM", of_first, of_mask, shape=(length,))
    absent = graph.add("SUB", is_read, graph.constant(1.0), shape=(length,))
    bias = graph.add("MUL", absent, graph.constant(-_MASKED), shape=(length,))
    return reshape(graph, of_mask, (length, 1)), reshape(graph, bias, (1, 1, length))


def _embedded(graph: Graph, layer: Any, tokens: Value, segments: Value, positions: Value) -> Value:
    length = tokens.shape[0]
    if length is None:
        places = _looked_up(graph, graph.weight(layer.position_embedding.table), positions)
    else:
        places = graph.rows(layer.position_embedding.table, length)
    of_tokens = _looked_up(graph, graph.weight(layer.token_embedding.table), tokens)
    of_segments = _looked_up(graph, graph.weight(layer.segment_embedding.table), segments)
    both = graph.add("ADD", of_tokens, of_segments, shape=of_tokens.shape)
    return layer_norm(graph, layer.layer_norm, graph.add("ADD", both, places, shape=both.shape))


def _looked_up(graph: Graph, table: Value, ids: Value) -> Value:
    return graph.add("EMBEDDING_LOOKUP", ids, table, shape=(ids.shape[0], table.shape[1]), dtype="float32")


def _block(graph: Graph, block: Any, x: Value, bias: Value, *, of_first: bool) -> Value:
    asked = first_row(graph, x) if of_first else x
    attended = _attention(graph, block.attention, asked, x, bias)
    attended = layer_norm(graph, block.attention_norm, graph.add("ADD", attended, asked, shape=asked.shape))
    inner = activation(graph, block.activation, dense(graph, block.feed_forward.intermediate, attended))
    fed = dense(graph, block.feed_forward.output_projection, inner)
    return layer_norm(graph, block.feed_forward_norm, graph.add("ADD", fed, attended, shape=attended.shape))


def _attention(graph: Graph, layer: Any, asked: Value, x: Value, bias: Value) -> Value:
    heads, hidden_size = layer.num_heads, layer.query.kernel.shape[0]
    head_size = hidden_size // heads
    order = graph.constant([1, 0, 2], "int32")

    def split(part: Any, of: Value, scale: float = 1.0) -> Value:
        apart = reshape(graph, dense(graph, part, of, scale), (of.shape[0], heads, head_size))
        return graph.add("TRANSPOSE", apart, order, shape=(heads, of.shape[0], head_size))

    # The scale of the scores goes into the weights of the query.
    query = split(layer.query, asked, 1 / math.sqrt(head_size))
    key, value = split(layer.key, x), split(layer.value, x)
    of_scores = (heads, asked.shape[0], x.shape[0])
    scores = graph.add("BATCH_MATMUL", query, key, shape=of_scores, adjY=True)
    probabilities = graph.add("SOFTMAX", graph.add("ADD", scores, bias, shape=of_scores), shape=of_scores, beta=1.0)
    gathered = graph.add("BATCH_MATMUL", probabilities, value, shape=query.shape)
    turned = graph.add("TRANSPOSE", gathered, order, shape=(asked.shape[0], heads, head_size))
    return dense(graph, layer.output_projection, reshape(graph, turned, (asked.shape[0], hidden_size)))
