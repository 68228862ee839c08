"""What stands around the graph of a TFLite file, in Python and NumPy: texts to named inputs, named outputs to answers.

It is the reference for the same steps in an app, and runs with any interpreter: it is handed a function that takes
the inputs of one row by name and returns the outputs by name. Opens neither Keras nor TensorFlow.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.mask_answers import MaskAnswers, MaskRow
from keras_bert_impl.tasks.question_answers import QuestionAnswers
from keras_bert_impl.tasks.rows import Row, batch_inputs
from keras_bert_impl.tasks.settings import TASKS, TaskSettings
from keras_bert_impl.tasks.text_answers import TextAnswers
from keras_bert_impl.tasks.vector_answers import VectorAnswers
from keras_bert_impl.tasks.word_answers import WordAnswers

from .contents import Contents

Run = Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]]
"""Takes `token_ids`, `segment_ids` and `padding_mask`, int32 `(1, length)`, in any order; returns outputs by name."""

# Free lengths are multiples of this, since an interpreter prepares itself anew for each that it meets.
_LENGTH_STEP = 16
_OUTPUT = {"mean": "sentence_embedding", "cls": "sequence_output", "pooler": "pooled_output"}


@dataclasses.dataclass(frozen=True)
class FileModel:
    """What answers need to know of the model in a file."""

    config: BertConfig
    labels: tuple[str, ...]


class _FileAnswers(AskedModel):
    """Gives rows to a file, one after another, as an app does.

    Args:
        contents: of the file.
        run: runs its graph.
        settings: how texts become rows.
        max_length: most ids in a row, in place of that of the file.
    """

    def __init__(
        self, contents: Contents, run: Run, settings: TaskSettings | None, max_length: int | None = None
    ) -> None:
        if max_length is not None and max_length > contents.columns:
            raise InputError(
                f"`max_length` must be at most {contents.columns}, which the file was made for. "
                f"Received: max_length={max_length}"
            )
        assert settings is not None
        super().__init__(contents.tokenizer, settings, max_length or contents.max_length)
        self.model = FileModel(contents.config, contents.labels)
        self._contents, self._run = contents, run

    def outputs(
        self, rows: Sequence[Row], batch_size: int = 32, on_progress: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Returns what the graph gives for each row, in their order; `batch_size` changes nothing."""
        answers: list[Any] = [None] * len(rows)
        # Of free length: rows of one length after another.
        for i in sorted(range(len(rows)), key=lambda i: -len(rows[i].token_ids)):
            inputs = row_inputs(self._contents, rows[i])
            answers[i] = self.of_row(self._run(inputs), len(rows[i].token_ids))
            if on_progress is not None:
                on_progress(1)
        return answers

    def of_row(self, outputs: Mapping[str, np.ndarray], length: int) -> Any:
        """Returns what answers are made of, without the row's padding."""
        raise NotImplementedError


class FileTextAnswers(TextAnswers, _FileAnswers):
    """Labels and numbers for texts and pairs of texts."""

    def of_row(self, outputs: Mapping[str, np.ndarray], length: int) -> np.ndarray:
        """Returns the logits, float32 `(labels,)`, or the number."""
        return np.array(outputs["value"] if self.settings.task == "regression" else outputs["logits"][0], "float32")


class FileWordAnswers(WordAnswers, _FileAnswers):
    """Tags for words."""

    def of_row(self, outputs: Mapping[str, np.ndarray], length: int) -> np.ndarray:
        """Returns the logits of the tokens, float32 `(tokens, labels)`."""
        return np.array(outputs["logits"][0, :length], "float32")


class FileQuestionAnswers(QuestionAnswers, _FileAnswers):
    """Answers to questions, slices of texts."""

    def of_row(self, outputs: Mapping[str, np.ndarray], length: int) -> dict[str, np.ndarray]:
        """Returns the scores of the tokens as starts and ends, float32 `(tokens,)`."""
        return {name: np.array(outputs[name][0, :length], "float32") for name in ("start_logits", "end_logits")}


class FileVectorAnswers(VectorAnswers, _FileAnswers):
    """Vectors for texts.

    Args:
        contents, run, max_length: as elsewhere.
        pooling: `"mean"`, `"cls"` or `"pooler"`.
    """

    def __init__(self, contents: Contents, run: Run, pooling: str = "mean", max_length: int | None = None) -> None:
        super().__init__(contents, run, TaskSettings(task=TASKS[0]), max_length)
        self.pooling = pooling
        known = {name for signature in contents.signatures.values() for name in signature["outputs"]}
        self._pools_itself = pooling == "mean" and "sentence_embedding" not in known
        self._output = "sequence_output" if self._pools_itself else _OUTPUT[pooling]
        if self._output not in known:
            raise InputError(
                f"`model` must be a file that gives {self._output} for pooling={pooling!r}. Received: a file for "
                f"{contents.kind}, which gives {', '.join(sorted(known))}"
            )

    def of_row(self, outputs: Mapping[str, np.ndarray], length: int) -> np.ndarray:
        """Returns the vector, float32 `(hidden_size,)`."""
        values = np.array(outputs[self._output][0], "float32")
        if self._pools_itself:
            return values[:length].mean(axis=0)
        return values[0] if self.pooling == "cls" else values


class FileMaskAnswers(MaskAnswers):
    """Tokens that could stand at masks."""

    def __init__(self, contents: Contents, run: Run) -> None:
        # As the Keras model's: what is longer than the model can read is refused, not cut.
        super().__init__(contents.tokenizer, contents.config.vocab_size, contents.columns)
        self._contents, self._run = contents, run

    def mask_logits(self, rows: Sequence[MaskRow]) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the number of each row and the scores at its masks: float32 `(masks, vocab_size)`."""
        for number in sorted(range(len(rows)), key=lambda i: -len(rows[i].token_ids)):
            row = rows[number]
            outputs = self._run(row_inputs(self._contents, row))
            yield number, np.array(outputs["mlm_logits"][0], "float32")[: len(row.mask_positions)]


FileAnswers = FileTextAnswers | FileWordAnswers | FileQuestionAnswers | FileVectorAnswers | FileMaskAnswers


def processor(contents: Contents, run: Run, *, max_length: int | None = None, pooling: str | None = None) -> Any:
    """Returns what is asked texts and answers: called as the class of `keras_bert_impl.tasks` for the same kind.

    Args:
        contents: of the file.
        run: runs its graph.
        max_length: most ids in a row; that of the file when not given.
        pooling: for vectors; asks a file that fills masks for its vectors.

    Raises:
        InputError: if the file's inputs are shorter than `max_length`, or it gives no such vectors.
    """
    if pooling is not None or contents.kind == "embedding":
        return FileVectorAnswers(contents, run, pooling or "mean", max_length)
    if contents.kind == "fill-mask":
        return FileMaskAnswers(contents, run)
    if contents.kind == "classification":
        return FileTextAnswers(contents, run, contents.settings, max_length)
    kind = FileWordAnswers if contents.kind == "tagging" else FileQuestionAnswers
    answers = kind(contents, run, contents.settings, max_length)
    answers.cut_into_rows()
    return answers


def row_inputs(contents: Contents, row: Row) -> dict[str, np.ndarray]:
    """Returns the inputs for a row: `token_ids`, `segment_ids` and `padding_mask`, int32 `(1, length)`."""
    count = len(row.token_ids)
    length = contents.length or min(-(-count // _LENGTH_STEP) * _LENGTH_STEP, contents.columns)
    return batch_inputs([row], contents.tokenizer.pad_token_id, length)
