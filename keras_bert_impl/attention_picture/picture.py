"""A heat map for each head of each layer of a model, in one file."""

import os
from collections.abc import Callable
from pathlib import Path

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.attention_picture.attention import attention_of
from keras_bert_impl.attention_picture.page import attention_page
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra

_NEEDED = ("matplotlib", "jinja2")


def write_attention_picture(
    model: str | os.PathLike[str],
    text: str,
    output: str | os.PathLike[str],
    *,
    text_pair: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Draws what each token of a text looks at, in every head of every layer.

    A text that is longer than the model's positions is cut; that is said here and in the picture.

    Args:
        model: a model directory, or a run directory (its best model).
        text: the text; special tokens written in it (`[MASK]`) are kept whole.
        output: the file to write, `.html`: a page that needs nothing beside it and runs nothing.
        text_pair: a second text, read after the first as the model's second segment.
        say: is told what was done, line by line.

    Returns:
        The path of the file.

    Raises:
        InputError: if `output` ends otherwise or the extra `report` is not installed; if `model` has no encoder
            or no vocabulary that fits; if a text has no token.
    """
    target = Path(output)
    _check(target)
    texts = (text,) if text_pair is None else (text, text_pair)
    attention = attention_of(model_directory(model), texts)
    if attention.cut:
        say(attention.cut)
    layers, heads, tokens, _ = attention.probabilities.shape
    page = attention_page(attention)
    with atomic_file(target) as file:
        file.write(page)
    say(f"Attention of {layers} layers with {heads} heads each over {tokens} tokens: {target}")
    return target


def _check(target: Path) -> None:
    if target.suffix.lower() != ".html":
        raise InputError(f"`output` must end in .html. Received: {str(target)!r}")
    check_extra("`output`", "report", _NEEDED)
