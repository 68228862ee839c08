"""A model becomes a TFLite file that answers as it does, or is refused with what was seen."""

import json
import re
import sys

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.fill_mask import FillMask
from keras_bert_impl.serving.proof.clean_process import ExportError
from keras_bert_impl.serving.tflite import text_rows, variants
from keras_bert_impl.serving.tflite.export_tflite import export_tflite
from keras_bert_impl.serving.tflite.labelled_texts import LabelledTexts
from keras_bert_impl.serving.tflite.lost_accuracy_error import LostAccuracyError
from keras_bert_impl.serving.tflite.runner import TFLiteModel
from keras_bert_impl.tasks import QuestionAnswering, SentenceEmbedding, TextClassification, WordTagging
from keras_bert_impl.tasks.rows import text_row

TEXTS = ["a good film", "a bad book", "it was not good", "the play was dull, very dull!", "great song", "awful"] * 3
"""What is asked of each kind of model: texts, pairs, questions with their texts."""
ASKED = {
    "embedding": TEXTS,
    "fill-mask": ["a [MASK] film", *TEXTS],
    "classification": [(text, "i was there") for text in TEXTS],
    "multilabel": TEXTS,
    "regression": TEXTS,
    "tagging": [(text.split(),) for text in TEXTS],
    "qa": [("what was it", text) for text in TEXTS],
}
ASKS = {
    "embedding": SentenceEmbedding,
    "fill-mask": FillMask,
    "tagging": WordTagging,
    "qa": QuestionAnswering,
}


@pytest.mark.parametrize("name", ASKED)
def test_every_task_is_exported_as_the_keras_model_answers(name, model_dirs, tmp_path):
    lines = []
    report = export_tflite(
        model_dirs[name], tmp_path / "out", quantize="none", calibration=ASKED[name], say=lines.append
    )
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"model.tflite", "report.json", "report.md"}
    [variant] = report.variants
    assert variant.agreement.largest < 1e-4 and variant.agreement.share > 0.99999
    assert not variant.operators.custom and variant.operators.built_in
    assert set(variant.measured.milliseconds) == {1, 2} and all(variant.measured.milliseconds.values())
    assert variant.measured.peak_bytes > variant.measured.added_bytes > 0
    record = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert record == json.loads(json.dumps(report.to_dict()))
    assert (tmp_path / "out" / "report.md").read_text(encoding="utf-8") == report.page()
    assert any("Exported to" in line for line in lines) and set(report.table()) <= set(lines)

    model = TFLiteModel(tmp_path / "out" / "model.tflite")
    assert model.contents.length == 40 and model.contents.quantization == "none"
    asked = ASKS.get(name, TextClassification)(model_dirs[name])
    columns = [list(column) for column in zip(*(t if isinstance(t, tuple) else (t,) for t in ASKED[name]), strict=True)]
    if name == "embedding":
        np.testing.assert_allclose(model.answers()(*columns), asked(*columns), atol=1e-5)
    elif name == "fill-mask":
        [[ours]], [[theirs]] = (one(["a [MASK] film"], top=3) for one in (model.answers(), asked))
        assert [one["token"] for one in ours] == [one["token"] for one in theirs]
    else:
        for one, other in zip(model.answers()(*columns), asked(*columns), strict=True):
            same = "label" if hasattr(one, "label") else "tags" if hasattr(one, "tags") else "text"
            if name == "regression":
                assert one.label == pytest.approx(other.label, abs=1e-4)
            else:
                assert getattr(one, same) == getattr(other, same)


@pytest.mark.parametrize(("name", "form"), [("classification", "dynamic"), ("embedding", "none")])
def test_text_in_is_another_signature_whose_rows_are_counted(name, form, model_dirs, tmp_path):
    lines = []
    options = {"quantize": form, "text_in": True, "calibration": ASKED[name], "say": lines.append}
    report = export_tflite(model_dirs[name], tmp_path / "out", **options)
    rows, texts = report.text_rows, len(TEXTS)
    assert report.variants[-1].operators.custom and (rows.texts, rows.same, rows.examples) == (texts, texts, ())
    assert "text" in TFLiteModel(tmp_path / "out" / "model.tflite").inputs
    assert any(line.startswith("For text in an app must register these operators: FastBertNormalize") for line in lines)
    assert any(line.startswith(f"By text, {texts} of {texts} have the ids") for line in lines)
    assert any("which takes token_ids, segment_ids, padding_mask, or text" in line for line in lines)
    assert json.loads((tmp_path / "out" / "report.json").read_text())["text_rows"]["texts"] == texts


