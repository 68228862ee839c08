"""`predict`: a model answers the rows of a file, or of standard input as they come."""

import dataclasses
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.progress import progress_bar
from keras_bert_impl.tasks.asked_model import AskedModel

from ..configs import PredictConfig
from ..configs.predict import STANDARD_STREAM
from ..configs.settings import check_defaults
from ..corpus.wording import counted
from .answer_files import AnswerFile, JsonLines, Table, VectorArray, WordLines, opened_output, output_format
from .answers import is_finite, not_finite_note, rounded
from .askers import EMBED, Asker, asker_of, open_asker, task_of, trained_on_pairs
from .data import InputRows, stream_examples
from .data.tables import one_file
from .output_places import check_output_places
from .row_chunks import arriving_chunks, full_chunks

Say = Callable[[str], None]

# Batches that are read ahead, so that rows of like length can be worked on together.
_BATCHES = 16
_ONLY_FOR = {
    "pooling": (EMBED,),
    "n_best": ("qa",),
    "null_threshold": ("qa",),
    "long_texts": (EMBED, "classification", "multilabel", "regression"),
    "text_pair_column": (EMBED, "classification", "multilabel", "regression", "qa"),
}


@dataclasses.dataclass
class Predicted:
    """What `predict` has done.

    Attributes:
        rows: answered ones, which are all.
        truncated: those of which not all was read.
        in_windows: those that took several rows of the model.
        not_finite: those whose answers have numbers that are not finite.
        seconds: that the model worked.
    """

    rows: int = 0
    truncated: int = 0
    in_windows: int = 0
    not_finite: int = 0
    seconds: float = 0.0


def predict(config: PredictConfig, say: Say = lambda line: None, *, answers: AskedModel | None = None) -> Predicted:
    """Answers every row of the input, in its order.

    Args:
        config: the settings.
        say: takes each line of narration. With standard output as the output, it must not write there.
        answers: what answers in place of the Keras model of `config.model`; it opens no TensorFlow by itself.

    Raises:
        InputError: if the model or the input cannot be used; what has been written to standard output before stays.
    """
    task, form, pair = checked(config, answers)
    if config.input == STANDARD_STREAM and sys.stdin is not None and sys.stdin.isatty():
        say("Rows are read from standard input; Ctrl-D ends them.")
    with opened_output(config.output, binary=form == "npy") as file:
        rows = stream_examples(config.input, config, task=task, pair=pair, say=say)
        asker = open_asker(config, task) if answers is None else asker_of(config, task, answers)
        writer = _writer(form, file, asker, config)
        predicted = _answered(rows, asker, writer, config)
    for line in (*_summary(predicted, config, asker), *asker.model.notes, *writer.notes):
        say(line)
    return predicted


def checked(config: PredictConfig, answers: AskedModel | None = None) -> tuple[str, str, bool | None]:
    """Refuses what cannot go together; opens no weights, nor TensorFlow.

    Args:
        config: the settings.
        answers: as for `predict`.

    Returns:
        The task, the format of the output, and whether the model was trained on pairs of texts: None if it does not
        say.

    Raises:
        InputError: if a setting has no effect, or the model, the input or the output is none for it.
    """
    task = task_of(config.model, config.task, answers)
    form = output_format(config.output, config.output_format)
    pair = trained_on_pairs(config.model, task, config.text_pair_column, answers)
    _check(config, task, form)
    one_file(config.input, "input", lambda line: None)
    return task, form, pair


def _check(config: PredictConfig, task: str, form: str) -> None:
    """Refuses settings without an effect, and an output that would replace what is read or cannot hold the answers."""
    what = "the task embed" if task == EMBED else f"a model for {task}"
    for name, tasks in _ONLY_FOR.items():
        if task not in tasks:
            check_defaults(config, [name], what)
    if form == "npy" and task != EMBED:
        raise InputError(f"`output_format` npy must go with the task embed. Received: {what}")
    if form == "conll" and task != "tagging":
        raise InputError(f"`output_format` conll must go with a model for tagging. Received: {what}")
    if form == "csv" and task == "tagging":
        raise InputError(
            "`output_format` must be jsonl, conll or tsv (a word and its tag on a line) for tagging. Received: csv"
        )
    check_output_places({"output": config.output}, [config.input], config.model)


def _writer(form: str, file: IO[Any], asker: Asker, config: PredictConfig) -> AnswerFile:
    if form == "jsonl":
        return JsonLines(file)
    if form == "npy":
        return VectorArray(file, asker.model.model.config.hidden_size)
    if "tags" in asker.names:
        return WordLines(file, "\t" if form == "tsv" else " ")
    several = "label" in asker.names and asker.model.settings.task == "multilabel"
    labels = asker.model.model.labels if several else ()
    if odd := [label for label in labels if config.label_separator in label]:
        raise InputError(
            f"`label_separator` must not be in a label. Received: {config.label_separator!r}, which is in {odd[0]!r}"
        )
    return Table(file, "," if form == "csv" else "\t", asker.names, config.label_separator)


def _answered(rows: InputRows[Any], asker: Asker, writer: AnswerFile, config: PredictConfig) -> Predicted:
    predicted = Predicted()
    begun = False
    on_screen = config.output == STANDARD_STREAM and sys.stdout is not None and sys.stdout.isatty()
    with progress_bar(None, "row", "Answering", show=not on_screen) as bar:
        for chunk in _chunks(rows, config):
            start = time.monotonic()
            if not begun:
                writer.begin(rows.names)
                begun = True
            answers = asker.ask([row.example for row in chunk], lambda count: None)
            for row, answer in zip(chunk, answers, strict=True):
                predicted.truncated += answer["truncated"]
                predicted.in_windows += answer["windows"] > 1
                predicted.not_finite += not is_finite(answer)
                writer.write(row.values, rounded(answer))
            predicted.rows += len(chunk)
            predicted.seconds += time.monotonic() - start
            bar.update(len(chunk))
    if not begun:
        writer.begin(rows.names)
    writer.end()
    return predicted


def _chunks(rows: InputRows[Any], config: PredictConfig) -> Iterator[list[Any]]:
    size = config.batch_size * _BATCHES
    if config.input == STANDARD_STREAM and not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
        return arriving_chunks(rows, size)
    return full_chunks(rows, size)


def _summary(predicted: Predicted, config: PredictConfig, asker: Asker) -> Iterator[str]:
    rate = predicted.rows / max(predicted.seconds, 1e-9)
    speed = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
    yield f"{counted(predicted.rows, 'row')} answered at {speed} rows/s: {_place(config.output)}."
    length = asker.model.max_length
    if predicted.truncated:
        by_windows = config.long_texts == "truncate" and {"label", "vector"} & set(asker.names)
        remedy = "; `long_texts` windows reads all of them" if by_windows else ""
        yield f"Cut off, longer than the {length} ids of a row: {counted(predicted.truncated, 'row')}{remedy}."
    if predicted.in_windows:
        yield f"Read in several windows of {length} ids: {counted(predicted.in_windows, 'row')}."
    if predicted.not_finite:
        yield not_finite_note(predicted.not_finite, "row")


def _place(output: str) -> str:
    return "standard output" if output == STANDARD_STREAM else str(Path(output))
