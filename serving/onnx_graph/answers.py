"""What a model answers to ids, as the id signature of a SavedModel does, of ONNX operators."""

from collections.abc import Callable
from typing import Any

from onnx import TensorProto

from ..kinds import CLASSIFICATION, EMBEDDING, FILL_MASK, QUESTION_ANSWERING, TAGGING, Kind
from ..loaded_model import LoadedModel
from ..signatures.signatures import NO_POSITION
from .encoder import Encoded, activation, columns, dense, encode, layer_norm, pooled
from .graph import Graph, Tensor

_ROWS, _COLUMNS = ("batch",), ("batch", "sequence")

INPUTS = [Tensor(name, "int32", _COLUMNS) for name in ("token_ids", "segment_ids")]


def answers(graph: Graph, kind: Kind, loaded: LoadedModel) -> dict[str, Tensor]:
    """Adds a model and its answers.

    Returns:
        The outputs by name, those of the kind's `answer_ids` in `keras_bert_impl.serving.signatures`.
    """
    token_ids, segment_ids = (tensor.value for tensor in INPUTS)
    encoded = encode(graph, loaded.encoder, token_ids, segment_ids, loaded.tokenizer.pad_token_id)
    with graph.part("answer"):
        return _ANSWERS[kind](graph, loaded, encoded)


def _embedding(graph: Graph, loaded: LoadedModel, encoded: Encoded) -> dict[str, Tensor]:
    outputs = _of_encoder(graph, loaded, encoded)
    # Its length is made 1, so the sum does as well as the mean.
    sums = graph.add("ReduceSum", outputs["sequence_output"].value, graph.ints(1), keepdims=0)
    squares = graph.add("ReduceSum", graph.add("Mul", sums, sums), graph.ints(1), keepdims=1)
    length = graph.add("Sqrt", graph.add("Max", squares, graph.number(1e-12)))
    vector = graph.add("Div", sums, length)
    outputs["sentence_embedding"] = Tensor(vector, "float32", (*_ROWS, loaded.model.config.hidden_size))
    return outputs


def _fill_mask(graph: Graph, loaded: LoadedModel, encoded: Encoded) -> dict[str, Tensor]:
    model, head, of_masks = loaded.model, loaded.model.mlm_head, (*_ROWS, "masks")
    positions, is_mask, looked_at = _masks(graph, loaded.tokenizer.mask_token_id)
    vectors = graph.add("GatherND", encoded.vectors, graph.add("Unsqueeze", looked_at, graph.ints(2)), batch_dims=1)
    transformed = activation(graph, head.activation, dense(graph, head.dense, vectors))
    transformed = layer_norm(graph, head.layer_norm, transformed)
    # With the table as it is: turned around it would be stored, or kept in memory, once more.
    flat = graph.add("Reshape", transformed, graph.ints(-1, model.config.hidden_size))
    scores = graph.add("Gemm", flat, graph.weight(head.token_embedding.table), graph.weight(head.bias), transB=1)
    shape = graph.add("Concat", graph.add("Shape", positions), graph.ints(model.config.vocab_size), axis=0)
    logits = graph.add("Reshape", scores, shape, allowzero=1)
    logits = graph.add("Where", graph.add("Unsqueeze", is_mask, graph.ints(2)), logits, graph.number(0.0))
    outputs = {
        "mask_positions": Tensor(graph.add("Cast", positions, to=TensorProto.INT32), "int32", of_masks),
        "mlm_logits": Tensor(logits, "float32", (*of_masks, model.config.vocab_size)),
        **_of_encoder(graph, loaded, encoded),
    }
    if "pooled_output" in outputs and "nsp_head" not in loaded.fresh_parts:
        nsp_logits = dense(graph, model.nsp_head, outputs["pooled_output"].value)
        outputs["nsp_logits"] = Tensor(nsp_logits, "float32", (*_ROWS, 2))
    return outputs


