"""Labels of examples: as values of files become them, and how many there are of each."""

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Question, TaggedSentence, TextExample

from ...corpus.wording import counted, percent, shown

KINDS = ("classification", "multilabel", "regression")
# By name, since pandas need not be there; its NA cannot be compared.
_ABSENT = ("NoneType", "NAType", "NaTType")
Label = str | tuple[str, ...] | float


def label_of_value(value: Any, kind: str, separator: str, argument: str, place: str) -> Label:
    """Returns the label that a value of a file or of Python stands for.

    Args:
        value: text, a number, true or false; for multilabel a list of them or a text with separators.
        kind: of `KINDS`.
        separator: multilabel: what stands between labels in a text.
        argument: what error messages call the source.
        place: where the value was read.

    Raises:
        InputError: if there is no label, or it is not of the kind.
    """
    if kind == "regression":
        return _number(value, argument, place)
    if kind == "multilabel":
        if is_missing(value):
            raise InputError(f"`{argument}` must have labels in every row. Received: none in {place}")
        parts = value.split(separator) if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            parts = [parts]
        names = (_name(part, argument, place) for part in parts if not (isinstance(part, str) and not part.strip()))
        return tuple(dict.fromkeys(names))
    return _name(value, argument, place)


def is_missing(value: Any) -> bool:
    """Whether a value from Python says that there is none: None, NaN, or what pandas has for them."""
    return type(value).__name__ in _ABSENT or (isinstance(value, numbers.Real) and bool(value != value))


def _name(value: Any, argument: str, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    if isinstance(value, str) or is_missing(value):
        raise InputError(f"`{argument}` must have a label in every row. Received: none in {place}")
    raise InputError(f"`{argument}` must have labels that are text or numbers. Received: {value!r:.60} in {place}")


def _number(value: Any, argument: str, place: str) -> float:
    if type(value).__name__ in _ABSENT or (isinstance(value, str) and not value.strip()):
        raise InputError(f"`{argument}` must have a label in every row. Received: none in {place}")
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    # Python reads digits of all scripts, and _ between them; in a table they are slips.
    odd = isinstance(value, str) and ("_" in value or not value.strip().isascii())
    if odd or not math.isfinite(number):
        raise InputError(f"`{argument}` must have finite numbers as labels. Received: {value!r:.60} in {place}")
    return number


def label_order(name: str) -> tuple[bool, float, str]:
    """Returns the key by which labels are sorted: numbers first, by size, and then text."""
    try:
        number = float(name)
    except ValueError:
        return True, 0.0, name
    return (True, 0.0, name) if number != number else (False, number, name)


def label_counts(examples: Iterable[TextExample | TaggedSentence]) -> dict[str, int]:
    """Counts labels, or the tags of words; sorted, numbers by size. Numbers to be learned are no labels."""
    counts: Counter[str] = Counter()
    for example in examples:
        label = example.tags if isinstance(example, TaggedSentence) else example.label
        if isinstance(label, tuple):
            counts.update(label)
        elif isinstance(label, str):
            counts[label] += 1
    return {name: counts[name] for name in sorted(counts, key=label_order)}


def describe_counts(counts: Mapping[str, int], total: int | None = None) -> str:
    """Says counts with their shares, `"0: 1,194 (33%), 1: 2,474 (67%)"`.

    Args:
        counts: from `label_counts`.
        total: what shares are of, such as the number of examples where several labels hold; the sum if not given.
    """
    total = total or sum(counts.values()) or 1
    return ", ".join(f"{shown(name)}: {count:,} ({percent(count / total)})" for name, count in counts.items())


def describe_first(counts: Mapping[str, int], total: int, most: int, noun: str) -> str:
    """Says the first counts, and how many further ones there are.

    Args:
        counts: from `label_counts`.
        total: what shares are of.
        most: how many are said.
        noun: what a name is, such as `"label"`.
    """
    first = dict(list(counts.items())[:most])
    more = len(counts) - len(first)
    return describe_counts(first, total) + (f" and {counted(more, f'further {noun}')}" if more else "")


def shared_texts(train: Iterable[Any], dev: Iterable[Any]) -> int:
    """Counts the dev examples whose text (with its pair), words or question with context are in train as well."""
    known = {_content(example) for example in train}
    return sum(_content(example) in known for example in dev)


def _content(example: TextExample | TaggedSentence | Question) -> Sequence[str | None]:
    if isinstance(example, TaggedSentence):
        return example.words
    if isinstance(example, Question):
        return example.question, example.context
    return example.text, example.text_pair
