"""Metrics of classes, of labels of which several may hold, and of numbers, as the field defines them.

Counted by scikit-learn and SciPy. Where one of classes is 0 divided by 0, it is 0.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_bert_impl.extras import check_extra

Confidences = Sequence[tuple[float, bool]]


def class_metrics(right: Sequence[str], given: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Returns the metrics of classes that exclude one another.

    Args:
        right: the right label of each example; it need not be one of `labels`.
        given: the label that the model gives.
        labels: the model's labels, in its order.

    Returns:
        `accuracy`; with two labels `f1`, that of the second, which by custom is the positive one; `f1_macro`, the mean
        over the labels that are right or given somewhere; `f1_micro`; `matthews`; and `per_class`: for each label
        `precision`, `recall`, `f1` and `support`, the number of examples for which it is right.

    Reference:
        Matthews, 1975; Gorodkin, 2004, for more than two classes.
    """
    metrics = need_scikit_learn()
    names = all_labels(right, labels)
    per_class = _per_class(names, metrics.precision_recall_fscore_support(right, given, labels=names, zero_division=0))
    met = [name for name in names if name in {*right, *given}]
    values: dict[str, Any] = {"accuracy": float(metrics.accuracy_score(right, given))}
    if len(labels) == 2:
        values["f1"] = per_class[labels[1]]["f1"]
    return {
        **values,
        "f1_macro": float(np.mean([per_class[name]["f1"] for name in met])),
        "f1_micro": float(metrics.f1_score(right, given, labels=names, average="micro", zero_division=0)),
        "matthews": float(metrics.matthews_corrcoef(right, given)) if len(met) > 1 else 0.0,
        "per_class": per_class,
    }


def multilabel_metrics(
    right: Sequence[Sequence[str]], given: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the metrics of labels of which several may hold.

    Args:
        right: the labels that hold, of each example.
        given: those that the model gives.
        labels: the model's labels.

    Returns:
        `f1_micro`; `f1_macro`, the mean over all labels; `exact_match`, the share of the examples whose labels are all
        right; and `per_class` as in `class_metrics`.
    """
    metrics = need_scikit_learn()
    names = all_labels([name for row in right for name in row], labels)
    y_true, y_given = _indicators(right, names), _indicators(given, names)
    per_class = _per_class(names, _label_scores(y_true, y_given))
    return {
        # Of all decisions together.
        "f1_micro": float(metrics.f1_score(y_true.ravel(), y_given.ravel(), zero_division=0)),
        "f1_macro": float(np.mean([values["f1"] for values in per_class.values()])),
        "exact_match": float(np.mean((y_true == y_given).all(axis=1))),
        "per_class": per_class,
    }


def number_metrics(right: Sequence[float], given: Sequence[float]) -> dict[str, float | None]:
    """Returns the metrics of numbers.

    Args:
        right: the right numbers.
        given: those that the model gives.

    Returns:
        `pearson` and `spearman`, None where either side has one number alone; `rmse`, the root of the mean squared
        error, and `negative_rmse`; `mae`, the mean absolute error.
    """
    need_scikit_learn()
    from scipy import stats

    off = np.asarray(given, "float64") - np.asarray(right, "float64")
    rmse = math.sqrt(float(np.mean(off**2)))
    defined = len(set(right)) > 1 and len(set(given)) > 1 and bool(np.isfinite(off).all())
    return {
        "pearson": float(stats.pearsonr(right, given).statistic) if defined else None,
        "spearman": float(stats.spearmanr(right, given).statistic) if defined else None,
        "negative_rmse": -rmse,
        "rmse": rmse,
        "mae": float(np.mean(np.abs(off))),
    }


def confusion(right: Sequence[str], given: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Returns how often each label was given for each right one: `labels`, and `counts` with a row for each right."""
    names = all_labels(right, labels)
    counts = need_scikit_learn().confusion_matrix(right, given, labels=names)
    return {"labels": names, "counts": counts.tolist()}


def reliability(confidences: Confidences, bins: int = 10) -> dict[str, list[Any]]:
    """Returns how often answers are right that the model is equally sure of.

    Args:
        confidences: of each answer its probability and whether it is right.
        bins: equal parts of the probabilities from 0 to 1.

    Returns:
        For each bin with answers, in order, the mean `confidence`, the `accuracy` and the `counts`.

    Reference:
        [Guo et al., 2017](https://arxiv.org/abs/1706.04599), section 2.
    """
    curve: dict[str, list[Any]] = {"confidence": [], "accuracy": [], "counts": []}
    if not confidences:
        return curve
    # A model that has diverged is sure of nothing.
    sure = np.nan_to_num([confidence for confidence, _ in confidences])
    correct = np.array([is_right for _, is_right in confidences], "float64")
    place = np.minimum((sure * bins).astype(int), bins - 1)
    for number in np.unique(place):
        inside = place == number
        curve["confidence"].append(float(sure[inside].mean()))
        curve["accuracy"].append(float(correct[inside].mean()))
        curve["counts"].append(int(inside.sum()))
    return curve


def calibration_error(curve: dict[str, list[Any]]) -> float:
    """Returns the expected calibration error of what `reliability` returned.

    Reference:
        [Guo et al., 2017](https://arxiv.org/abs/1706.04599), equation 3.
    """
    if not curve["counts"]:
        return 0.0
    off = np.abs(np.subtract(curve["confidence"], curve["accuracy"]))
    return float(np.average(off, weights=curve["counts"]))


def all_labels(right: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Returns the model's labels, then the other ones that are right somewhere."""
    return [*labels, *sorted(set(right) - set(labels))]


def need_scikit_learn() -> Any:
    """Returns scikit-learn's metrics, which stand on SciPy; raises `InputError` if they are not installed."""
    check_extra("`task` classification, multilabel or regression", "finetune", ["sklearn", "scipy"])
    import sklearn.metrics

    return sklearn.metrics


def _indicators(rows: Sequence[Sequence[str]], names: Sequence[str]) -> np.ndarray:
    return np.array([[name in row for name in names] for row in map(set, rows)], "int32")


def _label_scores(y_true: np.ndarray, y_given: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns precision, recall, F1 and support of each column."""
    metrics = need_scikit_learn()
    if y_true.shape[1] == 1:  # scikit-learn takes one column for two classes.
        return metrics.precision_recall_fscore_support(y_true.ravel(), y_given.ravel(), labels=[1], zero_division=0)
    return metrics.precision_recall_fscore_support(y_true, y_given, zero_division=0)


def _per_class(names: Sequence[str], scores: tuple[np.ndarray, ...]) -> dict[str, dict[str, float | int]]:
    return {
        name: {"precision": float(p), "recall": float(r), "f1": float(f), "support": int(n)}
        for name, p, r, f, n in zip(names, *scores, strict=True)
    }
