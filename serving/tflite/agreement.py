"""How far a TFLite file's answers are from the Keras model's, on the same texts."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_impl.tasks.mask_answers import MaskAnswers, MaskRow
from keras_bert_impl.tasks.rows import text_row
from keras_bert_impl.tasks.vector_answers import VectorAnswers

from .replaced_outputs import replaced_outputs

Asked = tuple[Any, ...]
"""What is asked about at once: a text or its words; a text and its pair; a question and its context."""

_NAMED = 5
_SHORT = 60


@dataclasses.dataclass(frozen=True)
class Agreement:
    """What a file's answers have in common with the Keras model's.

    Attributes:
        texts: that both were asked.
        answers: that were compared: of texts, words or masks.
        share: 1 if they are all the same; see `meaning`.
        meaning: what `share` is.
        largest, mean: absolute difference of the scores, on the same rows.
        scale: largest absolute score of the Keras model.
        truncated: texts of which the file did not read all.
        truncated_before: texts of which the Keras model did not.
        examples: some texts that are answered otherwise, with both answers.
    """

    texts: int
    answers: int
    share: float
    meaning: str
    largest: float
    mean: float
    scale: float
    truncated: int
    truncated_before: int
    examples: tuple[tuple[str, str, str], ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return dataclasses.asdict(self) | {"examples": [list(example) for example in self.examples]}


def agreement(before: Any, after: Any, texts: Sequence[Asked]) -> Agreement:
    """Asks two models the same and compares.

    Args:
        before: of `keras_bert_impl.tasks`, or a `FillMask`.
        after: the same of a file, from `processor`.
        texts: one or more, as they are asked.
    """
    if isinstance(after, MaskAnswers):
        return _of_masks(before, after, texts)
    given_before = ask(before, texts)
    given_after, rows, outputs = _recorded(after, texts)
    ours, theirs = ([_flat(one) for one in of] for of in (before.outputs(rows), outputs))
    largest, mean, scale = _difference(ours, theirs, isinstance(after, VectorAnswers))
    pairs = list(zip(texts, given_before, given_after, strict=True))
    compare = _vectors if isinstance(after, VectorAnswers) else _KINDS[after.settings.task]
    share, answers, meaning, other = compare(given_before, given_after)
    return Agreement(
        texts=len(texts),
        answers=answers,
        share=share,
        meaning=meaning,
        largest=largest,
        mean=mean,
        scale=scale,
        truncated=sum(map(_is_truncated, given_after)),
        truncated_before=sum(map(_is_truncated, given_before)),
        examples=tuple((short(text), _shown(a), _shown(b)) for text, a, b in (pairs[i] for i in other[:_NAMED])),
    )


def ask(answers: Any, texts: Sequence[Asked]) -> list[Any]:
    """Returns the answers to texts."""
    columns = [list(column) for column in zip(*texts, strict=True)]
    return answers.embed(*columns) if isinstance(answers, VectorAnswers) else answers(*columns)


def _recorded(answers: Any, texts: Sequence[Asked]) -> tuple[list[Any], list[Any], list[Any]]:
    """Returns the answers to texts, the rows that were made of these, and what the model gave for the rows."""
    original = answers.outputs
    made: list[Any] = []
    gave: list[Any] = []

    def outputs(rows: Sequence[Any], *arguments: Any, **options: Any) -> list[Any]:
        given = original(rows, *arguments, **options)
        made.extend(rows)
        gave.extend(given)
        return given

    with replaced_outputs(answers, outputs):
        return ask(answers, texts), made, gave


_Compared = tuple[float, int, str, list[int]]


def _labels(before: Sequence[Any], after: Sequence[Any]) -> _Compared:
    other = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if _label(a) != _label(b)]
    return 1 - len(other) / len(before), len(before), "share of texts with the same answer", other


def _label(answer: Any) -> Any:
    label = answer.label
    return frozenset(label) if isinstance(label, tuple) else label


def _numbers(before: Sequence[Any], after: Sequence[Any]) -> _Compared:
    ours, theirs = (np.array([answer.label for answer in side], "float64") for side in (before, after))
    off = np.abs(theirs - ours)
    # Of one text, or of texts that are all alike, the size of the numbers is the measure.
    spread = float(np.mean((ours - ours.mean()) ** 2)) or float(np.mean(ours**2)) or 1.0
    share = 1 - float(np.mean(off**2)) / spread
    order = [int(i) for i in np.argsort(-off, kind="stable") if off[i] > 1e-3 * spread**0.5]
    return share, len(ours), "share of the numbers' variance that is kept (R²)", order


def _words(before: Sequence[Any], after: Sequence[Any]) -> _Compared:
    same = [[a == b for a, b in zip(x.tags, y.tags, strict=True)] for x, y in zip(before, after, strict=True)]
    words = sum(map(len, same))
    share = sum(map(sum, same)) / words if words else 1.0
    return share, words, "share of words with the same tag", [i for i, row in enumerate(same) if not all(row)]


def _questions(before: Sequence[Any], after: Sequence[Any]) -> _Compared:
    other = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if (a.start, a.end) != (b.start, b.end)]
    return 1 - len(other) / len(before), len(before), "share of questions with the same answer", other


def _vectors(before: Sequence[Any], after: Sequence[Any]) -> _Compared:
    cosines = np.array([_cosine(a.vector, b.vector) for a, b in zip(before, after, strict=True)])
    order = [int(i) for i in np.argsort(cosines, kind="stable") if cosines[i] < 0.999]
    return float(cosines.mean()), len(before), "mean cosine of the vectors", order


_KINDS = {
    "classification": _labels,
    "multilabel": _labels,
    "regression": _numbers,
    "tagging": _words,
    "qa": _questions,
}


def _of_masks(before: MaskAnswers, after: MaskAnswers, texts: Sequence[Asked]) -> Agreement:
    made = [mask_row(after, text) for (text,) in texts]
    rows = [row for row, _ in made]
    ours, theirs = (dict(side.mask_logits(rows)) for side in (before, after))
    best = [(ours[i].argmax(axis=-1), theirs[i].argmax(axis=-1)) for i in range(len(rows))]
    same = [a == b for a, b in best]
    masks = sum(map(len, same))
    largest, mean, scale = _difference([ours[i] for i in range(len(rows))], [theirs[i] for i in range(len(rows))])
    other = [i for i, of_row in enumerate(same) if not of_row.all()]
    truncated = sum(is_cut for _, is_cut in made)
    vocabulary = after.tokenizer.vocabulary

    def names(token_ids: np.ndarray) -> str:
        return " ".join(vocabulary[i] if i < len(vocabulary) else "" for i in token_ids[:3])

    return Agreement(
        texts=len(rows),
        answers=masks,
        share=float(np.mean(np.concatenate(same))),
        meaning="share of masks with the same likeliest token",
        largest=largest,
        mean=mean,
        scale=scale,
        truncated=truncated,
        truncated_before=sum(mask_row(before, text)[1] for (text,) in texts),
        examples=tuple((short(texts[i]), names(best[i][0]), names(best[i][1])) for i in other[:_NAMED]),
    )


def mask_row(answers: MaskAnswers, text: str) -> tuple[MaskRow, bool]:
    """Returns the row of a text, where its middle piece is masked unless it has a mask, and whether it was cut off."""
    row = text_row(answers.tokenizer, answers.max_length, text)
    ids, mask = list(row.token_ids), answers.tokenizer.mask_token_id
    if mask not in ids:
        if len(ids) == 2:
            ids.insert(1, mask)
        ids[len(ids) // 2] = mask
    positions = [i for i, token_id in enumerate(ids) if token_id == mask]
    return MaskRow(ids, [0] * len(ids), positions), row.truncated


def _difference(before: Sequence[Any], after: Sequence[Any], unit: bool = False) -> tuple[float, float, float]:
    """Returns the largest and the mean absolute difference, and the largest absolute value before.

    Vectors are compared when they have length 1.
    """
    largest, total, count, scale = 0.0, 0.0, 0, 0.0
    for ours, theirs in zip(before, after, strict=True):
        if unit:
            ours, theirs = (side / max(float(np.linalg.norm(side)), 1e-12) for side in (ours, theirs))
        off = np.abs(np.subtract(theirs, ours, dtype="float64"))
        off = np.where(np.isfinite(off), off, np.inf)
        scale = max(scale, float(np.abs(ours).max(initial=0)))
        largest = max(largest, float(off.max(initial=0)))
        total += float(off.sum())
        count += off.size
    return largest, total / max(count, 1), scale


def _flat(outputs: Any) -> np.ndarray:
    values = [outputs[name] for name in sorted(outputs)] if isinstance(outputs, dict) else [outputs]
    return np.concatenate([np.ravel(value) for value in values])


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    norm = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(np.dot(one, other)) / norm if norm > 0 else float(np.array_equal(one, other))


def _is_truncated(answer: Any) -> bool:
    return bool(answer.truncated) if hasattr(answer, "truncated") else answer.cut_words > 0


def short(text: Asked) -> str:
    """Returns the beginning of what was asked, in one line."""
    shown = " / ".join(part if isinstance(part, str) else " ".join(part) for part in text if part is not None)
    return shown if len(shown) <= _SHORT else f"{shown[: _SHORT - 1]}…"


def _shown(answer: Any) -> str:
    for name in ("label", "tags", "text"):
        value = getattr(answer, name, None)
        if value is not None:
            return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else ", ".join(value)
    return " ".join(f"{value:.2f}" for value in answer.vector[:3]) + " …"
