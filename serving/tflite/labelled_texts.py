"""Labelled texts by which a TFLite file is judged; how they are scored is the affair of who has them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from .agreement import Asked


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Texts with a score for the answers to them.

    Attributes:
        texts: as they are asked.
        metric: name of the score.
        score: takes what is asked (of `keras_bert_impl.tasks`, or of a file) and returns the score of its answers to
            the texts, in points of 100; more is better.
        source: where they are from, in words.
    """

    texts: Sequence[Asked]
    metric: str
    score: Callable[[Any], float]
    source: str