def test_rows_that_texts_do_not_become_are_lost_points(model_dirs, tmp_path, monkeypatch):
    made = text_row

    def otherwise_of_one(tokenizer, max_length, *text):
        return made(tokenizer, max_length, "other" if text == ("awful",) else text[0])

    monkeypatch.setattr(text_rows, "text_row", otherwise_of_one)
    texts = ["a good film"] * 19 + ["awful", "a [SEP] film"]
    with pytest.raises(LostAccuracyError, match=r"loses 5 points of the rows of texts") as lost:
        export_tflite(
            model_dirs["embedding"], tmp_path / "out", quantize="none", text_in=True, max_drop=4, calibration=texts
        )
    rows = lost.value.report.text_rows
    assert (rows.texts, rows.same, rows.examples, rows.with_special_tokens) == (20, 19, (("awful",),), 1)
    assert not (tmp_path / "out").exists()


def test_text_in_needs_no_texts_of_ones_own(model_dirs, tmp_path):
    report = export_tflite(model_dirs["embedding"], tmp_path / "out", quantize="none", text_in=True)
    assert report.text_rows.same == report.text_rows.texts == 4 and report.text_rows.with_special_tokens == 10


def scored(score):
    return LabelledTexts([(text,) for text in TEXTS], "f1_micro", score, "'dev.tsv'")


def test_the_labelled_texts_are_what_is_compared_on(model_dirs, tmp_path):
    asked = []

    def score(answers):
        asked.append(type(answers).__name__)
        return 75.0 if len(asked) % 2 else 74.5

    report = export_tflite(model_dirs["multilabel"], tmp_path / "out", labelled=scored(score))
    assert report.compared_on == "18 texts of 'dev.tsv'"
    assert [variant.form for variant in report.variants] == ["none", "dynamic"]
    assert {variant.metric.before for variant in report.variants} == {75.0}
    assert {variant.metric.after for variant in report.variants} == {74.5}
    assert set(asked) == {"TextClassification", "FileTextAnswers"}
    assert report.variants[1].bytes < report.variants[0].bytes


