"""Metrics of classes, labels and numbers, against figures worked out by hand."""

import math
import sys

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.finetuning.metrics.classification import (
    calibration_error,
    class_metrics,
    confusion,
    multilabel_metrics,
    number_metrics,
    reliability,
)

RIGHT = ["no"] * 6 + ["yes"] * 4
GIVEN = ["no"] * 5 + ["yes"] + ["yes"] * 2 + ["no"] * 2


def test_two_classes_by_hand():
    values = class_metrics(RIGHT, GIVEN, ["no", "yes"])
    assert values["accuracy"] == pytest.approx(0.7)
    assert values["f1"] == pytest.approx(2 * 2 / (2 * 2 + 1 + 2))  # of "yes", the second
    assert values["f1_macro"] == pytest.approx((4 / 7 + 10 / 13) / 2)
    assert values["f1_micro"] == pytest.approx(0.7)
    assert values["matthews"] == pytest.approx((2 * 5 - 1 * 2) / math.sqrt(3 * 4 * 6 * 7))
    assert values["per_class"]["yes"] == pytest.approx({"precision": 2 / 3, "recall": 0.5, "f1": 4 / 7, "support": 4})


def test_the_positive_label_is_the_second_of_the_model_not_the_rarer():
    assert class_metrics(RIGHT, GIVEN, ["yes", "no"])["f1"] == pytest.approx(10 / 13)


def test_with_three_classes_there_is_no_f1_of_one():
    values = class_metrics(["a", "b", "c"], ["a", "b", "b"], ["a", "b", "c"])
    assert "f1" not in values and values["f1_macro"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    # Gorodkin's R_K, from the confusion matrix: (3 * 2 - 3) / sqrt((9 - 5) * (9 - 3)).
    assert values["matthews"] == pytest.approx(3 / math.sqrt(4 * 6))


def test_a_label_that_the_model_lacks_counts_as_wrong():
    values = class_metrics(["a", "b", "x"], ["a", "b", "b"], ["a", "b"])
    assert values["accuracy"] == pytest.approx(2 / 3) and values["f1_macro"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert values["per_class"]["x"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}
    assert confusion(["a", "b", "x"], ["a", "b", "b"], ["a", "b"]) == {
        "labels": ["a", "b", "x"],
        "counts": [[1, 0, 0], [0, 1, 0], [0, 1, 0]],
    }


def test_a_label_that_is_nowhere_has_no_part_in_the_macro_mean():
    values = class_metrics(["a", "b"], ["a", "b"], ["a", "b", "c"])
    assert values["f1_macro"] == 1.0 and values["per_class"]["c"]["support"] == 0


def test_one_class_alone_is_not_an_error():
    values = class_metrics(["a", "a"], ["a", "a"], ["a", "b"])
    assert (values["accuracy"], values["matthews"], values["f1"]) == (1.0, 0.0, 0.0)


def test_several_labels_by_hand():
    right, given = [("a", "b"), ("a",), (), ("b",)], [("a",), ("a",), ("b",), ("b",)]
    values = multilabel_metrics(right, given, ["a", "b", "c"])
    assert values["f1_micro"] == pytest.approx(2 * 3 / (2 * 3 + 1 + 1))
    assert values["f1_macro"] == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    assert values["exact_match"] == pytest.approx(0.5)
    assert values["per_class"]["b"] == pytest.approx({"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2})


def test_one_label_that_may_hold_and_one_that_the_model_lacks():
    values = multilabel_metrics([("a",), (), ("a",)], [("a",), (), ()], ["a"])
    assert values["per_class"] == {"a": pytest.approx({"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "support": 2})}
    assert multilabel_metrics([("a", "x")], [("a",)], ["a"])["exact_match"] == 0.0


def test_numbers_by_hand():
    values = number_metrics([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 6.0])
    assert values["pearson"] == pytest.approx(7 / math.sqrt(5 * 14))
    assert values["spearman"] == pytest.approx(0.8)
    assert values["rmse"] == pytest.approx(math.sqrt(6 / 4)) and values["negative_rmse"] == -values["rmse"]
    assert values["mae"] == pytest.approx(1.0)


def test_correlations_of_one_number_alone_are_not_defined():
    assert number_metrics([1.0, 2.0], [3.0, 3.0])["pearson"] is None
    assert number_metrics([1.0], [3.0])["spearman"] is None
    assert number_metrics([1.0, 2.0], [3.0, math.inf])["pearson"] is None


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(
        InputError, match=r"needs the extra `finetune`: pip install 'keras-bert-impl\[finetune\]'\. Mis"
    ):
        class_metrics(["a"], ["a"], ["a", "b"])


def test_reliability_compares_confidence_with_accuracy():
    curve = reliability([(0.55, True), (0.58, False), (0.95, True), (1.0, True)])
    assert curve["counts"] == [2, 2] and curve["accuracy"] == [0.5, 1.0]
    assert curve["confidence"] == pytest.approx([0.565, 0.975])
    assert calibration_error(curve) == pytest.approx((0.065 + 0.025) / 2)
    assert (
        reliability([]) == {"confidence": [], "accuracy": [], "counts": []} and calibration_error(reliability([])) == 0
    )
