"""The layers that an encoder and its heads are made of, of TFLite operators. Values of tokens are `(length, size)`."""

from typing import Any

from .graph import Graph, Value


def dense(graph: Graph, layer: Any, x: Value, scale: float = 1.0) -> Value:
    """Adds the product with a dense layer's kernel, and its bias, times a number; not its activation."""
    kernel, bias = graph.kernel(layer.kernel, scale), graph.scaled(layer.bias, scale)
    return graph.add("FULLY_CONNECTED", x, kernel, bias, shape=(x.shape[0], kernel.shape[0]))


def layer_norm(graph: Graph, layer: Any, x: Value) -> Value:
    """Adds a `LayerNorm`."""
    axis, of_row = graph.constant([1], "int32"), (x.shape[0], 1)
    mean = graph.add("MEAN", x, axis, shape=of_row, keepDims=True)
    squares = graph.add("SQUARED_DIFFERENCE", x, mean, shape=x.shape)
    variance = graph.add("MEAN", squares, axis, shape=of_row, keepDims=True)
    inverse = graph.add("RSQRT", graph.add("ADD", variance, graph.constant(layer.epsilon), shape=of_row), shape=of_row)
    normal = graph.add("MUL", graph.add("SUB", x, mean, shape=x.shape), inverse, shape=x.shape)
    scaled = graph.add("MUL", normal, graph.weight(layer.gamma), shape=x.shape)
    return graph.add("ADD", scaled, graph.weight(layer.beta), shape=x.shape)


def activation(graph: Graph, name: str, x: Value) -> Value:
    """Adds the nonlinearity that a configuration calls `name`."""
    if name == "relu":
        return graph.add("RELU", x, shape=x.shape)
    return graph.add("GELU", x, shape=x.shape, approximate=name != "gelu")


def pooled(graph: Graph, pooler: Any, vectors: Value) -> Value:
    """Adds a pooler: float32, `(1, hidden_size)`, of the vector in the first row."""
    return graph.add("TANH", dense(graph, pooler.dense, first_row(graph, vectors)), shape=(1, vectors.shape[1]))


def first_row(graph: Graph, x: Value) -> Value:
    """Adds the first row, `(1, size)`."""
    if x.shape[0] == 1:
        return x
    begin, size = graph.constant([0, 0], "int32"), graph.constant([1, x.shape[1]], "int32")
    return graph.add("SLICE", x, begin, size, shape=(1, x.shape[1]))


def reshape(graph: Graph, x: Value, shape: tuple[int | None, ...]) -> Value:
    """Adds another shape for the same values, of whose sizes one at most is free."""
    sizes = [-1 if size is None else size for size in shape]
    return graph.add("RESHAPE", x, graph.constant(sizes, "int32"), shape=shape, newShape=sizes)