def test_a_file_that_lost_more_than_it_may_is_kept_aside_with_the_table(model_dirs, tmp_path):
    def score(answers):
        return 75.0 if type(answers).__name__ == "TextClassification" else 73.9

    arguments = {"quantize": "none", "labelled": scored(score)}
    for _ in range(2):  # what was refused before is replaced
        with pytest.raises(LostAccuracyError, match=r"loses 1\.1 points of f1 micro \(75\.00 to 73\.90\)") as caught:
            export_tflite(model_dirs["multilabel"], tmp_path / "out", **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["out.refused"]
    kept = {path.name for path in (tmp_path / "out.refused").iterdir()}
    assert kept == {"refused.tflite", "report.json", "report.md"}
    assert "so it was refused" in (tmp_path / "out.refused" / "report.md").read_text()
    assert "\n".join(caught.value.report.table()) in str(caught.value)
    assert re.search(r"^f1 micro +75\.00 +73\.90$", str(caught.value), re.M)
    assert TFLiteModel(tmp_path / "out.refused" / "refused.tflite").contents.kind == "classification"

    export_tflite(model_dirs["multilabel"], tmp_path / "more", max_drop=1.2, **arguments)
    lines = []
    export_tflite(model_dirs["multilabel"], tmp_path / "allowed", allow_drop=True, say=lines.append, **arguments)
    assert (tmp_path / "more" / "model.tflite").is_file() and (tmp_path / "allowed" / "model.tflite").is_file()
    assert "It lost 1.1 points of f1 micro (75.00 to 73.90), which was allowed." in lines


def test_texts_longer_than_the_fixed_length_are_counted_and_said(model_dirs, tmp_path):
    lines = []
    report = export_tflite(
        model_dirs["multilabel"],
        tmp_path / "out",
        quantize="none",
        length=8,
        calibration=["a good film", "a bad bad bad bad bad bad film"],
        max_drop=100,
        say=lines.append,
    )
    assert (report.variants[0].agreement.truncated, report.variants[0].agreement.truncated_before) == (1, 0)
    note = "Longer than 8 ids and cut off, as answers say: 1 of 2 texts (0 by the Keras model). A larger `length` "
    assert any(line.startswith(note) for line in lines)
    answers = TFLiteModel(tmp_path / "out" / "model.tflite").answers()
    assert [one.truncated for one in answers(["a good film", "bad " * 9])] == [False, True]


def test_without_texts_of_ones_own_the_built_in_ones_are_compared_and_that_is_said(model_dirs, tmp_path):
    lines = []
    report = export_tflite(model_dirs["qa"], tmp_path / "out", quantize="none", say=lines.append)
    assert report.compared_on == "16 built-in examples"
    assert any(line.startswith("No texts of yours were given: what it costs on them is not known.") for line in lines)


def test_a_graph_that_is_wrong_is_not_put_in_place(model_dirs, tmp_path, monkeypatch):
    convert = variants.convert

    def from_other_weights(kind, loaded, **options):
        other = kind.load(loaded.directory)
        kernel = other.model.classifier.kernel
        kernel.assign(kernel + 0.1)
        return convert(kind, other, **options)

    monkeypatch.setattr(variants, "convert", from_other_weights)
    with pytest.raises(ExportError, match="not put in place: on the same rows its graph differs from the Keras model"):
        export_tflite(model_dirs["multilabel"], tmp_path / "out")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"quantize": "int4"},
            "`quantize` must be one of none, float16, dynamic, int8, weights-int8, weights-int4. Rec",
        ),
        (
            {"quantize": "int8"},
            "`calibration` must be given for quantize='int8', whose activations are fitted to texts",
        ),
        ({"length": 2}, "`length` must be a whole number of at least 3, or 'dynamic'. Received: length=2"),
        ({"length": "long"}, "`length` must be a whole number of at least 3, or 'dynamic'. Received: length='long'"),
        ({"length": True}, "`length` must be a whole number of at least 3, or 'dynamic'. Received: length=True"),
        ({"length": 41}, "`length` must be at most 40, the positions of the model. Received: length=41"),
        ({"max_drop": -1}, "`max_drop` must be a number of points, at least 0. Received: max_drop=-1"),
        ({"max_drop": float("nan")}, "`max_drop` must be a number of points, at least 0. Received: max_drop=nan"),
        ({"calibration": []}, "`calibration` must have one or more texts. Received: none"),
        ({"calibration": "a text"}, "`calibration` must be a list of texts. Received: str"),
        ({"calibration": [("a", "b")]}, "`calibration` must have text of each. Received: 2 at place 0"),
        ({"labelled": LabelledTexts([], "f1", len, "x")}, "`labelled` must have one or more texts. Received: none"),
    ],
)
def test_what_the_arguments_must_be_is_said(arguments, message, model_dirs, tmp_path):
    if arguments.get("labelled") is None:
        arguments = {"labelled": None, **arguments}
    with pytest.raises(InputError, match=re.escape(message)):
        export_tflite(model_dirs["regression"], tmp_path / "out", **arguments)
    assert not any(tmp_path.iterdir())


def test_where_it_cannot_go_is_said_before_the_model_is_read(tmp_path):
    with pytest.raises(InputError, match=r"`target_dir` must be a directory, which gets model\.tflite and its report"):
        export_tflite(tmp_path / "none", tmp_path / "film.tflite")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(InputError, match="`target_dir` must be a new or empty directory"):
        export_tflite(tmp_path / "none", tmp_path / "full")
    (tmp_path / "out.refused").mkdir()
    (tmp_path / "out.refused" / "thesis.txt").touch()
    with pytest.raises(
        InputError, match=r"`target_dir` must leave '.*out\.refused' free, where a file is kept that is"
    ):
        export_tflite(tmp_path / "none", tmp_path / "out")


def test_what_is_not_installed_is_asked_for_before_anything_is_read(tmp_path, monkeypatch):
    for package in ("ai_edge_litert", "ai_edge_quantizer"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(
                InputError, match=rf"An export as TFLite needs the extra `tflite`: .* Missing: {package}"
            ):
                export_tflite(tmp_path / "none", tmp_path / "out")
