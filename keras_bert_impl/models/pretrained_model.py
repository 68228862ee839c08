"""What every model of the package can do: come from a preset or a checkpoint, and be saved as a model directory."""

import inspect
import os
import warnings
from collections.abc import Collection
from typing import Any, ClassVar, Self

import keras

from keras_bert_impl.checkpoints import hugging_face
from keras_bert_impl.checkpoints.architecture import PARTS, tensor_shapes
from keras_bert_impl.checkpoints.checkpoint import Checkpoint, checked_parts
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.load import checked_load, read_into
from keras_bert_impl.checkpoints.load_report import LoadReport, listed
from keras_bert_impl.checkpoints.places import places
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.seeds import withheld_initial_values
from keras_bert_impl.presets import get_preset


class PretrainedModel(keras.Model):
    """A functional model made from a `BertConfig`.

    A subclass makes the graph, passes the rest through and names its parts.

    Args:
        inputs: symbolic inputs, by name.
        outputs: symbolic outputs.
        config: what the encoder is.
        dtype_policy: `keras.DTypePolicy` of every layer.
        seed: seed of initial values and dropout.
        **kwargs: passed to `keras.Model`, for example `name`.

    Attributes:
        architecture: its name in `config.json`.
        may_leave: parts of a checkpoint that belong to other models and may be left without being named.
        config: the `BertConfig` it was made from.
        seed: seed of initial values and dropout.
        load_report: `LoadReport` of `from_pretrained`, or None.
    """

    architecture: ClassVar[str]
    may_leave: ClassVar[tuple[str, ...]] = ()

    config: BertConfig
    seed: int
    load_report: LoadReport | None = None

    def __init__(
        self, inputs: Any, outputs: Any, *, config: BertConfig, dtype_policy: Any, seed: int, **kwargs: Any
    ) -> None:
        # Keras passes over what it does not know, and a misspelt argument with it.
        self._check_arguments(kwargs)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.config = config
        self.seed = seed
        # `keras.Model(inputs, outputs, dtype=...)` drops its dtype, so it is set here.
        self.dtype_policy = dtype_policy

    @classmethod
    def from_preset(cls, preset: str, *, dtype: Any = None, seed: int = 0, **overrides: Any) -> Self:
        """Makes a model of a published size, with fresh weights.

        Args:
            preset: `"tiny"`, `"mini"`, `"small"`, `"medium"`, `"base"` or `"large"`.
            dtype: string or `keras.DTypePolicy`, for example `"mixed_bfloat16"`.
            seed: seed of initial values and dropout.
            **overrides: fields of `BertConfig`, for example `vocab_size=8000`, and arguments of the model.

        Raises:
            InputError: if the preset or a field is unknown or out of range.
        """
        arguments = inspect.signature(cls).parameters.keys() - {"config", "dtype", "seed", "kwargs"}
        options = {name: overrides.pop(name) for name in arguments & overrides.keys()}
        return cls(get_preset(preset, **overrides), dtype=dtype, seed=seed, **options)

    @classmethod
    def from_pretrained(
        cls,
        path: Any,
        *,
        dtype: Any = None,
        seed: int = 0,
        allow_missing: Collection[str] = (),
        allow_unused: Collection[str] = (),
        fresh: Collection[str] = (),
        allow_inexact: Collection[str] = (),
        **options: Any,
    ) -> Self:
        """Makes a model with the weights of a checkpoint of any format that is known.

        Every tensor of the model must be in the checkpoint, every tensor of the checkpoint in the model, unless
        its part is named as allowed or belongs to another task (`may_leave`). What was and wasn't loaded is in
        the model's `load_report`; a part that starts fresh is warned of.

        Args:
            path: model directory (Hugging Face's form), run directory, TensorFlow 1 checkpoint, KerasHub preset
                directory or object, Model Garden checkpoint, `.keras` file of this package, or a `Checkpoint`.
            dtype: string or `keras.DTypePolicy`, for example `"mixed_bfloat16"`.
            seed: seed of dropout, and of the initial values of parts that start fresh.
            allow_missing: parts of the model that may be absent and start fresh, of `"pooler"`, `"mlm_head"`,
                `"nsp_head"`, `"classifier"`, `"qa_head"`.
            allow_unused: parts of the checkpoint, or first words of names, that the model may leave.
            fresh: parts that start fresh whatever the checkpoint has, of those of `allow_missing`.
            allow_inexact: parts whose weights are taken although they compute something else in the library that
                they come from, of those of `allow_missing`.
            **options: further arguments of the model, for example `pooler=False`. A classifier's `labels`, when
                given, also allow its head to be missing.

        Raises:
            InputError: if it is no such checkpoint, or anything else is missing, unused or of another shape.
        """
        cls._check_arguments(options)
        checkpoint = cls._without_foreign_head(open_checkpoint(path))
        for part in checked_parts("fresh", fresh):
            checkpoint = checkpoint.without_part(part, "replaced by fresh values")
        named_head = ("classifier",) if options.get("labels") is not None else ()
        options = cls.options_from(checkpoint, options)
        kept, report = checked_load(
            checkpoint,
            cls.tensor_shapes(checkpoint.config, **options),
            allow_missing=(*named_head, *fresh, *checked_parts("allow_missing", allow_missing)),
            allow_unused=(*cls.may_leave, *allow_unused),
            allow_inexact=allow_inexact,
        )
        with withheld_initial_values() as withheld:
            model = cls(checkpoint.config, dtype=dtype, seed=seed, **options)
        if len(withheld) > sum(place.initializer is not None for place in places(model).values()):
            # A subclass has variables of its own, whose values are in no checkpoint.
            model = cls(checkpoint.config, dtype=dtype, seed=seed, **options)
        read_into(kept, places(model))
        model.load_report = report
        if report.fresh_parts:
            start = "starts" if len(report.fresh_parts) == 1 else "start"
            warnings.warn(f"{report.source}: {listed(report.fresh_parts)} {start} with fresh weights", stacklevel=2)
        for part, reason in report.inexact:
            warnings.warn(f"{report.source}: {part} computes something else here: {reason}", stacklevel=2)
        return model

    @classmethod
    def _check_arguments(cls, options: Collection[str]) -> None:
        known = sorted(
            inspect.signature(cls).parameters.keys() - {"config", "dtype", "seed", "kwargs"} | {"name", "trainable"}
        )
        if unknown := sorted(set(options) - set(known)):
            raise InputError(f"`{cls.__name__}` has no argument {unknown[0]!r}. Known: {', '.join(known)}")

    @classmethod
    def _without_foreign_head(cls, checkpoint: Checkpoint) -> Checkpoint:
        """Leaves a classifier of texts out where tokens are to be classified, and the other way round."""
        theirs = checkpoint.architecture
        shared = "classifier" in PARTS[theirs] and "classifier" in PARTS[cls.architecture]
        if shared and theirs != cls.architecture and checkpoint.architecture_is_stated:
            return checkpoint.without_part("classifier", f"the head of a {theirs}")
        return checkpoint

    def save_pretrained(self, path: str | os.PathLike[str], tokenizer: Any = None) -> None:
        """Writes a model directory in Hugging Face's form, whole or not at all.

        Args:
            path: directory to write; new, empty, or a model directory, which is replaced.
            tokenizer: `WordPieceTokenizer` to write beside the weights, if any.

        Raises:
            InputError: if the directory has content that is not a model.
        """
        hugging_face.write_model_directory(path, self, tokenizer=tokenizer)

    @classmethod
    def options_from(cls, checkpoint: Checkpoint, options: dict[str, Any]) -> dict[str, Any]:
        """Completes the user's options by what the checkpoint says of the model's head."""
        return options

    @classmethod
    def tensor_shapes(cls, config: BertConfig, **options: Any) -> dict[str, tuple[int, ...]]:
        """Returns the tensors that a model with these arguments has, without building it."""
        parts = [part for part in PARTS[cls.architecture] if part != "pooler" or options.get("pooler", True)]
        return tensor_shapes(config, parts, num_labels=len(options.get("labels") or ()))

    def head_settings(self) -> dict[str, Any]:
        """Returns what `config.json` says of the model's head."""
        return {}

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            "config": self.config.to_dict(),
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Makes the model that `get_config` described."""
        return cls(**config)
