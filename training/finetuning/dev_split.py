"""Dev examples where the user has none: a share of those to train on, chosen by a hash of their texts alone."""

import hashlib
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.tasks.examples import Question, TaggedSentence

FEWEST_DEV_EXAMPLES = 4
"""Fewer than these say nothing of a model."""


def dev_split(examples: Sequence[Any], share: float) -> tuple[list[Any], list[Any]]:
    """Divides examples into those to train on and those to choose the best model by, each in the given order.

    Examples of one text (one first text of pairs, one context of questions) are never on both sides. The choice does
    not depend on a seed or on the order of the examples.

    Args:
        examples: `TextExample`, `TaggedSentence` or `Question`.
        share: share of the examples that is held out, nearly.

    Returns:
        A tuple (train, dev). `dev` is empty where it would have fewer than `FEWEST_DEV_EXAMPLES`, or would leave none.
    """
    by_text: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        by_text.setdefault(_text_of(example), []).append(number)
    wanted = round(share * len(examples))
    held_out: set[int] = set()
    for text in sorted(by_text, key=_hash):
        numbers = by_text[text]
        # Nearer to the share with this text than without it.
        if wanted - len(held_out) >= len(numbers) / 2:
            held_out.update(numbers)
        if len(held_out) >= wanted:
            break
    if not FEWEST_DEV_EXAMPLES <= len(held_out) < len(examples):
        return list(examples), []
    train = [example for number, example in enumerate(examples) if number not in held_out]
    return train, [examples[number] for number in sorted(held_out)]


def _text_of(example: Any) -> str:
    if isinstance(example, TaggedSentence):
        return " ".join(example.words)
    return example.context if isinstance(example, Question) else example.text


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
