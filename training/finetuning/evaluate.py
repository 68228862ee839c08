"""`evaluate --input`: how well a fine-tuned model does on labelled examples."""

import json
from collections.abc import Callable
from pathlib import Path

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.tasks.examples import Question, TaggedSentence, TextExample

from ..configs import EvaluateConfig, FinetuneConfig
from ..configs.columns import COLUMN_SETTINGS
from ..corpus.wording import counted
from ..run_directory import write_json
from .answers import rounded
from .askers import task_model, task_of, trained_on_pairs
from .metric_text import metric_lines
from .output_places import check_output_places
from .task import Evaluation
from .tasks import task_class


def evaluate_labelled(config: EvaluateConfig, say: Callable[[str], None] = lambda line: None) -> Evaluation:
    """Measures a fine-tuned model on labelled examples: the numbers that fine-tuning gives for them as dev examples.

    Args:
        config: the settings, with `input`.
        say: takes each line of narration.

    Raises:
        InputError: if the model or the examples cannot be used.
    """
    outputs = {"output": config.output or None, "predictions": config.predictions or None}
    check_output_places(outputs, config.input, config.model)
    name = task_of(config.model)
    pair = trained_on_pairs(config.model, name, config.text_pair_column)
    asked = task_model(config.model, name)
    settings = asked.settings
    task = task_class(settings.task)(_as_training(config, settings.task), asked.tokenizer, say)
    task.settings, task.labels = settings, tuple(getattr(asked.model, "labels", ()))
    task.pair = pair
    examples = task.read(config.input, "input")
    evaluation = task.evaluate(asked.model, examples)
    asked.count_texts(map(_text, examples))
    say(f"{settings.task}, {counted(len(examples), 'example')}:")
    for line in (*metric_lines(evaluation.metrics), *evaluation.warnings, *asked.notes):
        say(line)
    if config.output:
        write_json(Path(config.output), evaluation.metrics)
        say(f"Metrics: {config.output}")
    if config.predictions:
        with atomic_file(config.predictions) as file:
            for prediction in evaluation.predictions:
                file.write(json.dumps(rounded(prediction), ensure_ascii=False, allow_nan=False) + "\n")
        say(f"Answers: {config.predictions}")
    return evaluation


def _text(example: TextExample | TaggedSentence | Question) -> str:
    if isinstance(example, TaggedSentence):
        return " ".join(example.words)
    if isinstance(example, Question):
        return f"{example.question} {example.context}"
    return example.text + (example.text_pair or "")


def _as_training(config: EvaluateConfig, task: str) -> FinetuneConfig:
    """Returns settings of a training that would have these examples; of them only the reading and batches count."""
    same = (*COLUMN_SETTINGS, "label_separator", "batch_size")
    return FinetuneConfig(
        task=task,
        model=config.model,
        train=config.input,
        output=config.model,
        **{name: getattr(config, name) for name in same},
    )
