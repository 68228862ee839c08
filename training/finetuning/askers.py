"""A model that is asked example by example, whatever its task: examples in, the fields of their answers out."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from keras_bert_impl import tasks
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tasks.vector_answers import VectorAnswers

from ..configs import PredictConfig
from .answers import question_answer, tagging_answer, text_answer, vector_answer

EMBED = "embed"
# What may be asked without settings beside the weights, as in Hugging Face's directories.
_TASK_OF = {
    "BertForSequenceClassification": "classification",
    "BertForTokenClassification": "tagging",
    "BertForQuestionAnswering": "qa",
}


@dataclasses.dataclass(frozen=True)
class Asker:
    """A model, read once.

    Attributes:
        model: the task's model, such as a `TextClassification`.
        ask: takes examples, and a function that is told the number of rows of each batch; returns the fields of the
            answers, in order.
        names: fields of the answer as columns of a table.
    """

    model: Any
    ask: Callable[[Sequence[Any], Callable[[int], None]], list[dict[str, Any]]]
    names: tuple[str, ...]


def task_of(model: str, asked_for: str | None = None, answers: AskedModel | None = None) -> str:
    """Returns the task of a model directory: of its `task.json`, else by its head; opens no weights.

    A model of texts without `task.json` is said to be of `"classification"`, which its head may then make another.

    Args:
        model: model directory or run directory.
        asked_for: the task that the user names, if any.
        answers: what answers in place of a Keras model, and then says the task.

    Raises:
        InputError: if it has no head for a task, or one for another than is asked for.
    """
    if asked_for == EMBED or isinstance(answers, VectorAnswers):
        task = EMBED
    elif (settings := _settings_of(model, answers)) is not None:
        task = settings.task
    else:
        architecture = open_checkpoint(model).architecture
        if architecture not in _TASK_OF:
            raise InputError(
                f"`model` must have been fine-tuned for a task. Received: {model!r}, a {architecture}; `--task embed` "
                "gives its sentence vectors, `keras-bert finetune` teaches it a task"
            )
        task = _TASK_OF[architecture]
        if task == "classification" and asked_for in ("multilabel", "regression"):
            return asked_for  # The head will say.
    if asked_for not in (None, task):
        raise InputError(f"`task` must be what the model was trained for, {task}. Received: task={asked_for!r}")
    return task


def trained_on_pairs(
    model: str, task: str, column: str | None = None, answers: AskedModel | None = None
) -> bool | None:
    """Returns whether a model was trained on pairs of texts; None if it does not say.

    Args:
        model: model directory or run directory.
        task: from `task_of`.
        column: the second text's, if the user names it.
        answers: as for `task_of`.

    Raises:
        InputError: if a second text is named for a model of single texts.
    """
    settings = None if task == EMBED else _settings_of(model, answers)
    pair = False if task == EMBED else None if settings is None else settings.pair
    if pair is False and column and task not in ("tagging", "qa"):
        raise InputError(
            "`text_pair_column` must go with a model that was trained on pairs of texts. "
            f"Received: text_pair_column={column!r}, {model!r} of single texts"
        )
    return pair


def open_asker(config: PredictConfig, task: str) -> Asker:
    """Reads the model of the settings for a task."""
    if task == EMBED:
        return asker_of(
            config,
            task,
            tasks.SentenceEmbedding(config.model, pooling=config.pooling, max_length=config.max_length),
        )
    model = task_model(config.model, task, config.max_length)
    return asker_of(config, task, model, TaskSettings.load(model_directory(config.model)) is not None)


def asker_of(config: PredictConfig, task: str, model: Any, has_settings: bool = True) -> Asker:
    """Returns what asks a model, a Keras model or such as a TFLite file.

    Args:
        config: the settings.
        task: from `task_of`.
        model: of `keras_bert_impl.tasks`, or what answers as it does.
        has_settings: whether it came with settings of its task.
    """
    if task == EMBED:
        return _embedding(config, model)
    if task == "tagging":
        return _tagging(config, model)
    return _question_answering(config, model, has_settings) if task == "qa" else _texts(config, model)


def _settings_of(model: str, answers: AskedModel | None) -> TaskSettings | None:
    return TaskSettings.load(model_directory(model)) if answers is None else answers.settings


def task_model(path: str, task: str, max_length: int | None = None) -> Any:
    """Reads the model of a task other than "embed" with what it is asked through."""
    kind = {"tagging": "WordTagging", "qa": "QuestionAnswering"}.get(task, "TextClassification")
    return getattr(tasks, kind)(path, max_length=max_length)


def _texts(config: PredictConfig, model: Any) -> Asker:
    task = model.settings.task
    if config.task not in (None, task):
        raise InputError(f"`task` must be what the model was trained for, {task}. Received: task={config.task!r}")

    def ask(examples: Sequence[Any], on_progress: Callable[[int], None]) -> list[dict[str, Any]]:
        answers = model(
            [example.text for example in examples],
            [example.text_pair for example in examples],
            batch_size=config.batch_size,
            long_texts=config.long_texts,
            on_progress=on_progress,
        )
        return [text_answer(answer) for answer in answers]

    names = ["label", *["probability"] * (task == "classification")]
    if task != "regression":
        names += [f"probability:{name}" for name in model.model.labels]
    return Asker(model, ask, (*names, "truncated", "windows"))


def _embedding(config: PredictConfig, model: Any) -> Asker:
    def ask(examples: Sequence[Any], on_progress: Callable[[int], None]) -> list[dict[str, Any]]:
        answers = model.embed(
            [example.text for example in examples],
            batch_size=config.batch_size,
            long_texts=config.long_texts,
            on_progress=on_progress,
        )
        return [vector_answer(answer) for answer in answers]

    return Asker(model, ask, ("vector", "truncated", "windows"))


def _tagging(config: PredictConfig, model: Any) -> Asker:
    def ask(examples: Sequence[Any], on_progress: Callable[[int], None]) -> list[dict[str, Any]]:
        sentences = [example.words if hasattr(example, "words") else example.text for example in examples]
        answers = model(sentences, batch_size=config.batch_size, on_progress=on_progress)
        return [tagging_answer(answer) for answer in answers]

    return Asker(model, ask, ("words", "tags", "probabilities", "spans", "truncated", "windows"))


def _question_answering(config: PredictConfig, model: Any, has_settings: bool) -> Asker:
    if config.null_threshold is not None:
        if not model.settings.may_have_no_answer and has_settings:
            raise InputError(
                "`null_threshold` must go with a model that was trained on questions without an answer. "
                f"Received: null_threshold={config.null_threshold}"
            )
        # Of a model that comes without settings, this says that it knows such questions.
        model.settings = dataclasses.replace(
            model.settings, may_have_no_answer=True, null_threshold=config.null_threshold
        )

    def ask(examples: Sequence[Any], on_progress: Callable[[int], None]) -> list[dict[str, Any]]:
        answers = model(
            [example.question for example in examples],
            [example.context for example in examples],
            config.n_best,
            batch_size=config.batch_size,
            on_progress=on_progress,
        )
        return [question_answer(answer) for answer in answers]

    names = ["answer", "start", "end", "probability", "score", "truncated", "windows"]
    names += ["null_score"] * model.settings.may_have_no_answer + ["answers"] * (config.n_best > 1)
    return Asker(model, ask, tuple(names))
