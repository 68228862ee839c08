"""The fields of each kind of answer: the same in what `predict` writes and beside the right ones of an evaluation."""

import dataclasses
import math
from typing import Any

from ..corpus.wording import counted


def text_answer(prediction: Any) -> dict[str, Any]:
    """Returns the fields of a `TextPrediction`.

    `label` is a name, a list of names where several may hold, or a number; `probability` that of the one label;
    `probabilities` those of all labels by name. A number has neither.
    """
    label, probabilities = prediction.label, prediction.probabilities
    fields: dict[str, Any] = {"label": list(label) if isinstance(label, tuple) else label}
    if probabilities is not None:
        if isinstance(label, str):
            fields["probability"] = probabilities[label]
        fields["probabilities"] = probabilities
    return fields | {"truncated": prediction.truncated, "windows": prediction.windows}


def tagging_answer(tagged: Any) -> dict[str, Any]:
    """Returns the fields of `TaggedWords`: `words`, `tags` and their `probabilities`, and `spans` as dicts.

    `truncated` says that of some word only the beginning was read.
    """
    return {
        "words": list(tagged.words),
        "tags": list(tagged.tags),
        "probabilities": [float(value) for value in tagged.probabilities],
        "spans": [_fields(span) for span in tagged.spans],
        "truncated": tagged.cut_words > 0,
        "windows": tagged.windows,
    }


def question_answer(answered: Any) -> dict[str, Any]:
    """Returns the fields of an `AnsweredQuestion`.

    `answer` is a slice of the context, `""` for none; `start` and `end` are its characters.
    """
    fields = {"answer": answered.text, "start": answered.start, "end": answered.end}
    fields |= {"probability": answered.probability, "score": answered.score}
    fields |= {"truncated": answered.truncated, "windows": answered.windows}
    if answered.null_score is not None:
        fields["null_score"] = answered.null_score
    if len(answered.answers) > 1:
        fields["answers"] = [_fields(answer) for answer in answered.answers]
    return fields


def vector_answer(made: Any) -> dict[str, Any]:
    """Returns the fields of a `TextVector`."""
    return {"vector": made.vector.tolist(), "truncated": made.truncated, "windows": made.windows}


def is_finite(value: Any) -> bool:
    """Whether all numbers of an answer are finite."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def not_finite_note(count: int, noun: str) -> str:
    """Returns a sentence on answers of which not all numbers are finite."""
    return (
        f"The model gave numbers that are not finite for {counted(count, noun)}: its weights are damaged, or its "
        "training diverged; such answers mean nothing. JSON has null in place of the numbers."
    )


def rounded(value: Any) -> Any:
    """Returns an answer with its numbers to seven digits, which is all that float32 knows of them.

    None stands for what is not finite, which JSON has not.
    """
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def _fields(thing: Any) -> dict[str, Any]:
    fields = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
    return {name: value for name, value in fields.items() if value is not None}
