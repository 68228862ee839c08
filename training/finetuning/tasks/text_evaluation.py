"""How well a model answers labelled texts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.classification import TextClassification
from keras_bert_impl.tasks.examples import TextExample
from keras_bert_impl.tasks.text_answers import TextPrediction

from ...corpus.wording import counted, shown
from ..answers import is_finite, not_finite_note, text_answer
from ..data.labels import label_order
from ..metrics.classification import (
    calibration_error,
    class_metrics,
    confusion,
    multilabel_metrics,
    number_metrics,
    reliability,
)
from ..task import Evaluation
from .warning_text import collapsed, unknown_names

_NAMED_LABELS = 10


def evaluate_texts(
    answers: TextClassification, examples: Sequence[TextExample], *, batch_size: int = 32, long_texts: str = "truncate"
) -> Evaluation:
    """Lets a model answer labelled texts and compares.

    Labels that the model doesn't know are named in the warnings; those examples are answered like all others, and
    counted as wrong.

    Args:
        answers: the model.
        examples: one or more, with their labels.
        batch_size: rows that are worked on at once.
        long_texts: as for `TextClassification`.

    Raises:
        InputError: if there are no examples.
    """
    if not examples:
        raise InputError("`examples` must be one or more labelled texts. Received: none")
    pairs = [example.text_pair for example in examples]
    given = answers([example.text for example in examples], pairs, batch_size=batch_size, long_texts=long_texts)
    compare = {"classification": _compare_classes, "multilabel": _compare_labels, "regression": _compare_numbers}
    metrics, correct, odd, pictures = compare[answers.settings.task](answers, examples, given)
    fields = [text_answer(one) for one in given]
    if not_finite := sum(not is_finite(answer) for answer in fields):
        odd.append(not_finite_note(not_finite, "example"))
    predictions = [
        {**_content(example), **answer, "right": _plain(example.label)}
        for example, answer in zip(examples, fields, strict=True)
    ]
    for prediction, is_right in zip(predictions, correct, strict=False):  # a number is never quite right
        prediction["correct"] = is_right
    return Evaluation({**metrics, "truncated": sum(one.truncated for one in given)}, predictions, odd, pictures)


_Compared = tuple[dict[str, Any], list[bool], list[str], dict[str, Any]]


def _compare_classes(
    answers: TextClassification, examples: Sequence[TextExample], given: Sequence[TextPrediction]
) -> _Compared:
    right, labels = [str(example.label) for example in examples], [str(one.label) for one in given]
    correct = [a == b for a, b in zip(right, labels, strict=True)]
    probabilities = [one.probabilities or {} for one in given]
    curve = reliability([(of_all[name], ok) for of_all, name, ok in zip(probabilities, labels, correct, strict=True)])
    known = [of_all[name] for of_all, name in zip(probabilities, right, strict=True) if name in of_all]
    metrics = {
        **class_metrics(right, labels, answers.labels),
        "cross_entropy": float(-np.mean(np.log(np.maximum(known, 1e-12)))) if known else None,
        "calibration_error": calibration_error(curve),
    }
    odd = _unknown_labels(answers, [(name,) for name in right])
    if len(set(labels)) == 1 and len(set(right)) > 1 and is_finite(probabilities):
        odd.append(_collapsed(f"{labels[0]!r}", len(labels)))
    return metrics, correct, odd, {"confusion": confusion(right, labels, answers.labels), "reliability": curve}


def _compare_labels(
    answers: TextClassification, examples: Sequence[TextExample], given: Sequence[TextPrediction]
) -> _Compared:
    right = [labels_of(example) for example in examples]
    labels = [one.label if isinstance(one.label, tuple) else () for one in given]
    correct = [set(a) == set(b) for a, b in zip(right, labels, strict=True)]
    # Of each label how likely it is said to hold, and whether it does.
    curve = reliability(
        [
            (probability, name in holding)
            for one, holding in zip(given, map(set, right), strict=True)
            for name, probability in (one.probabilities or {}).items()
        ]
    )
    metrics = {**multilabel_metrics(right, labels, answers.labels), "calibration_error": calibration_error(curve)}
    odd = _unknown_labels(answers, right)
    if (
        len(set(labels)) == 1
        and len(set(map(frozenset, right))) > 1
        and is_finite([one.probabilities for one in given])
    ):
        odd.append(_collapsed(listed(labels[0]) or "no label", len(labels)))
    return metrics, correct, odd, {"reliability": curve}


def _compare_numbers(
    answers: TextClassification, examples: Sequence[TextExample], given: Sequence[TextPrediction]
) -> _Compared:
    right, numbers = numbers_of(examples), [float(one.label) for one in given]  # type: ignore[arg-type]
    odd = []
    if is_finite(numbers) and len(set(right)) > 1 and np.ptp(numbers) < 0.01 * np.ptp(right):
        odd.append(_collapsed(f"nearly the same number ({np.mean(numbers):.4g})", len(numbers)))
    return number_metrics(right, numbers), [], odd, {}


def _unknown_labels(answers: TextClassification, right: Sequence[Sequence[str]]) -> list[str]:
    unknown = Counter(name for names in right for name in names if name not in answers.labels)
    if not unknown:
        return []
    rows = sum(any(name in unknown for name in names) for names in right)
    named = listed([f"{name!r} ({unknown[name]:,})" for name in sorted(unknown, key=label_order)])
    return [unknown_names("label", len(unknown), named, "example", rows, "predicted")]


def _collapsed(what: str, count: int) -> str:
    return collapsed(f"{what} for all {counted(count, 'example')}")


def _content(example: TextExample) -> dict[str, Any]:
    fields = {"id": example.id, "text": example.text, "text_pair": example.text_pair}
    return {name: value for name, value in fields.items() if value is not None}


def _plain(label: Any) -> Any:
    return list(label) if isinstance(label, tuple) else label


def labels_of(example: TextExample) -> tuple[str, ...]:
    """Returns the labels that hold."""
    return example.label if isinstance(example.label, tuple) else (str(example.label),)


def numbers_of(examples: Sequence[TextExample]) -> list[float]:
    """Returns the numbers that are labels."""
    return [float(example.label) for example in examples]  # type: ignore[arg-type]


def listed(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    more = len(names) - _NAMED_LABELS
    return ", ".join(map(shown, names[:_NAMED_LABELS])) + (f" and {more:,} more" if more > 0 else "")
