"""Fine-tuning on lists, data frames and Hugging Face data sets: examples in, a model that can be asked out."""

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.classification import TextClassification
from keras_bert_impl.tasks.question_answering import QuestionAnswering
from keras_bert_impl.tasks.tagging import WordTagging

from ..configs import FinetuneConfig
from .data.class_names import names_in_features
from .data.columns import LABELS
from .data.labels import is_missing
from .data.python_data import to_questions, to_tagged_sentences, to_text_examples
from .finetune import Examples, finetune
from .task import Say

Asked = TypeVar("Asked", TextClassification, WordTagging, QuestionAnswering)

_TEXT_TASKS = ("classification", "multilabel", "regression")


def finetune_texts(
    model: str,
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    *,
    pairs: Iterable[str] | None = None,
    dev: Any = None,
    task: str | None = None,
    output: str | None = None,
    say: Say = lambda line: None,
    **settings: Any,
) -> TextClassification:
    """Fine-tunes a model on texts, or pairs of texts, and their labels.

    ```python
    classify = finetune_texts("model", ["a fine film", "a dull film", …], ["good", "bad", …], epochs=3)
    classify(["a fine book"])[0].label
    ```

    Args:
        model: model directory, run directory, or another known checkpoint with its vocabulary.
        texts: strings; or rows that map columns to values, such as a `datasets.Dataset` or a data frame.
        labels: one for each text: text or whole numbers for classes, lists of text where several may hold, fractional
            numbers to be learned as such. A column of the rows if not given.
        pairs: as many second texts.
        dev: examples to choose the best model by: a tuple `(texts, labels)` or `(texts, labels, pairs)`, or rows. A
            share is held out if not given.
        task: `"classification"`, `"multilabel"` or `"regression"`; told by the labels if not given.
        output: model directory to write; none if not given.
        say: takes each line of narration.
        **settings: fields of `FinetuneConfig`, such as `epochs`, `learning_rate`, `seeds`.

    Returns:
        The model, to be asked; its `save` writes a model directory.

    Raises:
        InputError: as `finetune`.
    """
    texts = _kept(texts, "texts")
    labels = None if labels is None else list(_kept(labels, "labels"))
    task = task or _task_of(texts, labels, settings.get("label_column"))
    if task not in _TEXT_TASKS:
        raise InputError(f"`task` must be {', '.join(_TEXT_TASKS[:-1])} or {_TEXT_TASKS[-1]}. Received: task={task!r}")
    read = functools.partial(to_text_examples, kind=task)
    values = (texts, labels, pairs)
    return _finetuned(TextClassification, task, model, read, "texts", values, dev, output, say, settings)


def finetune_sentences(
    model: str,
    sentences: Iterable[Any],
    tags: Iterable[Sequence[str]] | None = None,
    *,
    dev: Any = None,
    output: str | None = None,
    say: Say = lambda line: None,
    **settings: Any,
) -> WordTagging:
    """Fine-tunes a model on sentences in words and their tags.

    Args:
        model: model directory, run directory, or another known checkpoint with its vocabulary.
        sentences: lists of words; or rows that map columns to such lists, as a `datasets.Dataset`.
        tags: as many lists of tags, in any scheme of spans or none; a column of the rows if not given.
        dev: sentences to choose the best model by: a tuple `(sentences, tags)`, or rows. A share is held out if not
            given.
        output: model directory to write; none if not given.
        say: takes each line of narration.
        **settings: fields of `FinetuneConfig`, such as `epochs`, `learning_rate`, `seeds`.

    Returns:
        The model, to be asked; its `save` writes a model directory.

    Raises:
        InputError: as `finetune`.
    """
    read = functools.partial(to_tagged_sentences, say=say)
    values = (sentences, tags)
    return _finetuned(WordTagging, "tagging", model, read, "sentences", values, dev, output, say, settings)


def finetune_questions(
    model: str,
    questions: Iterable[Any],
    contexts: Iterable[str] | None = None,
    answers: Iterable[Any] | None = None,
    *,
    dev: Any = None,
    output: str | None = None,
    say: Say = lambda line: None,
    **settings: Any,
) -> QuestionAnswering:
    """Fine-tunes a model on questions, the texts that hold their answers, and these.

    Args:
        model: model directory, run directory, or another known checkpoint with its vocabulary.
        questions: strings; or rows with the columns question, context and answers, as a `datasets.Dataset`.
        contexts: beside strings, as many texts.
        answers: beside strings, as many: a text, a list of texts, `{"text": […], "answer_start": […]}`; empty or None
            where the context holds none.
        dev: questions to choose the best model by: a tuple `(questions, contexts, answers)`, or rows. A share is held
            out if not given.
        output: model directory to write; none if not given.
        say: takes each line of narration.
        **settings: fields of `FinetuneConfig`, such as `epochs`, `learning_rate`, `seeds`.

    Returns:
        The model, to be asked; its `save` writes a model directory.

    Raises:
        InputError: as `finetune`.
    """
    read = functools.partial(to_questions, say=say)
    values = (questions, contexts, answers)
    return _finetuned(QuestionAnswering, "qa", model, read, "questions", values, dev, output, say, settings)


