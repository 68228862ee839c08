"""What is to be answered, read as its task needs it."""

from collections.abc import Callable
from typing import Any

from .squad import stream_questions
from .tables import InputRows, stream_text_rows
from .tagged_files import stream_words


def stream_examples(
    file: str, config: Any, *, task: str | None, pair: bool | None, argument: str = "input", say: Callable[[str], None]
) -> InputRows[Any]:
    """Opens sentences of words for tagging, questions for qa, else texts or pairs, to be answered row by row.

    Args:
        file: the file; `-` for standard input.
        config: settings with those of `configs.columns.COLUMN_SETTINGS`.
        task: the model's; None, or another word, for what is asked texts.
        pair: of texts: whether there must be pairs; None where the file says it.
        argument: what error messages call the file.
        say: takes each line of narration.

    Raises:
        InputError: if the file cannot be read; the errors of a row come when it is reached.
    """
    if task == "tagging":
        return stream_words(file, config, argument=argument, say=say)
    if task == "qa":
        return stream_questions(file, config, argument=argument, say=say)
    return stream_text_rows(file, config, argument=argument, pair=pair, say=say)
