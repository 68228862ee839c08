"""What a model answers to the ids of one row, of TFLite operators; names and meanings as in `signature_names`."""

from collections.abc import Callable
from typing import Any

from ...kinds import CLASSIFICATION, EMBEDDING, FILL_MASK, QUESTION_ANSWERING, TAGGING, Kind
from ...loaded_model import LoadedModel
from .encoder import Encoded, encode
from .graph import Graph, Value
from .layers import activation, dense, layer_norm, pooled, reshape

ANSWER = "answer"
"""Stands before the names of what comes after the encoder."""


def answers(graph: Graph, kind: Kind, loaded: LoadedModel, inputs: dict[str, Value]) -> dict[str, Value]:
    """Adds a model and its answers.

    Args:
        graph: receives them.
        kind: what the model answers.
        loaded: the model.
        inputs: `token_ids`, `segment_ids` and `padding_mask`, int32 `(1, length)`.

    Returns:
        The outputs by name, all float32 but `mask_positions`; the first size is 1.
    """
    encoded = encode(graph, loaded.encoder, **inputs, of_first=kind is CLASSIFICATION)
    with graph.part(ANSWER):
        return _ANSWERS[kind](graph, loaded, encoded, inputs["token_ids"])


def _embedding(graph: Graph, loaded: LoadedModel, encoded: Encoded, token_ids: Value) -> dict[str, Value]:
    hidden_size = loaded.model.config.hidden_size
    of_tokens = _at_tokens(graph, encoded.vectors, encoded)
    # Its length is made 1, so the sum does as well as the mean.
    sums = graph.add("SUM", of_tokens, graph.constant([0], "int32"), shape=(1, hidden_size), keepDims=True)
    vector = graph.add("L2_NORMALIZATION", sums, shape=(1, hidden_size))
    return {"sentence_embedding": vector, **_of_encoder(graph, loaded, encoded, of_tokens)}


def _fill_mask(graph: Graph, loaded: LoadedModel, encoded: Encoded, token_ids: Value) -> dict[str, Value]:
    model, head, (_, length) = loaded.model, loaded.model.mlm_head, token_ids.shape
    vocab_size, hidden_size = model.config.vocab_size, model.config.hidden_size
    mask_token = graph.constant(loaded.tokenizer.mask_token_id, "int32")
    is_mask = graph.add("EQUAL", reshape(graph, token_ids, (length,)), mask_token, shape=(length,), dtype="bool")
    found = graph.add("WHERE", is_mask, shape=(None, 1), dtype="int64")
    places = graph.cast(reshape(graph, found, (None,)), "int32")
    x = graph.add("GATHER", encoded.vectors, places, shape=(None, hidden_size), axis=0)
    x = layer_norm(graph, head.layer_norm, activation(graph, head.activation, dense(graph, head.dense, x)))
    table, bias = graph.weight(head.token_embedding.table), graph.weight(head.bias)
    scores = graph.add("FULLY_CONNECTED", x, table, bias, shape=(None, vocab_size))
    outputs = {
        "mask_positions": reshape(graph, places, (1, None)),
        "mlm_logits": reshape(graph, scores, (1, None, vocab_size)),
        **_of_encoder(graph, loaded, encoded, _at_tokens(graph, encoded.vectors, encoded)),
    }
    if "pooled_output" in outputs and "nsp_head" not in loaded.fresh_parts:
        outputs["nsp_logits"] = dense(graph, model.nsp_head, outputs["pooled_output"])
    return outputs


def _classification(graph: Graph, loaded: LoadedModel, encoded: Encoded, token_ids: Value) -> dict[str, Value]:
    model: Any = loaded.model
    settings: Any = loaded.settings
    logits = dense(graph, model.classifier, pooled(graph, model.encoder.pooler, encoded.vectors))
    if settings.task == "regression":
        return {"value": reshape(graph, logits, (1,))}
    if settings.task == "multilabel":
        return {"logits": logits, "probabilities": graph.add("LOGISTIC", logits, shape=logits.shape)}
    return {"logits": logits, "probabilities": graph.add("SOFTMAX", logits, shape=logits.shape, beta=1.0)}


def _tagging(graph: Graph, loaded: LoadedModel, encoded: Encoded, token_ids: Value) -> dict[str, Value]:
    logits = _at_tokens(graph, dense(graph, loaded.model.classifier, encoded.vectors), encoded)
    return {"logits": reshape(graph, logits, (1, *logits.shape))}


def _question_answering(graph: Graph, loaded: LoadedModel, encoded: Encoded, token_ids: Value) -> dict[str, Value]:
    logits = _at_tokens(graph, dense(graph, loaded.model.qa_head, encoded.vectors), encoded)
    length = logits.shape[0]
    return {
        name: reshape(
            graph, graph.add("GATHER", logits, graph.constant([i], "int32"), shape=(length, 1), axis=1), (1, length)
        )
        for i, name in enumerate(("start_logits", "end_logits"))
    }


_ANSWERS: dict[Kind, Callable[[Graph, LoadedModel, Encoded, Value], dict[str, Value]]] = {
    EMBEDDING: _embedding,
    FILL_MASK: _fill_mask,
    CLASSIFICATION: _classification,
    TAGGING: _tagging,
    QUESTION_ANSWERING: _question_answering,
}


def _of_encoder(graph: Graph, loaded: LoadedModel, encoded: Encoded, of_tokens: Value) -> dict[str, Value]:
    """The vectors of tokens, 0 at padding; and of the row, where there are weights for it."""
    pooler = loaded.encoder.pooler
    outputs = {"sequence_output": reshape(graph, of_tokens, (1, *of_tokens.shape))}
    if pooler is not None and "pooler" not in loaded.fresh_parts:
        outputs["pooled_output"] = pooled(graph, pooler, encoded.vectors)
    return outputs


def _at_tokens(graph: Graph, values: Value, encoded: Encoded) -> Value:
    return graph.add("MUL", values, encoded.is_token, shape=values.shape)
