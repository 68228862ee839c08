"""Puts something between what answers texts and the model that it asks."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def replaced_outputs(answers: Any, outputs: Callable[..., list[Any]]) -> Iterator[None]:
    """Within the block `answers.outputs` is another function; afterwards what it was before.

    Args:
        answers: an `AskedModel`.
        outputs: takes rows, the size of a batch and what is told of progress, as `AskedModel.outputs` does.
    """
    before = vars(answers).get("outputs")
    answers.outputs = outputs
    try:
        yield
    finally:
        if before is None:
            del answers.outputs
        else:
            answers.outputs = before
