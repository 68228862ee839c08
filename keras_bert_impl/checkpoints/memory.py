"""A model that is already built, as a checkpoint."""

import dataclasses
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor
from keras_bert_impl.checkpoints.places import Place, places


def checkpoint_of(model: Any) -> Checkpoint:
    """Returns a model of this package as a checkpoint, so that others can be made from its weights.

    Args:
        model: a `PretrainedModel`. Its weights are read when the checkpoint's tensors are.
    """
    settings = model.head_settings()
    return Checkpoint(
        source=f"{type(model).__name__} {model.name!r}",
        format="memory",
        config=model.config,
        tensors={key: _stored(key, place) for key, place in places(model).items()},
        architecture=model.architecture,
        labels=tuple(getattr(model, "labels", ())),
        settings={
            key: settings[key] for key in ("problem_type", "classifier_dropout") if settings.get(key) is not None
        },
    )


def _stored(key: str, place: Place) -> StoredTensor:
    variable = place.variable
    # In whatever dtype the model has them, they are read as float32.
    return StoredTensor(name=key, shape=tuple(variable.shape), dtype="float32", read=_Read(place))


@dataclasses.dataclass(frozen=True)
class _Read:
    place: Place

    def __call__(self) -> np.ndarray:
        return self.place.value()
