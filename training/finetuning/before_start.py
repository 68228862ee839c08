"""What can be said of a fine-tuning before TensorFlow's start: whether it can begin, and whether it is done already."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import check_new_directory
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.tokenizer_files import tokenizer_beside
from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra
from keras_bert_impl.inspection import needs_tensorflow
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import FinetuneConfig
from .facts import facts_of, first_difference
from .json_files import read_json

FOLDER = "finetuning"
METRICS_FILE, CONFIG_FILE = "metrics.json", "config.json"


def check_settings(config: FinetuneConfig) -> None:
    """Checks what the settings name.

    Raises:
        InputError: if a file or the model is not there, the output has other content, or what a grid needs is not
            installed.
    """
    for argument, files in (("train", config.train), ("dev", config.dev)):
        for name in files:
            if not Path(name).is_file():
                what = "a directory" if Path(name).is_dir() else "which is not there"
                raise InputError(f"`{argument}` must be files of labelled examples. Received: {name!r}, {what}")
    if not needs_tensorflow(config.model):
        tokenizer_of(config.model)
    if config.grid is not None:
        check_extra("`grid`", "tuner", ["optuna"])
    if finished(config) is None:
        check_output(config)


def tokenizer_of(model: str, say: Callable[[str], None] = lambda line: None) -> WordPieceTokenizer:
    """Returns the tokenizer of a model.

    Args:
        model: what the settings name.
        say: takes a line where it had to be guessed whether it lower-cases.

    Raises:
        InputError: if there is no such model, or it has no vocabulary.
    """
    try:
        tokenizer = tokenizer_beside(open_checkpoint(model), model, say=say)
    except InputError as error:
        raise InputError(str(error).replace("`path`", "`model`", 1)) from error
    if tokenizer is None:
        raise InputError(f"`model` must have its vocabulary beside its weights. Received: {model!r}")
    return tokenizer


def check_output(config: FinetuneConfig, facts: Mapping[str, Any] | None = None) -> None:
    """Raises `InputError` unless the output is new or empty."""
    made_from = _made_from(config)
    if made_from is None:
        check_new_directory(config.output, "output")
        return
    difference = first_difference(made_from, facts or facts_of(config))
    raise InputError(
        "`output` must be a new or empty directory; name another one, or remove this one so that it is made anew. "
        f"Received: {config.output!r}, which holds the model of another command, {difference}"
    )


def _made_from(config: FinetuneConfig) -> Any:
    metrics = read_json(Path(config.output) / FOLDER / METRICS_FILE)
    return metrics.get("made_from") if isinstance(metrics, dict) else None


def finished(config: FinetuneConfig, facts: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """Returns the metrics of an output that these settings have made already; None if there is no such.

    Args:
        config: the settings.
        facts: of `facts_of`, if they are known.
    """
    made_from = _made_from(config)
    if made_from is None or first_difference(made_from, facts or facts_of(config)):
        return None
    return read_json(Path(config.output) / FOLDER / METRICS_FILE)
