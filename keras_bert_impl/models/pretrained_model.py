"""What every model of the package can do: come from a preset or a model directory, and be saved as one."""

import os
from typing import Any, ClassVar, Self

import keras

from keras_bert_impl.checkpoints import hugging_face
from keras_bert_impl.checkpoints.load_report import LoadReport
from keras_bert_impl.config import BertConfig
from keras_bert_impl.presets import get_preset


class PretrainedModel(keras.Model):
    """A functional model made from a `BertConfig`.

    A subclass passes everything but the graph through and names its parts.

    Attributes:
        architecture: its name in `config.json`.
        leaves_heads: whether it may be read from a file that has heads besides.
        config: the `BertConfig` it was made from.
        seed: seed of initial values and dropout.
        load_report: `LoadReport` of the last `from_pretrained`, or None.
    """

    architecture: ClassVar[str]
    leaves_heads: ClassVar[bool] = False

    config: BertConfig
    seed: int
    load_report: LoadReport | None = None

    @classmethod
    def from_preset(cls, preset: str, *, dtype: Any = None, seed: int = 0, **overrides: Any) -> Self:
        """Makes a model of a published size, with fresh weights.

        Args:
            preset: `"tiny"`, `"mini"`, `"small"`, `"medium"`, `"base"` or `"large"`.
            dtype: string or `keras.DTypePolicy`, for example `"mixed_bfloat16"`.
            seed: seed of initial values and dropout.
            **overrides: fields of `BertConfig`, for example `vocab_size=8000`.

        Raises:
            InputError: if the preset or a field is unknown or out of range.
        """
        return cls(get_preset(preset, **overrides), dtype=dtype, seed=seed)

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        seed: int = 0,
        allow_missing: tuple[str, ...] = (),
        allow_unused: tuple[str, ...] = (),
        **options: Any,
    ) -> Self:
        """Makes a model from a model directory in Hugging Face's form.

        What was and wasn't loaded is in the model's `load_report`.

        Args:
            path: directory with `config.json` and `model.safetensors`.
            dtype: string or `keras.DTypePolicy`, for example `"mixed_bfloat16"`.
            seed: seed of dropout, and of the initial values of allowed missing parts.
            allow_missing: parts of the model that may be absent from the file and start fresh, of
                `"pooler"`, `"mlm_head"`, `"nsp_head"`.
            allow_unused: first names of tensors in the file that the model may leave, for example `"classifier"`.
            **options: further arguments of the model, for example `pooler=False`.

        Raises:
            InputError: if the directory is not such a model, or anything else is missing, unused or
                of another shape.
        """
        config, ignored_keys = hugging_face.read_config(path)
        model = cls(config, dtype=dtype, seed=seed, **options)
        model.load_report = hugging_face.read_weights(
            path, model, allow_missing=allow_missing, allow_unused=allow_unused, ignored_config_keys=ignored_keys
        )
        return model

    def save_pretrained(self, path: str | os.PathLike[str], tokenizer: Any = None) -> None:
        """Writes a model directory in Hugging Face's form, whole or not at all.

        Args:
            path: directory to write; new, empty, or a model directory, which is replaced.
            tokenizer: `WordPieceTokenizer` to write beside the weights, if any.

        Raises:
            InputError: if the directory has content that is not a model.
        """
        hugging_face.write_model_directory(path, self, tokenizer=tokenizer)

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
