"""Settings of `finetune`."""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.settings import TASKS

from .columns import check_columns, column_field
from .settings import (
    ANY,
    Settings,
    as_python,
    check_range,
    check_seed,
    check_word,
    list_of_files,
    setting,
)

GRID_SETTINGS = ("learning_rate", "batch_size", "epochs", "layer_decay", "warmup_share", "weight_decay")
"""What a grid may try, with its values in the original under `grid: original`."""
ORIGINAL_GRID: dict[str, list[Any]] = {
    "learning_rate": [5e-5, 4e-5, 3e-5, 2e-5],
    "batch_size": [16, 32],
    "epochs": [2, 3, 4],
}
METRICS = {
    "classification": ("accuracy", "f1", "f1_macro", "f1_micro", "matthews"),
    "multilabel": ("f1_micro", "f1_macro", "exact_match"),
    "regression": ("pearson", "spearman", "negative_rmse"),
    "tagging": ("f1", "f1_macro", "accuracy"),
    "qa": ("f1", "exact_match"),
}
"""What the best model can be chosen by, for each task; more is better; the usual one first."""
_MOST_EPOCHS = 10_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinetuneConfig(Settings):
    """Fine-tune a model for a task on labelled examples."""

    task: str = setting(help="classification (of texts or pairs), multilabel, regression, tagging (of words) or qa")
    model: str = setting(help="model directory (ours or Hugging Face's), run directory, or another known checkpoint")
    train: tuple[str, ...] = setting(help="files of labelled examples")
    dev: tuple[str, ...] = setting((), help="files of examples to choose the best model by; a share of train if none")
    dev_share: float = setting(0.1, help="share of train that is held out when there is no dev file")
    output: str = setting(help="model directory to write; `finetuning/` in it has the report and what was measured")
    input_format: str = column_field("input_format")
    text_column: str | None = column_field("text_column")
    text_pair_column: str | None = column_field("text_pair_column")
    label_column: str | None = column_field("label_column")
    id_column: str | None = column_field("id_column")
    delimiter: str | None = column_field("delimiter")
    header: str = column_field("header")
    encoding: str | None = column_field("encoding")
    label_separator: str = setting(",", help="multilabel: what stands between the labels of a row")
    max_length: int | None = setting(
        None, help="most ids in a row, with [CLS] and [SEP]; 128, for qa 384, or what the model has when not given"
    )
    stride: int | None = setting(
        None, help="tagging, qa: pieces by which windows of long texts begin after one another; a half, for qa 128"
    )
    labelled_pieces: str = setting("first", help="tagging: learn the label of a word's 'first' piece, or of 'all'")
    max_question_length: int = setting(64, help="qa: pieces of a question that are kept")
    max_answer_length: int = setting(30, help="qa: pieces that an answer may have")
    epochs: float = setting(3.0, help="times that the training examples are gone through")
    batch_size: int = setting(32, help="rows per step over all replicas")
    micro_batches: int = setting(1, help="parts that a replica's batch is worked through in; saves memory")
    learning_rate: float = setting(5e-5, help="highest learning rate; small models learn better at 1e-4 or 3e-4")
    warmup_share: float = setting(0.1, help="share of the steps in which the learning rate rises")
    schedule: str = setting("linear", help="fall of the learning rate after it: 'linear', 'cosine' or 'constant'")
    weight_decay: float = setting(0.01, help="decoupled, times the learning rate")
    layer_decay: float = setting(1.0, help="factor of the learning rate from each layer to the one below it")
    bias_correction: bool = setting(True, help="Adam's correction of the first steps")
    beta_2: float = setting(0.999, help="decay of the mean squared gradient")
    epsilon: float = setting(1e-6, help="addend to the root of the mean squared gradient")
    clip_norm: float = setting(1.0, help="largest global norm of the whole batch's gradient; 0 for no clipping")
    classifier_dropout: float | None = setting(None, help="dropout before the head; the model's when not given")
    class_weights: str = setting("none", help="'balanced': each class counts alike in the loss, however rare it is")
    metric: str | None = setting(None, help="what the best model is chosen by; the task's usual one when not given")
    evaluations: int = setting(0, help="evaluations on the dev examples over the run; 0 for one after each epoch")
    patience: int | None = setting(None, help="stop after this many evaluations without a better one")
    seeds: tuple[int, ...] = setting((1,), help="one model for each; the best is kept; mean and deviation are told")
    grid: dict[str, Any] | None = setting(
        None, help="lists of values to try, as JSON, of " + ", ".join(GRID_SETTINGS) + '; {"original": true}: its own'
    )
    fresh_head: bool = setting(False, help="start the head anew although the model has one for the task")
    replicas: int | None = setting(None, help="replicas under MirroredStrategy; every GPU, else one")
    dtype: str = setting("float32", help="float32, mixed_bfloat16, or mixed_float16 with loss scaling")
    deterministic: bool = setting(
        True, help="on GPUs use operations that give the same bits in every run; other ones may be faster"
    )

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, as_python(getattr(self, field.name)))
        for name in ("train", "dev"):
            files = list_of_files(name, getattr(self, name))
            for file in files:
                if not isinstance(file, str | os.PathLike) or "\0" in os.fspath(file):
                    raise InputError(f"`{name}` must be a list of files. Received: {file!r} among them")
            object.__setattr__(self, name, tuple(map(os.fspath, files)))
        if isinstance(self.seeds, str) or not isinstance(self.seeds, Iterable):
            raise InputError(f"`seeds` must be a list of whole numbers. Received: seeds={self.seeds!r}")
        object.__setattr__(self, "seeds", tuple(map(as_python, self.seeds)))
        for seed in self.seeds:
            check_seed(seed)
        check_word(self, "task", TASKS)
        if not self.train:
            raise InputError("`train` must have one or more files. Received: none")
        for name in ("model", "output"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value or "\0" in value:
                raise InputError(f"`{name}` must be the name of a directory. Received: {name}={value!r}")
        check_columns(self)
        if not isinstance(self.label_separator, str) or not self.label_separator:
            raise InputError(f"`label_separator` must be text. Received: label_separator={self.label_separator!r}")
        self._check_rows()
        self._check_training()
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"`seeds` must be one or more different numbers. Received: seeds={list(self.seeds)}")
        self._check_grid()

    @property
    def main_metric(self) -> str:
        """The metric that the best model is chosen by."""
        return self.metric or METRICS[self.task][0]

    def _check_rows(self) -> None:
        check_range(self, "dev_share", 0, 0.9, low_open=True)
        if self.max_length is not None:
            check_range(self, "max_length", 8, 1_000_000)
        if self.stride is not None:
            check_range(self, "stride", 1, 1_000_000)
            if self.task not in ("tagging", "qa"):
                raise InputError(f"`stride` must go with `task` tagging or qa. Received: task={self.task!r}")
        check_word(self, "labelled_pieces", ("first", "all"))
        for name in ("max_question_length", "max_answer_length"):
            check_range(self, name, 1, 1_000_000)

    def _check_training(self) -> None:
        check_range(self, "epochs", 0, _MOST_EPOCHS, low_open=True)
        for name in ("batch_size", "micro_batches"):
            check_range(self, name, 1, 1_000_000)
        if self.replicas is not None:
            check_range(self, "replicas", 1, 1024)
        parts = (self.replicas or 1) * self.micro_batches
        if self.batch_size % parts:
            raise InputError(
                "`batch_size` must be a multiple of `replicas` times `micro_batches`. Received: "
                f"batch_size={self.batch_size}, replicas={self.replicas or 1}, micro_batches={self.micro_batches}"
            )
        check_range(self, "learning_rate", 0, 10, low_open=True)
        check_range(self, "warmup_share", 0, 1)
        check_word(self, "schedule", ("linear", "cosine", "constant"))
        for name in ("weight_decay", "clip_norm"):
            check_range(self, name, 0, ANY)
        check_range(self, "layer_decay", 0, 1, low_open=True)
        check_range(self, "beta_2", 0, 1)
        check_range(self, "epsilon", 0, 1, low_open=True)
        if self.classifier_dropout is not None:
            check_range(self, "classifier_dropout", 0, 0.99)
        check_word(self, "class_weights", ("none", "balanced"))
        if self.class_weights != "none" and self.task not in ("classification", "tagging"):
            raise InputError(
                f"`class_weights` must go with `task` classification or tagging. Received: task={self.task!r}"
            )
        if self.metric is not None:
            check_word(self, "metric", METRICS[self.task])
        check_range(self, "evaluations", 0, 1_000_000)
        if self.patience is not None:
            check_range(self, "patience", 1, 1_000_000)
        check_word(self, "dtype", ("float32", "mixed_bfloat16", "mixed_float16"))

    def _check_grid(self) -> None:
        if self.grid is None:
            return
        if not isinstance(self.grid, dict):
            raise InputError(
                f"`grid` must be a dict of lists of values for {', '.join(GRID_SETTINGS)}. Received: grid={self.grid!r}"
            )
        given = {name: as_python(values) for name, values in self.grid.items()}
        grid = ORIGINAL_GRID if given == {"original": True} else given
        for name, values in grid.items():
            if name not in GRID_SETTINGS or not isinstance(values, list | tuple) or not values:
                raise InputError(
                    f"`grid` must have lists of values for {', '.join(GRID_SETTINGS)}, or be "
                    f'{{"original": true}}. Received: {name}={values!r}'
                )
        object.__setattr__(self, "grid", {name: list(values) for name, values in grid.items()})
        for name, values in (self.grid or {}).items():
            for value in values:  # Each must be what the setting itself may be.
                dataclasses.replace(self, grid=None, **{name: value})
