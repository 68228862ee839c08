"""Texts by which another form of a model is judged: labelled ones with their score, and ones without labels."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras_bert_impl.tasks.examples import Question, TaggedSentence, TextExample
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import FinetuneConfig, PredictConfig
from ..configs.finetune import METRICS
from .data import stream_examples
from .tasks import task_class

Say = Callable[[str], None]
Asked = tuple[Any, ...]

# SQuAD's rules give percent by themselves.
_POINTS = {"qa": 1.0}


class ScoredExamples(NamedTuple):
    """Labelled examples.

    Attributes:
        texts: what is asked of each: a text, with its pair if it has one; words; a question and its context.
        metric: the usual one of the task.
        score: takes what answers, of `keras_bert_impl.tasks`, and returns the metric in points of 100; 0 where it is
            not defined.
    """

    texts: list[Asked]
    metric: str
    score: Callable[[Any], float]


def read_scored(
    file: str, model: str, settings: TaskSettings, tokenizer: WordPieceTokenizer, columns: dict[str, Any], say: Say
) -> ScoredExamples:
    """Reads labelled examples, as `evaluate --input` does.

    Args:
        file: the file, in the argument `labelled`.
        model: what the examples are for.
        settings: of the model's task.
        tokenizer: the model's.
        columns: those settings of `configs.columns.COLUMN_SETTINGS` that are given.
        say: takes each line of narration.

    Raises:
        InputError: if the file cannot be read, has no examples or not such as the task needs, or scikit-learn or
            seqeval are not installed.
    """
    config = FinetuneConfig(task=settings.task, model=model, train=(file,), output=model, **columns)
    task = task_class(settings.task)(config, tokenizer, say)
    task.pair = settings.pair
    examples = task.read([file], "labelled")
    metric = METRICS[settings.task][0]

    def score(answers: Any) -> float:
        value = task.measure(answers, examples).metrics[metric]
        return 0.0 if value is None else float(value) * _POINTS.get(settings.task, 100.0)

    return ScoredExamples([asked(example) for example in examples], metric, score)


def read_texts(
    file: str, settings: TaskSettings | None, columns: dict[str, Any], argument: str, say: Say
) -> list[Asked]:
    """Reads texts without regard to labels, as `predict` does.

    Args:
        file: the file.
        settings: of the model's task; None for a model that is asked single texts.
        columns: those settings of `configs.columns.COLUMN_SETTINGS` that are given.
        argument: what error messages call the file.
        say: takes each line of narration.

    Raises:
        InputError: if the file cannot be read.
    """
    of_texts = {name: value for name, value in columns.items() if name != "label_column"}
    config = PredictConfig(model="model", input=file, **of_texts)
    task, pair = (None, False) if settings is None else (settings.task, settings.pair)
    rows = stream_examples(file, config, task=task, pair=pair, argument=argument, say=say)
    return [asked(row.example) for row in rows]


def asked(example: TextExample | TaggedSentence | Question) -> Asked:
    """Returns what is asked: a text, with its pair if it has one; a sentence's words; a question and its context."""
    if isinstance(example, TaggedSentence):
        return (list(example.words),)
    if isinstance(example, Question):
        return example.question, example.context
    return (example.text,) if example.text_pair is None else (example.text, example.text_pair)
