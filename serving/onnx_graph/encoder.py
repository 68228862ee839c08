"""The encoder of a BERT, and the layers that its heads use too, of ONNX operators.

Written as PyTorch's exports are, so that runtimes find the layers again that they have one fast operator for.
"""

import math
from typing import Any, NamedTuple

from onnx import TensorProto

from .graph import Graph


class Encoded(NamedTuple):
    """What an encoder makes of a batch.

    Attributes:
        vectors: float32, `(batch, sequence, hidden_size)`; of no use at padding.
        is_token: float32, `(batch, sequence, 1)`; 1 where there is a token, else 0.
    """

    vectors: str
    is_token: str


def encode(graph: Graph, encoder: Any, token_ids: str, segment_ids: str, pad_token_id: int) -> Encoded:
    """Adds an encoder; positions with the padding token's id are padding, but no row is without its first position.

    Args:
        graph: receives it.
        encoder: `BertEncoder`, of which the pooler is left to `pooled`.
        token_ids, segment_ids: int32, `(batch, sequence)`.
        pad_token_id: the padding token's id.
    """
    with graph.part("embeddings"):
        x = _embedded(graph, encoder.embeddings, token_ids, segment_ids)
    with graph.part("padding"):
        is_padding = graph.add("Equal", token_ids, graph.constant(pad_token_id, "int32"))
        is_behind = graph.add("Less", graph.constant(0, "int64"), columns(graph, token_ids))
        is_read = graph.add("Cast", graph.add("Not", graph.add("And", is_padding, is_behind)), to=TensorProto.INT32)
        of_scores = graph.add("Unsqueeze", is_read, graph.ints(1))
        of_scores = graph.add("Unsqueeze", of_scores, graph.ints(2))
        of_scores = graph.add("Cast", of_scores, to=TensorProto.FLOAT)
        bias = graph.add("Mul", graph.add("Sub", graph.number(1.0), of_scores), graph.number(-1e9))
        is_token = graph.add("Unsqueeze", graph.add("Not", is_padding), graph.ints(2))
        is_token = graph.add("Cast", is_token, to=TensorProto.FLOAT)
    for i, block in enumerate(encoder.blocks):
        with graph.part(f"block_{i}"):
            x = _block(graph, block, x, bias)
    return Encoded(x, is_token)


def columns(graph: Graph, token_ids: str) -> str:
    """Adds the numbers of the columns: int64, `(sequence,)`."""
    length = graph.add("Squeeze", graph.add("Shape", token_ids, start=1, end=2))
    return graph.add("Range", graph.constant(0, "int64"), length, graph.constant(1, "int64"))


def pooled(graph: Graph, pooler: Any, vectors: str) -> str:
    """Adds a pooler: float32, `(batch, hidden_size)`."""
    with graph.part("pooler"):
        first = graph.add("Gather", vectors, graph.constant(0, "int64"), axis=1)
        return graph.add("Tanh", dense(graph, pooler.dense, first))


def dense(graph: Graph, layer: Any, x: str) -> str:
    """Adds the product with a dense layer's kernel, and its bias; not its activation."""
    return graph.add("Add", graph.add("MatMul", x, graph.weight(layer.kernel)), graph.weight(layer.bias))


def layer_norm(graph: Graph, layer: Any, x: str) -> str:
    """Adds a `LayerNorm`."""
    weights = graph.weight(layer.gamma), graph.weight(layer.beta)
    return graph.add("LayerNormalization", x, *weights, axis=-1, epsilon=layer.epsilon)


def activation(graph: Graph, name: str, x: str) -> str:
    """Adds the nonlinearity that a configuration calls `name`."""
    if name == "relu":
        return graph.add("Relu", x)
    one, half = graph.number(1.0), graph.number(0.5)
    if name == "gelu":
        share = graph.add("Erf", graph.add("Div", x, graph.number(math.sqrt(2.0))))
        return graph.add("Mul", graph.add("Mul", x, graph.add("Add", share, one)), half)
    cube = graph.add("Mul", graph.add("Pow", x, graph.number(3.0)), graph.number(0.044715))
    share = graph.add("Tanh", graph.add("Mul", graph.add("Add", x, cube), graph.number(math.sqrt(2.0 / math.pi))))
    return graph.add("Mul", graph.add("Mul", x, half), graph.add("Add", share, one))


def _embedded(graph: Graph, layer: Any, token_ids: str, segment_ids: str) -> str:
    tokens = _rows(graph, layer.token_embedding, token_ids)
    segments = _rows(graph, layer.segment_embedding, segment_ids)
    positions = graph.add("Gather", graph.weight(layer.position_embedding.table), columns(graph, token_ids))
    return layer_norm(graph, layer.layer_norm, graph.add("Add", graph.add("Add", tokens, segments), positions))


def _rows(graph: Graph, table: Any, ids: str) -> str:
    # Look-ups count negative ids from the end of the table; made too large, they are refused as others are.
    is_negative = graph.add("Less", ids, graph.constant(0, "int32"))
    checked = graph.add("Where", is_negative, graph.constant(table.input_dim, "int32"), ids)
    return graph.add("Gather", graph.weight(table.table), checked)


def _block(graph: Graph, block: Any, x: str, bias: str) -> str:
    with graph.part("attention"):
        attended = _attention(graph, block.attention, x, bias)
    with graph.part("attention_norm"):
        attended = layer_norm(graph, block.attention_norm, graph.add("Add", attended, x))
    with graph.part("feed_forward"):
        inner = activation(graph, block.activation, dense(graph, block.feed_forward.intermediate, attended))
        fed = dense(graph, block.feed_forward.output_projection, inner)
    with graph.part("feed_forward_norm"):
        return layer_norm(graph, block.feed_forward_norm, graph.add("Add", fed, attended))


def _attention(graph: Graph, layer: Any, x: str, bias: str) -> str:
    heads, hidden_size = layer.num_heads, layer.query.kernel.shape[0]
    head_size = hidden_size // heads

    def split(part: Any, order: list[int]) -> str:
        # A size of 0 in a shape stands for that of the input.
        apart = graph.add("Reshape", dense(graph, part, x), graph.ints(0, 0, heads, head_size))
        return graph.add("Transpose", apart, perm=order)

    query = split(layer.query, [0, 2, 1, 3])
    key = split(layer.key, [0, 2, 3, 1])
    value = split(layer.value, [0, 2, 1, 3])
    scores = graph.add("Div", graph.add("MatMul", query, key), graph.number(math.sqrt(head_size)))
    probabilities = graph.add("Softmax", graph.add("Add", scores, bias), axis=-1)
    gathered = graph.add("Transpose", graph.add("MatMul", probabilities, value), perm=[0, 2, 1, 3])
    together = graph.add("Reshape", gathered, graph.ints(0, 0, hidden_size))
    return dense(graph, layer.output_projection, together)
