"""What models whose outputs have names share."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, are_plain_labels
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.seeds import seed_for, truncated_normal
from keras_bert_impl.models.pretrained_model import PretrainedModel


class LabelledModel(PretrainedModel):
    """A model with a classifier, the names of whose outputs are stored with it.

    Attributes:
        labels: names of the outputs, in their order.
        classifier_dropout: float in [0, 1), before the classifier; None stands for `hidden_dropout_prob`.
    """

    labels: tuple[str, ...]
    classifier_dropout: float | None

    @classmethod
    def options_from(cls, checkpoint: Checkpoint, options: dict[str, Any]) -> dict[str, Any]:
        """Completes the user's options by what the checkpoint says of its head."""
        settings = {key: value for key, value in checkpoint.settings.items() if key == "classifier_dropout"}
        return {**settings, **options, "labels": _chosen_labels(checkpoint, options.get("labels"))}

    def head_settings(self) -> dict[str, Any]:
        """Returns what `config.json` says of the head."""
        return {
            "id2label": {str(i): label for i, label in enumerate(self.labels)},
            "label2id": {label: i for i, label in enumerate(self.labels)},
            "classifier_dropout": self.classifier_dropout,
        }

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            **super().get_config(),
            "labels": list(self.labels),
            "classifier_dropout": self.classifier_dropout,
        }


def checked_labels(labels: Any) -> tuple[str, ...]:
    """Returns the labels as a tuple; raises `InputError` unless they are different, non-empty names."""
    names = tuple(labels) if isinstance(labels, Sequence) and not isinstance(labels, str) else ()
    if not names or not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InputError(f"`labels` must be a list of one or more different names. Received: labels={labels!r}")
    return names


def classifier_layers(
    config: BertConfig, labels: Sequence[str], classifier_dropout: float | None, policy: Any, seed: int
) -> tuple[keras.layers.Dropout, keras.layers.Dense]:
    """Returns the dropout and the dense layer that make logits, one for each label."""
    if classifier_dropout is not None and not 0 <= classifier_dropout < 1:
        raise InputError(
            "`classifier_dropout` must be at least 0 and less than 1. "
            f"Received: classifier_dropout={classifier_dropout!r}"
        )
    dropout = keras.layers.Dropout(
        config.hidden_dropout_prob if classifier_dropout is None else classifier_dropout,
        seed=seed_for(seed, "dropout"),
        dtype=policy,
        name="dropout",
    )
    classifier = keras.layers.Dense(
        len(labels),
        kernel_initializer=truncated_normal(config.initializer_range, seed, "classifier/kernel"),
        dtype=policy,
        name="classifier",
    )
    return dropout, classifier


def _chosen_labels(checkpoint: Checkpoint, labels: Any) -> tuple[str, ...]:
    """Returns the labels that a classifier read from a checkpoint is to have: those given, else its own."""
    if labels is None:
        if not checkpoint.labels:
            raise InputError(
                f"`labels` must be given for a checkpoint without classifier. Received: {checkpoint.source!r}"
            )
        return checkpoint.labels
    names = checked_labels(labels)
    # Numbered ones may be given their names; a head of other labels would answer with the wrong words.
    if len(names) == len(checkpoint.labels) and not are_plain_labels(checkpoint.labels) and names != checkpoint.labels:
        raise InputError(
            "`labels` must be those of the checkpoint's classifier, in its order. "
            f"Received: labels={list(names)!r}, {checkpoint.source!r} has {list(checkpoint.labels)!r}; "
            "`fresh=('classifier',)` starts a head for new ones"
        )
    return names
