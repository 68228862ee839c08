"""The report says what was seen, and what was lost of it."""

import dataclasses
import json

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.tflite.agreement import Agreement
from keras_bert_impl.serving.tflite.lost_accuracy_error import LostAccuracyError
from keras_bert_impl.serving.tflite.measure_tflite import Measured
from keras_bert_impl.serving.tflite.operators import Operators
from keras_bert_impl.serving.tflite.report import Metric, Report, Variant


def variant(form, share=1.0, after=83.8, megabytes=4.0, custom=None):
    return Variant(
        form=form,
        bytes=int(megabytes * 2**20),
        seconds=1.26,
        operators=Operators({"FULLY_CONNECTED": 13, "GELU": 2}, custom or {}),
        agreement=Agreement(
            texts=200,
            answers=200,
            share=share,
            meaning="share of texts with the same answer",
            largest=0.0127,
            mean=0.002,
            scale=4.0,
            truncated=7,
            truncated_before=2,
            examples=(("a | text\nof two lines", "good", "bad"),) if share < 1 else (),
        ),
        metric=None if after is None else Metric("f1_micro", 83.8, after),
        measured=Measured({1: 20.04, 2: 11.5}, 300 * 2**20, 120 * 2**20, 128),
    )


def report(*variants, **fields):
    options = {"max_drop": 1.0, "allowed": False, "calibration": "100 rows of 'texts.txt'", "notes": ("Cut off: 7.",)}
    return Report(kind="classification", compared_on="200 texts of 'dev.tsv'", variants=variants, **options | fields)


@pytest.mark.parametrize(
    ("share", "after", "max_drop", "losses"),
    [
        (1.0, 83.8, 0.0, []),
        (0.9901, 82.81, 1.0, []),
        (0.98, 83.8, 1.0, ["2 points of agreement with the Keras model (98.00%)"]),
        (1.0, 81.3, 1.0, ["2.5 points of f1 micro (83.80 to 81.30)"]),
        (1.0, 90.0, 0.0, []),
        (0.5, None, 1.0, ["50 points of agreement with the Keras model (50.00%)"]),
        (0.5, None, 50.0, []),
        (float("nan"), None, 100.0, ["nan points of agreement with the Keras model (nan%)"]),
        (1.0, float("nan"), 100.0, ["nan points of f1 micro (83.80 to nan)"]),
        (
            0.9,
            80.0,
            1.0,
            ["10 points of agreement with the Keras model (90.00%)", "3.8 points of f1 micro (83.80 to 80.00)"],
        ),
    ],
)
def test_what_is_lost_is_what_falls_by_more_than_the_threshold(share, after, max_drop, losses):
    made = report(variant("none", after=after and 83.8), variant("int8", share, after), max_drop=max_drop)
    assert made.losses == losses


def test_the_table_has_the_keras_model_and_every_file():
    lines = report(variant("none"), variant("int8", 0.995, 83.2, 1.1)).table()
    cells = {line[:20].strip(): line[20:].split() for line in lines}
    assert cells[""] == ["Keras", "float32", "int8"]
    assert cells["size, MiB"] == ["4.00", "1.10"] and cells["of float32"] == ["1.000", "0.275"]
    assert cells["agreement, %"] == ["100.00", "99.50"] and cells["f1 micro"] == ["83.80", "83.80", "83.20"]
    assert cells["largest difference"] == ["1.3e-02"] * 2 and cells["mean difference"] == ["2.0e-03"] * 2
    assert cells["texts cut off"] == ["2", "7", "7"]
    assert cells["ms, 1 thread"] == ["20"] * 2 and cells["ms, 2 threads"] == ["11.5"] * 2
    assert cells["peak memory, MiB"] == ["300"] * 2 and cells["of it for the file"] == ["120"] * 2
    assert cells["conversion, s"] == ["1.3"] * 2 and cells["custom operators"] == ["0"] * 2


def test_the_page_has_all_that_was_seen():
    page = report(variant("none"), variant("int8", 0.98, 83.2, custom={"TFText>X": 1})).page()
    assert page.startswith("# TFLite file for classification, int8\n")
    assert "Compared with the Keras model on 200 texts of 'dev.tsv'. Activations were calibrated on 100 rows" in page
    assert "| f1 micro | 83.80 | 83.80 | 83.20 |" in page
    assert "It lost 2 points of agreement with the Keras model (98.00%), more than 1 point: so it was refused." in page
    assert "| a \\| text of two lines | good | bad |" in page
    assert "Operators: FULLY_CONNECTED 13, GELU 2." in page and "Custom operators: TFText>X 1." in page
    assert "Custom operators: none." in report(variant("none")).page()


def test_the_record_is_json_whatever_was_seen():
    odd = dataclasses.replace(variant("int8", float("nan"), float("inf")), seconds=2.0)
    record = json.loads(json.dumps(report(variant("none"), odd).to_dict(), allow_nan=False))
    assert record["variants"][1]["agreement"]["share"] is None and record["variants"][1]["quantize"] == "int8"
    assert record["variants"][0]["operators"]["built_in"]["GELU"] == 2
    assert record["lost_too_much"] and record["max_drop"] == 1


def test_the_error_has_the_table_and_says_where_the_file_is(tmp_path):
    made = report(variant("none"), variant("int8", 0.9, 80.0))
    error = LostAccuracyError(made, tmp_path / "x.refused")
    assert isinstance(error, InputError) and error.report is made
    first, *table = str(error).split("\n")
    assert first.startswith(
        "`quantize` must not cost more than `max_drop`, 1 point, unless `allow_drop` is given. Received: "
        "quantize='int8', which loses 10 points of agreement"
    )
    assert "nothing was put in place" in first and str(tmp_path / "x.refused") in first
    assert table == made.table()