def _masks(graph: Graph, mask_token_id: int) -> tuple[str, str, str]:
    """Where the masks stand, int64 `(batch, masks)`, whether there is one, and 0 where there is none."""
    token_ids = INPUTS[0].value
    is_mask = graph.add("Equal", token_ids, graph.constant(mask_token_id, "int32"))
    counts = graph.add("ReduceSum", graph.add("Cast", is_mask, to=TensorProto.INT64), graph.ints(1), keepdims=0)
    # A batch of nothing has no largest count.
    most = graph.add("ReduceMax", graph.add("Concat", counts, graph.ints(0), axis=0), keepdims=1)
    # Of numbers that fall from column to column the largest are the first masks; what is none is less than any.
    falling = graph.add("Neg", columns(graph, token_ids))
    of_masks = graph.add("Where", is_mask, falling, graph.constant(-(2**31), "int64"))
    found = graph.add("Neg", graph.add("TopK", of_masks, most, outputs=2))
    is_found = graph.add("Less", found, graph.constant(2**31, "int64"))
    positions = graph.add("Where", is_found, found, graph.constant(NO_POSITION, "int64"))
    return positions, is_found, graph.add("Where", is_found, found, graph.constant(0, "int64"))


def _classification(graph: Graph, loaded: LoadedModel, encoded: Encoded) -> dict[str, Tensor]:
    model: Any = loaded.model
    settings: Any = loaded.settings
    logits = dense(graph, model.classifier, pooled(graph, model.encoder.pooler, encoded.vectors))
    if settings.task == "regression":
        return {"value": Tensor(graph.add("Squeeze", logits, graph.ints(1)), "float32", _ROWS)}
    of_labels = (*_ROWS, len(model.labels))
    outputs = {"labels": _labels(graph, loaded, logits), "logits": Tensor(logits, "float32", of_labels)}
    if settings.task == "multilabel":
        probabilities = graph.add("Sigmoid", logits)
        holds = graph.add("GreaterOrEqual", probabilities, graph.number(settings.label_threshold))
        outputs["holds"] = Tensor(holds, "bool", of_labels)
    else:
        probabilities = graph.add("Softmax", logits, axis=-1)
        names = graph.constant(list(model.labels), "string")
        label = graph.add("Gather", names, graph.add("ArgMax", logits, axis=-1, keepdims=0))
        outputs["label"] = Tensor(label, "string", _ROWS)
    return {**outputs, "probabilities": Tensor(probabilities, "float32", of_labels)}


def _tagging(graph: Graph, loaded: LoadedModel, encoded: Encoded) -> dict[str, Tensor]:
    logits = _at_tokens(graph, dense(graph, loaded.model.classifier, encoded.vectors), encoded)
    shape = (*_COLUMNS, len(loaded.model.labels))
    return {"labels": _labels(graph, loaded, logits), "logits": Tensor(logits, "float32", shape)}


def _question_answering(graph: Graph, loaded: LoadedModel, encoded: Encoded) -> dict[str, Tensor]:
    logits = _at_tokens(graph, dense(graph, loaded.model.qa_head, encoded.vectors), encoded)
    return {
        name: Tensor(graph.add("Gather", logits, graph.constant(i, "int64"), axis=2), "float32", _COLUMNS)
        for i, name in enumerate(("start_logits", "end_logits"))
    }


_ANSWERS: dict[Kind, Callable[[Graph, LoadedModel, Encoded], dict[str, Tensor]]] = {
    EMBEDDING: _embedding,
    FILL_MASK: _fill_mask,
    CLASSIFICATION: _classification,
    TAGGING: _tagging,
    QUESTION_ANSWERING: _question_answering,
}


def _of_encoder(graph: Graph, loaded: LoadedModel, encoded: Encoded) -> dict[str, Tensor]:
    """The vectors of tokens; and of rows, where there are weights for it."""
    hidden_size, pooler = loaded.model.config.hidden_size, loaded.encoder.pooler
    vectors = _at_tokens(graph, encoded.vectors, encoded)
    outputs = {"sequence_output": Tensor(vectors, "float32", (*_COLUMNS, hidden_size))}
    if pooler is not None and "pooler" not in loaded.fresh_parts:
        vector = pooled(graph, pooler, encoded.vectors)
        outputs["pooled_output"] = Tensor(vector, "float32", (*_ROWS, hidden_size))
    return outputs


def _at_tokens(graph: Graph, values: str, encoded: Encoded) -> str:
    """Values of every position, `(batch, sequence, size)`, with 0 at padding."""
    return graph.add("Mul", values, encoded.is_token)


def _labels(graph: Graph, loaded: LoadedModel, rows: str) -> Tensor:
    """All names, the same in every row."""
    labels = list(loaded.model.labels)
    shape = graph.add("Concat", graph.add("Shape", rows, start=0, end=1), graph.ints(len(labels)), axis=0)
    return Tensor(graph.add("Expand", graph.constant([labels], "string"), shape), "string", (*_ROWS, len(labels)))
