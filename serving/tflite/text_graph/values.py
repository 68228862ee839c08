"""Small steps with whole numbers in a TFLite graph."""

from ai_edge_litert import schema_py_generated as schema

from ..graph.graph import Graph, Value


def between(graph: Graph, values: Value, start: int | None, end: int | None) -> Value:
    """Adds a slice of a row, as `values[start:end]`; what lies beyond its end is not there."""
    places = (graph.constant([place or 0], "int32") for place in (start, end, 1))
    return graph.add(
        "STRIDED_SLICE", values, *places, shape=(None,), beginMask=int(start is None), endMask=int(end is None)
    )


def size(graph: Graph, values: Value) -> Value:
    """Adds how many values a row has: int32, `(1,)`."""
    return graph.add("SHAPE", values, shape=(1,), dtype="int32", outType=schema.TensorType.INT32)
