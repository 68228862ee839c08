"""Where the tensors of a checkpoint belong in a model."""

import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_bert_impl.errors import InputError

_DENSE_HEADS = {"nsp_head": "cls.seq_relationship", "classifier": "classifier", "qa_head": "qa_outputs"}


@dataclasses.dataclass(frozen=True)
class Place:
    """A variable of a model.

    Attributes:
        variable: the `keras.Variable`.
        initializer: what its fresh values are drawn from, where they are random.
    """

    variable: Any
    initializer: Any = None

    def read(self, value: Any, transposed: bool) -> None:
        """Takes over an array; `transposed` says that it is oriented `(outputs, inputs)`."""
        shape = tuple(self.variable.shape)
        value = ops.convert_to_tensor(np.reshape(value, shape[::-1] if transposed else shape))
        # The backend's transpose uses every core; NumPy's copies with strides on one.
        self.variable.assign(ops.transpose(value) if transposed else value)

    def start_fresh(self) -> None:
        """Draws the initial values that were withheld while the model was built."""
        if self.initializer is not None:
            self.variable.assign(self.initializer(self.variable.shape, dtype=self.variable.dtype))

    def value(self) -> np.ndarray:
        """Returns the values in float32; raises `InputError` for a quantized model, whose variables are codes."""
        if "float" not in str(self.variable.dtype):
            raise InputError(
                f"`model` must have floating-point weights. Received: {self.variable.path} of {self.variable.dtype}"
            )
        return ops.convert_to_numpy(ops.cast(ops.convert_to_tensor(self.variable), "float32"))


def places(model: Any) -> dict[str, Place]:
    """Returns the place of every tensor of a model, by the names of `architecture.tensor_shapes`.

    Args:
        model: a `PretrainedModel`, built.
    """
    encoder = getattr(model, "encoder", model)
    embeddings = encoder.embeddings
    found = {
        "embeddings.word_embeddings.weight": _table(embeddings.token_embedding),
        "embeddings.position_embeddings.weight": _table(embeddings.position_embedding),
        "embeddings.token_type_embeddings.weight": _table(embeddings.segment_embedding),
        **_layer_norm("embeddings.LayerNorm", embeddings.layer_norm),
    }
    for i, block in enumerate(encoder.blocks):
        name = f"encoder.layer.{i}"
        found |= _dense(f"{name}.attention.self.query", block.attention.query)
        found |= _dense(f"{name}.attention.self.key", block.attention.key)
        found |= _dense(f"{name}.attention.self.value", block.attention.value)
        found |= _dense(f"{name}.attention.output.dense", block.attention.output_projection)
        found |= _layer_norm(f"{name}.attention.output.LayerNorm", block.attention_norm)
        found |= _dense(f"{name}.intermediate.dense", block.feed_forward.intermediate)
        found |= _dense(f"{name}.output.dense", block.feed_forward.output_projection)
        found |= _layer_norm(f"{name}.output.LayerNorm", block.feed_forward_norm)
    if encoder.pooler is not None:
        found |= _dense("pooler.dense", encoder.pooler.dense)
    if hasattr(model, "mlm_head"):
        found |= _dense("cls.predictions.transform.dense", model.mlm_head.dense)
        found |= _layer_norm("cls.predictions.transform.LayerNorm", model.mlm_head.layer_norm)
        found["cls.predictions.bias"] = Place(model.mlm_head.bias)
    for attribute, name in (
        ("nsp_head", "cls.seq_relationship"),
        ("classifier", "classifier"),
        ("qa_head", "qa_outputs"),
    ):
        if hasattr(model, attribute):
            found |= _dense(name, getattr(model, attribute))
    return found


def _table(layer: Any) -> Place:
    return Place(layer.table, layer.initializer)


def _dense(name: str, layer: keras.layers.Dense) -> dict[str, Place]:
    return {f"{name}.weight": Place(layer.kernel, layer.kernel_initializer), f"{name}.bias": Place(layer.bias)}


def _layer_norm(name: str, layer: Any) -> dict[str, Place]:
    return {f"{name}.weight": Place(layer.gamma), f"{name}.bias": Place(layer.beta)}
