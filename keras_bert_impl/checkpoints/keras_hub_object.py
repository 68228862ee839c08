"""KerasHub's models as checkpoints."""

import dataclasses
from typing import Any

import keras
import numpy as np

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor, architecture_of, plain_labels
from keras_bert_impl.checkpoints.keras_hub_config import (
    ARCHITECTURES,
    bert_config,
    inexact_heads,
)
from keras_bert_impl.errors import InputError


def open_keras_hub_object(model: Any) -> Checkpoint:
    """Takes a KerasHub BERT, its backbone or a task, as a checkpoint.

    Args:
        model: a `BertBackbone`, `BertMaskedLM`, `BertTextClassifier` or `BertTextEmbedder`. Its weights are read when
            the checkpoint's tensors are.

    Raises:
        InputError: if it is another model.
    """
    name = type(model).__name__
    if name not in ARCHITECTURES:
        raise InputError(
            f"`path` must be a KerasHub model of {', '.join(ARCHITECTURES)}. Received: {type(model).__module__}.{name}"
        )
    source = f"{name} {model.name!r}"
    backbone = getattr(model, "backbone", model)
    config, _ = bert_config(backbone.get_config(), source)
    head: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    activation = None
    if ARCHITECTURES[name] == "BertForMaskedLM":
        head = _masked_lm_variables(model.masked_lm_head)
    elif ARCHITECTURES[name] == "BertForSequenceClassification":
        head = _kernel_and_bias("classifier", model.output_dense)
        labels, settings = plain_labels(model.num_classes), {"classifier_dropout": model.dropout}
        activation = keras.activations.serialize(model.activation)
    tensors = _stored({**_backbone_variables(backbone), **head})
    return Checkpoint(
        source=source,
        format="keras_hub",
        config=config,
        tensors=tensors,
        architecture=architecture_of(tensors, ARCHITECTURES[name]),
        labels=labels,
        settings=settings,
        inexact=inexact_heads(ARCHITECTURES[name], activation),
    )


def _stored(variables: dict[str, Any]) -> dict[str, StoredTensor]:
    return {key: _stored_variable(key, variable) for key, variable in variables.items()}


def _stored_variable(key: str, variable: Any) -> StoredTensor:
    shape = tuple(variable.shape)
    if ".attention.self." in key:
        shape = (*shape[:-2], shape[-2] * shape[-1])
    elif key.endswith(".attention.output.dense.weight"):
        shape = (shape[0] * shape[1], shape[2])
    return StoredTensor(name=variable.path, shape=shape, dtype=str(variable.dtype), read=_Read(variable))


@dataclasses.dataclass(frozen=True)
class _Read:
    variable: Any

    def __call__(self) -> np.ndarray:
        return keras.ops.convert_to_numpy(self.variable)


def _backbone_variables(backbone: Any) -> dict[str, Any]:
    variables = {
        "embeddings.word_embeddings.weight": backbone.token_embedding.embeddings,
        "embeddings.position_embeddings.weight": backbone.position_embedding.position_embeddings,
        "embeddings.token_type_embeddings.weight": backbone.segment_embedding.embeddings,
        **_gamma_and_beta("embeddings.LayerNorm", backbone.embeddings_layer_norm),
        **_kernel_and_bias("pooler.dense", backbone.pooled_dense),
    }
    for i, layer in enumerate(backbone.transformer_layers):
        name, attention = f"encoder.layer.{i}", layer._self_attention_layer
        variables |= {
            **_kernel_and_bias(f"{name}.attention.self.query", attention.query_dense),
            **_kernel_and_bias(f"{name}.attention.self.key", attention.key_dense),
            **_kernel_and_bias(f"{name}.attention.self.value", attention.value_dense),
            **_kernel_and_bias(f"{name}.attention.output.dense", attention.output_dense),
            **_gamma_and_beta(f"{name}.attention.output.LayerNorm", layer._self_attention_layer_norm),
            **_kernel_and_bias(f"{name}.intermediate.dense", layer._feedforward_intermediate_dense),
            **_kernel_and_bias(f"{name}.output.dense", layer._feedforward_output_dense),
            **_gamma_and_beta(f"{name}.output.LayerNorm", layer._feedforward_layer_norm),
        }
    return variables


def _masked_lm_variables(head: Any) -> dict[str, Any]:
    return {
        **_kernel_and_bias("cls.predictions.transform.dense", head._intermediate_dense),
        **_gamma_and_beta("cls.predictions.transform.LayerNorm", head._intermediate_layer_norm),
        "cls.predictions.bias": head._bias,
    }


def _kernel_and_bias(name: str, layer: Any) -> dict[str, Any]:
    return {f"{name}.weight": layer.kernel, f"{name}.bias": layer.bias}


def _gamma_and_beta(name: str, layer: Any) -> dict[str, Any]:
    return {f"{name}.weight": layer.gamma, f"{name}.bias": layer.beta}
