"""What the trainer needs to know of a task; one class for each is in `tasks`."""

import abc
import dataclasses
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.pretrained_model import PretrainedModel
from keras_bert_impl.tasks.asked_model import has_upper_case, lower_case_note
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import FinetuneConfig

Say = Callable[[str], None]
Example = TypeVar("Example")
Model = TypeVar("Model", bound=PretrainedModel)


@dataclasses.dataclass(frozen=True)
class TrainingRows:
    """Rows of ids with what is to be learned from them.

    Attributes:
        token_ids: one int32 array for each row, of its own length.
        segment_ids: as `token_ids`.
        targets: by name, one array or number for each row. Those of rank 1 that are named in `FinetuningTask.per_token`
            have the length of the row.
    """

    token_ids: Sequence[np.ndarray]
    segment_ids: Sequence[np.ndarray]
    targets: dict[str, Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How well a model does on labelled examples.

    Attributes:
        metrics: by name, numbers or, for classes, dicts of numbers; of JSON values.
        predictions: one for each example, in order: what `predict` would write (the example's id and texts, and the
            fields of `answers`), with the right answer beside it as `right` and, as `correct`, whether it was given.
        warnings: sentences on what is odd, such as a model that gives one class alone.
        pictures: for the report: by name what `report` draws, such as `"confusion"`: {"labels": [...], "counts":
            [[...]]} and `"reliability"`: {"confidence": [...], "accuracy": [...], "counts": [...]}.
    """

    metrics: dict[str, Any]
    predictions: list[dict[str, Any]]
    warnings: list[str] = dataclasses.field(default_factory=list)
    pictures: dict[str, Any] = dataclasses.field(default_factory=dict)


class FinetuningTask(abc.ABC, Generic[Example]):
    """A task while a model is fine-tuned for it.

    Args:
        config: the settings.
        tokenizer: the model's.
        say: takes each line of narration.

    Attributes:
        per_token: names of targets that have a value for each token.
        metric_names: metrics that a model can be chosen by, the usual one first; more is better in all.
        settings: how texts become rows; complete after `prepare`.
        labels: names of the model's outputs, after `prepare`; empty for qa.
        pair: whether `read` must find pairs of texts; None where the files say it.
    """

    per_token: ClassVar[tuple[str, ...]] = ()
    metric_names: ClassVar[tuple[str, ...]]

    settings: TaskSettings
    labels: tuple[str, ...] = ()
    pair: bool | None = None

    # What the model starts from, and whether its head is for these very labels: found by `prepare`.
    _checkpoint: Checkpoint
    _keeps_head = False

    def __init__(self, config: FinetuneConfig, tokenizer: WordPieceTokenizer, say: Say) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.say = say

    @abc.abstractmethod
    def read(self, files: Sequence[str | Path], argument: str) -> list[Example]:
        """Reads labelled examples; says what was odd. Messages name `argument`, "train" or "dev"."""

    @abc.abstractmethod
    def prepare(self, train: Sequence[Example], dev: Sequence[Example]) -> None:
        """Finds the labels and settings, says them with counts, and refuses what nothing can be learned from."""

    @abc.abstractmethod
    def make_model(self, seed: int) -> PretrainedModel:
        """Reads the model to start from, with a fresh head where it has none for these labels."""

    @abc.abstractmethod
    def rows(self, examples: Sequence[Example]) -> TrainingRows:
        """Turns examples into rows; says how many texts were cut off."""

    @abc.abstractmethod
    def loss_sums(self, outputs: Any, targets: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the weighted sum of the losses of a batch and the sum of the weights, float32 scalars; `keras.ops`.

        Args:
            outputs: what the model gives for the batch; per-token outputs are in padded rows.
            targets: arrays by name; those of `per_token` filled up with 0.
        """

    @abc.abstractmethod
    def evaluate(self, model: PretrainedModel, examples: Sequence[Example]) -> Evaluation:
        """Lets the model answer and compares."""

    @abc.abstractmethod
    def measure(self, answers: Any, examples: Sequence[Example]) -> Evaluation:
        """Compares the answers of a class of `keras_bert_impl.tasks`, or of what answers as it does."""

    def finish(self, model: PretrainedModel, dev: Sequence[Example]) -> None:
        """Completes `settings` by what is chosen on the dev examples, such as qa's null threshold."""

    def _row_length(self, usual: int) -> int:
        """Returns the ids of a row: as the settings say, else the usual number, or what the model has."""
        positions = self._checkpoint.config.max_position_embeddings
        length = self.config.max_length or min(usual, positions)
        if length > positions:
            raise InputError(
                f"`max_length` must be at most {positions}, the positions of the model. Received: max_length={length}"
            )
        return length

    def _read_model(self, kind: type[Model], head: str, seed: int, **options: Any) -> Model:
        """Reads the model to start from; its head starts fresh unless it is kept."""
        if self.config.classifier_dropout is not None:
            options["classifier_dropout"] = self.config.classifier_dropout
        with warnings.catch_warnings():
            # `prepare` has said what starts fresh.
            warnings.simplefilter("ignore")
            return kind.from_pretrained(
                self._checkpoint,
                dtype=self.config.dtype,
                seed=seed,
                fresh=() if self._keeps_head else (head,),
                **options,
            )

    def _say_letter_case(self, texts: Sequence[str]) -> None:
        """Says once if the model lower-cases texts that have upper-case letters."""
        if note := lower_case_note(self.tokenizer, len(texts), sum(map(has_upper_case, texts))):
            self.say(note)