def _finetuned(
    kind: type[Asked],
    task: str,
    model: str,
    read: Callable[..., list[Any]],
    argument: str,
    values: tuple[Any, ...],
    dev: Any,
    output: str | None,
    say: Say,
    settings: dict[str, Any],
) -> Asked:
    """Fine-tunes on the values of an argument and those beside it, and returns the model to be asked."""
    with _place(output) as place:
        config = _config(task, model, place, settings)
        read = functools.partial(read, config=config)
        train = read(*values, argument=argument)
        finetune(config, say, examples=Examples(train, _dev(read, dev, len(values))), temporary=output is None)
        return kind(place)


@contextlib.contextmanager
def _place(output: str | None) -> Iterator[str]:
    """Yields where the model is written: where the user wants it, else in a directory that is gone after the block."""
    if output is not None:
        yield output
        return
    with tempfile.TemporaryDirectory() as folder:
        yield str(Path(folder) / "model")


def _config(task: str, model: str, output: str, settings: dict[str, Any]) -> FinetuneConfig:
    taken = {"task": task, "model": str(model), "output": str(output), "train": ("texts",)}
    if both := sorted({*taken, "dev"} & settings.keys()):
        raise InputError(f"`{both[0]}` must not be among the settings here. Received: {both[0]}={settings[both[0]]!r}")
    return FinetuneConfig.from_dict({**taken, **settings}, "settings")


def _dev(read: Callable[..., list[Any]], dev: Any, most: int) -> list[Any]:
    if dev is None:
        return []
    if not isinstance(dev, tuple):
        return read(dev, argument="dev")
    if not 2 <= len(dev) <= most:
        raise InputError(f"`dev` must be a tuple of 2{f' or {most}' * (most > 2)} lists, or rows. Received: {len(dev)}")
    return read(*dev, argument="dev")


def _kept(values: Any, name: str) -> Any:
    """Returns values that can be gone through twice."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        what = "none" if values is None else type(values).__name__
        raise InputError(f"`{name}` must be a list or another iterable. Received: {what}")
    return values if hasattr(values, "__len__") else list(values)


def _task_of(texts: Any, labels: list[Any] | None, label_column: str | None) -> str:
    """Returns the task that the labels are for."""
    if labels is None:
        names = names_in_features(getattr(texts, "features", None))
        is_frame = hasattr(texts, "columns") and hasattr(texts, "to_dict")
        rows = texts.to_dict("records") if is_frame else texts
        first = next(iter(rows), None)
        if not isinstance(first, Mapping):
            raise InputError("`labels` must be given for a list of texts. Received: none")
        wanted = [label_column] if label_column else LABELS
        column = next((name for name in first if str(name).lower() in wanted or name in wanted), None)
        if column is None:
            raise InputError(
                "`label_column` must name the labels among the columns. "
                f"Received: label_column={label_column!r}, columns {', '.join(map(str, first))}"
            )
        if column in names and not isinstance(first[column], list):
            return "classification"
        labels = [row.get(column) if isinstance(row, Mapping) else None for row in rows]
    for number, label in enumerate(labels, start=1):
        if is_missing(label):
            raise InputError(
                f"`labels` must have a label for every text. Received: the label of row {number:,} is missing"
            )
    kinds = set(map(_kind_of, labels))
    if kinds == {"regression", "classification"} and not any(isinstance(label, str) for label in labels):
        return "regression"  # 1 among 0.5 and 1.5
    if len(kinds) != 1:
        raise InputError(
            "`labels` must be all text or whole numbers, all lists of labels, or all fractional numbers. "
            f"Received: {', '.join(sorted({type(label).__name__ for label in labels})) or 'none'}"
        )
    return kinds.pop()


def _kind_of(label: Any) -> str:
    if isinstance(label, list | tuple | set | frozenset | np.ndarray):
        return "multilabel"
    return "regression" if isinstance(label, float | np.floating) else "classification"
