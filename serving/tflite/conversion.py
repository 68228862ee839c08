"""A model as a TFLite file of built-in operators, in float32."""

from ..kinds import Kind
from ..loaded_model import LoadedModel
from .graph.answers import answers
from .graph.graph import Graph
from .signature_names import INPUTS, SIGNATURE


def convert(kind: Kind, loaded: LoadedModel, *, length: int | None) -> bytes:
    """Writes a model's graph: float32, of built-in operators, one row at a time.

    The graph is written operator by operator from the layers, not converted from another one: so its names, shapes and
    operators are known, and nothing needs TensorFlow's own (Flex) operators.

    Args:
        kind: what the model answers.
        loaded: the model.
        length: columns of the inputs; None if they are free, up to the model's positions.

    Returns:
        The file: one signature, `token_ids`, of `token_ids`, `segment_ids` and `padding_mask`, int32 `(1, length)`,
        with the outputs that `signature_names.MEANINGS` tells of.

    Raises:
        InputError: if the weights are too large for such a file, 2 GiB.
    """
    graph = Graph()
    inputs = {name: graph.input(name, (1, length), "int32") for name in INPUTS}
    outputs = answers(graph, kind, loaded, inputs)
    return graph.file(SIGNATURE, outputs, f"{kind.name}, by keras_bert_impl")
