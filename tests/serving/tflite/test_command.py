"""`keras-bert export --format tflite`, and asking its file, as a person does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import keras_bert

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")
pytest.importorskip("ai_edge_quantizer", reason="needs the extra `tflite`")

TEXTS = ["a good film", "a bad book", "it was not good", "the play was dull", "great song", "awful"]


@pytest.fixture(scope="module")
def exported(model_dirs, tmp_path_factory) -> dict[str, Path]:
    """Files that the command wrote: of a model for texts, with labelled ones; and of one that fills masks."""
    folder = tmp_path_factory.mktemp("exported")
    rows = "".join(f"{text}\t{'yes' if i % 2 else 'no'}\n" for i, text in enumerate(TEXTS))
    (folder / "labelled.tsv").write_text("text\tlabel\n" + rows)
    made = {}
    for name, more in {
        "regression": ["--calibration", folder / "labelled.tsv"],
        "fill-mask": ["--quantize", "none", "--length", "dynamic"],
    }.items():
        done = keras_bert("export", model_dirs[name], folder / name, "--format", "tflite", "--max-drop", 100, *more)
        assert done.code == 0, done.err
        assert f"Exported to {folder / name / 'model.tflite'}" in done.out and "float32" in done.out
        made[name] = folder / name / "model.tflite"
    return made


# No process that asks a file may open TensorFlow or Keras.
_WITHOUT = (
    "import sys; sys.modules.update(tensorflow=None, keras=None); import keras_bert_console; "
    "sys.exit(keras_bert_console.main())"
)


def asked_without_tensorflow(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_predicts_as_its_model_does_without_tensorflow(exported, model_dirs, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join([*TEXTS, "", "bad " * 60]) + "\n")
    ours = asked_without_tensorflow("predict", exported["regression"], "--input", tmp_path / "texts.txt")
    theirs = keras_bert("predict", model_dirs["regression"], "--input", tmp_path / "texts.txt").out
    given, right = ([json.loads(line) for line in of.splitlines()] for of in (ours, theirs))
    assert len(given) == len(right) == 8
    for one, other in zip(given, right, strict=True):
        assert one.keys() == other.keys() and one["truncated"] == other["truncated"]
        assert one["label"] == pytest.approx(other["label"], abs=0.5)
    assert given[-1]["truncated"] is True


def test_a_file_fills_masks_as_its_model_does_without_tensorflow(exported, model_dirs):
    asked = ("a [MASK] film", "the [MASK] was [MASK]", "--json")
    ours = json.loads(asked_without_tensorflow("fill-mask", exported["fill-mask"], *asked))
    theirs = json.loads(keras_bert("fill-mask", model_dirs["fill-mask"], *asked).out)
    for one, other in zip(ours, theirs, strict=True):
        for of_mask, of_other in zip(one["masks"], other["masks"], strict=True):
            assert [token["token"] for token in of_mask] == [token["token"] for token in of_other]
            assert of_mask[0]["probability"] == pytest.approx(of_other[0]["probability"], abs=1e-5)


def test_a_file_is_asked_by_the_command_that_fits_it(exported):
    done = keras_bert("predict", exported["fill-mask"], "--input", exported["fill-mask"].parent / "report.md")
    assert done.code == 2 and "which fills masks; `keras-bert fill-mask` asks it" in done.err
    done = keras_bert("fill-mask", exported["regression"], "a [MASK]")
    assert done.code == 2 and "for classification; `keras-bert predict` asks it" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "onnx", "--quantize", "int8"], "`quantize` must go with `format` tflite"),
        (["--max-drop", "2"], "`max_drop` must go with `format` tflite"),
        (["--format", "tflite", "--top", "3"], "`top` must be left out of a TFLite export"),
        (["--format", "tflite", "--deploy", "d"], "`deploy` must be left out of a TFLite export"),
        (["--format", "tflite", "--quantize", "int8"], "`calibration` must be given for quantize='int8'"),
        (["--format", "tflite", "--text-in", "--length", "dynamic"], "`length` must be fixed for text in"),
        (["--format", "onnx", "--text-in"], "`text_in` must go with `format` tflite"),
        (["--format", "tflite", "--length", "some"], "`length` must be a whole number of at least 3, or 'dynamic'"),
        (
            ["--format", "tflite", "--label-column", "x"],
            "`--label-column` must go with `labelled` or `calibration`",
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused_at_once(options, message, model_dirs, tmp_path):
    done = keras_bert("export", model_dirs["regression"], tmp_path / "out", *options, cwd=tmp_path)
    assert done.code == 2 and message in done.err and "Traceback" not in done.err
    assert not any(tmp_path.iterdir())


def test_labelled_texts_need_a_model_for_a_task(model_dirs, tmp_path):
    (tmp_path / "rows.tsv").write_text("text\tlabel\na film\tyes\n")
    done = keras_bert(
        "export", model_dirs["embedding"], tmp_path / "out", "--format", "tflite", "--labelled", tmp_path / "rows.tsv"
    )
    assert done.code == 2 and "`labelled` must go with a model that was fine-tuned for a task" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["rows.tsv"]
