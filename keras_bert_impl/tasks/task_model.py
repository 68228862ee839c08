"""A model that is read once and asked many times: what the tasks share."""

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import keras
import numpy as np

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.checkpoints.tokenizer_files import check_rows_for_tokens, tokenizer_beside
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.pretrained_model import PretrainedModel
from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.rows import Row, batch_inputs, batches_by_length
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

# Batches have lengths that are multiples of this, so that a compiled call meets few shapes.
_LENGTH_STEP = 16
_ASKED_WITH = {
    "BertForSequenceClassification": "TextClassification",
    "BertForTokenClassification": "WordTagging",
    "BertForQuestionAnswering": "QuestionAnswering",
}


class TaskModel(AskedModel):
    """A model with its tokenizer and the settings of its task.

    It is made from a path, or from a model and its tokenizer. A subclass names the model, makes rows of what it is
    asked and answers of `outputs`.

    Args:
        path: model directory, with `task.json` or, as Hugging Face's, without; run directory; or another checkpoint
            that is known and has its vocabulary beside it.
        model: the model, in place of a path.
        tokenizer: its tokenizer; with a path, that of the directory if not given.
        settings: how texts become rows; those of `task.json`, else the usual ones.
        max_length: most ids in a row, in place of that of the settings.

    Attributes:
        model_class: the kind of model.
        head: the part of the checkpoint that must have been trained; None if any encoder will do.
        tasks: tasks of settings that are answered so; the usual one first.
        per_token: whether outputs have one value, or vector, for each token.
        model, tokenizer, settings: as given or read.

    Raises:
        InputError: if there is no such model, it has no trained head for the task, no vocabulary, weights that are not
            finite, or fewer positions than the rows are to have.
    """

    model_class: ClassVar[type[PretrainedModel]]
    head: ClassVar[str | None] = None
    tasks: ClassVar[tuple[str, ...]]
    per_token: ClassVar[bool] = False

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        model: Any = None,
        tokenizer: WordPieceTokenizer | None = None,
        settings: TaskSettings | None = None,
        max_length: int | None = None,
    ) -> None:
        if (path is None) == (model is None) or (path is None and tokenizer is None):
            raise InputError(
                f"`{type(self).__name__}` must be given a path, or `model` and `tokenizer`. "
                f"Received: path={path!r}, model={_kind(model)}, tokenizer={_kind(tokenizer)}"
            )
        if path is not None:
            checkpoint = open_checkpoint(path)
            self._check_head(checkpoint)
            tokenizer = tokenizer or tokenizer_beside(checkpoint, path)
            settings = settings or TaskSettings.load(model_directory(path))
            model = self.read_model(checkpoint)
            check_finite_weights(model, path)
        if tokenizer is None:
            raise InputError(f"`model` must have its vocabulary beside its weights. Received: {str(path)!r}")
        super().__init__(tokenizer, settings or self.usual_settings(model), max_length)
        self.model = model
        self._form: keras.Model | None = None
        self._check()

    def read_model(self, checkpoint: Checkpoint) -> PretrainedModel:
        """Reads the model."""
        return self.model_class.from_pretrained(checkpoint)

    @classmethod
    def usual_settings(cls, model: Any) -> TaskSettings:
        """Returns the settings of a model that comes without any."""
        return TaskSettings(task=cls.tasks[0])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a model directory that can be read again, with the tokenizer and the settings.

        Args:
            path: directory to write; new, empty, or a model directory without anything else.

        Raises:
            InputError: if the directory has other content.
        """
        self.model.save_pretrained(path, tokenizer=self.tokenizer)
        self.settings.save(path)

    def outputs(
        self, rows: Sequence[Row], batch_size: int = 32, on_progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Returns what the model gives for each row, in their order.

        Rows of like length are worked on together. The answer for a row doesn't depend on its neighbours, but for
        rounding (1e-5).

        Args:
            rows: what has `token_ids` and `segment_ids`.
            batch_size: rows that are worked on at once.
            on_progress: takes the number of rows of each batch that is done.

        Returns:
            For each row a float32 array, or a dict of arrays as the model has it; if `per_token`, of the row's length.

        Raises:
            InputError: if `batch_size` is no positive whole number, or a row is longer than the model's positions.
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"`batch_size` must be a positive whole number. Received: batch_size={batch_size!r}")
        lengths = [len(row.token_ids) for row in rows]
        positions = self.model.config.max_position_embeddings
        if lengths and max(lengths) > positions:
            raise InputError(f"`rows` must have at most {positions} ids. Received: a row of {max(lengths)}")
        form = self._inference_form()
        answers: list[Any] = [None] * len(rows)
        for chosen in batches_by_length(lengths, batch_size):
            longest = lengths[chosen[0]]
            length = max(longest, min(-(-longest // _LENGTH_STEP) * _LENGTH_STEP, self.max_length, positions))
            inputs = batch_inputs([rows[i] for i in chosen], self.tokenizer.pad_token_id, length)
            given = form.predict_on_batch(inputs)
            for place, i in enumerate(chosen):
                end = lengths[i] if self.per_token else None
                answers[i] = (
                    {name: _of_row(values, place, end) for name, values in given.items()}
                    if isinstance(given, dict)
                    else _of_row(given, place, end)
                )
            if on_progress is not None:
                on_progress(len(chosen))
        return answers

    def inference_form(self) -> keras.Model:
        """Returns the Keras model that rows are given to: it doesn't work on padding where the model can do without."""
        if hasattr(self.model, "unpadded_form"):
            return self.model.unpadded_form()
        return keras.Model(self.model.input, self.model.output)

    def _inference_form(self) -> keras.Model:
        if self._form is None:
            # Its own Keras model: what a user or a trainer has compiled stays as it is.
            self._form = self.inference_form()
            # Counts of real tokens differ from batch to batch, and XLA would compile for each.
            self._form.jit_compile = False
        return self._form

    def _check(self) -> None:
        name = type(self).__name__
        if not isinstance(self.model, self.model_class):
            raise InputError(f"`model` must be a {self.model_class.__name__} for {name}. Received: {_kind(self.model)}")
        if self.settings.task not in self.tasks:
            raise InputError(
                f"`settings` must be of the task {' or '.join(self.tasks)} for {name}. "
                f"Received: task={self.settings.task!r}"
            )
        check_rows_for_tokens(self.tokenizer, self.model.config)
        length, positions = self.max_length, self.model.config.max_position_embeddings
        if isinstance(length, bool) or not isinstance(length, int) or not 3 <= length <= positions:
            raise InputError(
                f"`max_length` must be a whole number from 3 to {positions}, the positions of the model. "
                f"Received: max_length={length!r}"
            )

    @classmethod
    def _check_head(cls, checkpoint: Checkpoint) -> None:
        theirs, ours = checkpoint.architecture, cls.model_class.architecture
        has_head = cls.head is None or cls.head in checkpoint.parts
        if has_head and (cls.head is None or theirs == ours or not checkpoint.architecture_is_stated):
            return
        what = f"{checkpoint.source!r}, a {theirs}"
        if has_head and theirs in _ASKED_WITH:
            remedy = f"; {_ASKED_WITH[theirs]} asks it"
        else:
            remedy = f" without one; `keras-bert finetune --task {cls.tasks[0]} --model MODEL` trains one"
        raise InputError(f"`model` must have a trained head for {' or '.join(cls.tasks)}. Received: {what}{remedy}")


def check_finite_weights(model: PretrainedModel, path: str | os.PathLike[str]) -> None:
    """Raises `InputError` if a weight of a model that was read is infinite or not a number."""
    for variable in model.weights:
        if keras.backend.is_float_dtype(variable.dtype) and not bool(keras.ops.all(keras.ops.isfinite(variable))):
            raise InputError(
                "`model` must have weights that are finite. "
                f"Received: {str(path)!r}, where {variable.path} has values that are infinite or not a number"
            )


def _of_row(values: np.ndarray, place: int, end: int | None) -> np.ndarray:
    # A copy, so that a short row does not keep its whole batch in memory.
    return np.array(values[place] if end is None else values[place, :end], "float32")


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
