"""Exact match and F1 of answers by the rules of SQuAD's official scripts, v1.1 and v2.0.

The rules are for English: answers are compared in lower case, without the articles a, an and the, without ASCII
punctuation, and word by word where white space separates words. In Chinese a whole clause is one such word, so F1 is
near to exact match there.
"""

import collections
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Question

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NAMED = 5


def normalise_answer(text: str) -> str:
    """Returns an answer as it is compared: lower case; no punctuation, no articles; single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def exact_match(given: str, right: str) -> float:
    """Returns 1 if two answers are the same when normalised, else 0."""
    return float(normalise_answer(given) == normalise_answer(right))


def f1(given: str, right: str, *, empty_score: float = 1.0) -> float:
    """Returns the harmonic mean of the shares of words that two answers have in common.

    Args:
        given: the answer to be scored.
        right: the answer that counts as right.
        empty_score: what two answers without any words get: 1 in v2.0, 0 in v1.1.
    """
    given_words, right_words = normalise_answer(given).split(), normalise_answer(right).split()
    if not given_words and not right_words:
        return empty_score
    common = sum((collections.Counter(given_words) & collections.Counter(right_words)).values())
    if not common:
        return 0.0
    precision, recall = common / len(given_words), common / len(right_words)
    return 2 * precision * recall / (precision + recall)


def score_answers(
    questions: Sequence[Question],
    predictions: Mapping[str, str] | Sequence[str],
    null_differences: Sequence[float] | None = None,
    answers_if_any: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Scores answers, in percent. Each is compared with all right ones, and the best result counts.

    The rules of v2.0 hold if some question is impossible, else those of v1.1.

    Args:
        questions: with the right answers.
        predictions: the answer to each question by its id, or in order; `""` for no answer.
        null_differences: by how much "no answer" scores better than the best answer, in order of the questions.
        answers_if_any: the best answer to each that is not `""`; given with `null_differences`.

    Returns:
        `exact_match`, `f1` and the number of `questions`. By v2.0 also both for the questions with and without
        answer, `has_answer` and `no_answer`; with `null_differences` `best_exact_match`, `best_f1` and their
        `…_threshold`: what could be reached by the best threshold.

    Raises:
        InputError: if there is no question, or the ids are not those of the predictions.
    """
    if not questions:
        raise InputError("`questions` must have one or more questions. Received: none")
    given = _by_id(questions, predictions) if isinstance(predictions, Mapping) else list(predictions)
    has_answer = np.asarray([not question.impossible for question in questions])
    version_2 = not has_answer.all()
    exact, overlap = answer_scores(questions, given, version_2=version_2)
    metrics = _means(exact, overlap)
    if not version_2:
        return metrics
    metrics["has_answer"] = _means(exact[has_answer], overlap[has_answer])
    metrics["no_answer"] = _means(exact[~has_answer], overlap[~has_answer])
    if null_differences is not None and answers_if_any is not None:
        scores = answer_scores(questions, answers_if_any, version_2=True)
        for name, values in zip(("exact_match", "f1"), scores, strict=True):
            best, threshold = best_threshold(values, null_differences, has_answer)
            metrics |= {f"best_{name}": best, f"best_{name}_threshold": threshold}
    return metrics


def answer_scores(
    questions: Sequence[Question], given: Sequence[str], *, version_2: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Returns exact match and F1 of each question, 0 to 1."""
    exact, overlap = np.zeros((2, len(questions)))
    for index, (question, answer) in enumerate(zip(questions, given, strict=True)):
        right = [""] if question.impossible else [answer.text for answer in question.answers]
        if version_2:
            right = [text for text in right if normalise_answer(text)] or [""]
        exact[index] = _best(exact_match, answer, right)
        overlap[index] = _best(lambda one, other: f1(one, other, empty_score=float(version_2)), answer, right)
    return exact, overlap


def best_threshold(
    scores: np.ndarray, null_differences: Sequence[float], has_answer: np.ndarray
) -> tuple[float, float]:
    """Finds from which difference on "no answer" had best be given.

    Args:
        scores: what each question gets if its best answer is given, 0 to 1, `(questions,)`; without an answer an
            impossible one gets 1, any other 0.
        null_differences: by how much "no answer" scores better than that answer.
        has_answer: bool, `(questions,)`; whether the question has an answer.

    Returns:
        The best result in percent, and the threshold: questions whose difference is greater get no answer. The
        official script names the last difference that is not greater; here it is the middle between that and the
        next, so that rounding does not decide. Equal differences are never taken apart. Of equally good thresholds
        the lowest.
    """
    differences = np.asarray(null_differences, np.float64)
    order = np.argsort(differences, kind="stable")
    ascending = differences[order]
    gains = (scores - ~has_answer)[order]
    totals = np.sum(~has_answer) + np.concatenate([[0.0], np.cumsum(gains)])
    attainable = np.concatenate([[True], ascending[1:] > ascending[:-1], [True]])
    answered = int(np.argmax(np.where(attainable, totals, -np.inf)))
    below = ascending[answered - 1] if answered else ascending[0] - 2.0
    above = ascending[answered] if answered < len(ascending) else ascending[-1] + 2.0
    return 100.0 * float(totals[answered]) / len(scores), float((below + above) / 2)


def _best(score: Callable[[str, str], float], given: str, right: Sequence[str]) -> float:
    return max((score(given, text) for text in right), default=0.0)


def _means(exact: np.ndarray, overlap: np.ndarray) -> dict[str, Any]:
    # Summed from left to right, as the official scripts do.
    shares = {"exact_match": sum(exact.tolist()), "f1": sum(overlap.tolist())}
    return {name: 100.0 * value / max(len(exact), 1) for name, value in shares.items()} | {"questions": len(exact)}


def _by_id(questions: Sequence[Question], predictions: Mapping[str, str]) -> list[str]:
    ids = [question.id for question in questions]
    absent = [str(name) for name in ids if name not in predictions]
    unknown = sorted(predictions.keys() - set(ids))
    if absent or unknown:
        parts = [
            f"{len(names)} {what} ({', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''})"
            for names, what in ((absent, "without prediction"), (unknown, "of no question"))
            if names
        ]
        raise InputError(f"`predictions` must have the ids of the questions. Received: {' and '.join(parts)}")
    return [predictions[name] for name in ids if name is not None]
