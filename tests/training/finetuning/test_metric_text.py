"""Metrics in words."""

from keras_bert_impl.training.finetuning.metric_text import metric_lines


def test_numbers_stand_in_a_sentence():
    assert metric_lines({"accuracy": 0.5, "f1_macro": None, "truncated": 1234}) == [
        "accuracy 0.5000, f1 macro not defined, truncated 1,234"
    ]


def test_classes_stand_in_a_table_with_a_column_for_each_number():
    classes = {"no": {"precision": 0.25, "support": 7}, "perhaps": {"precision": None, "support": 1234}}
    assert metric_lines({"per_class": classes}) == [
        "Per class:",
        "             precision  support",
        "  no            0.2500        7",
        "  perhaps  not defined    1,234",
    ]


def test_a_number_for_each_class_is_a_table_of_one_column():
    assert metric_lines({"f1_of": {"PER": 1.0}}) == ["F1 of:", "        value", "  PER  1.0000"]


def test_names_of_classes_move_nothing_on_the_screen():
    assert metric_lines({"f1_of": {"a\tb\x1b[2J\u2028": 1.0, "Größe": 0.5}})[2:] == [
        r"  a\tb\x1b[2J\u2028  1.0000",
        "  Größe              0.5000",
    ]


def test_huge_numbers_and_those_that_are_none_are_short():
    assert metric_lines({"rmse": 1.5e30, "mae": -123456.789, "pearson": float("nan")}) == [
        "rmse 1.5e+30, mae -123456.7890, pearson not finite"
    ]


def test_nothing_measured_says_nothing():
    assert metric_lines({}) == []
