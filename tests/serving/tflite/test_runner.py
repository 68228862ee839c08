"""A TFLite file is asked by name, and what it cannot take is said."""

import dataclasses
import importlib.util
import shutil
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.tflite.contents import append, read
from keras_bert_impl.serving.tflite.export_tflite import export_tflite
from keras_bert_impl.serving.tflite.runner import TFLiteModel
from keras_bert_impl.tasks import TextClassification
from keras_bert_impl.tasks.rows import batch_inputs, text_row

LENGTH = 32


@pytest.fixture(scope="module")
def fixed(model_dirs, tmp_path_factory):
    """A float32 file of rows of 32 ids."""
    target = tmp_path_factory.mktemp("fixed") / "out"
    export_tflite(model_dirs["multilabel"], target, quantize="none", length=LENGTH)
    return target / "model.tflite"


@pytest.fixture(scope="module")
def free(model_dirs, tmp_path_factory):
    """A float32 file of rows of any length."""
    target = tmp_path_factory.mktemp("free") / "out"
    export_tflite(model_dirs["multilabel"], target, quantize="none", length="dynamic")
    return target / "model.tflite"


def inputs_of(model, text="a good film, and not bad", length=LENGTH):
    row = text_row(model.contents.tokenizer, length, text)
    return batch_inputs([row], model.contents.tokenizer.pad_token_id, length)


def changed(path, target, change, **fields):
    """Writes a file whose graph, an object of the schema, and whose contents are changed."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    graph = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    change(graph)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(graph.Pack(builder), b"TFL3")
    target.write_bytes(append(bytes(builder.Output()), dataclasses.replace(read(path), **fields)))
    return target


def test_inputs_in_every_order_are_right_by_name(fixed, model_dirs):
    model = TFLiteModel(fixed)
    inputs = inputs_of(model)
    names = list(inputs)
    answers = [
        model.run({name: inputs[name] for name in order}) for order in (names, names[::-1], names[1:] + names[:1])
    ]
    expected = TextClassification(model_dirs["multilabel"]).outputs(
        [text_row(model.contents.tokenizer, 32, "a good film, and not bad")]
    )
    for answer in answers:
        np.testing.assert_allclose(answer["logits"][0], expected[0], atol=1e-5)


def test_a_graph_whose_inputs_were_put_in_another_order_is_right_by_name(fixed, tmp_path):
    def permute(graph):
        subgraph = graph.subgraphs[graph.signatureDefs[0].subgraphIndex]
        subgraph.inputs = np.roll(subgraph.inputs, 1)
        graph.signatureDefs[0].inputs.reverse()
        graph.signatureDefs[0].outputs.reverse()

    before, after = TFLiteModel(fixed), TFLiteModel(changed(fixed, tmp_path / "permuted.tflite", permute))
    inputs = inputs_of(before)
    for name, value in before.run(inputs).items():
        np.testing.assert_array_equal(after.run(inputs)[name], value)


def test_rows_of_any_length_are_taken_where_lengths_are_free(free, model_dirs):
    model = TFLiteModel(free)
    text = "it was not a good film and the play was very bad"
    expected = TextClassification(model_dirs["multilabel"]).outputs([text_row(model.contents.tokenizer, 40, text)])[0]
    for length in (40, 14, 25, 40):
        np.testing.assert_allclose(model.run(inputs_of(model, text, length))["logits"][0], expected, atol=1e-5)
    assert model.inputs["token_ids"]["token_ids"].shape[-1] == -1


ARRAY = np.zeros((1, LENGTH), "int32")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"token_id": ARRAY, "token_ids": None},
            r"`inputs` must be token_ids \(int32 of shape \(1, 32\)\), .*: .*token_id; did you mean token_ids\?",
        ),
        ({"segment_ids": None}, r"`inputs` must be .*segment_ids.*\. Received: token_ids, padding_mask$"),
        (
            {"token_ids": ARRAY.astype("int64")},
            r"`token_ids` must be int32 of shape \(1, 32\)\. Received: int64 of shape",
        ),
        ({"padding_mask": ARRAY.astype("bool")}, r"`padding_mask` must be int32 of shape \(1, 32\)\. Received: bool"),
        (
            {"token_ids": ARRAY[:, 1:]},
            r"`token_ids` must be int32 of shape \(1, 32\)\. Received: int32 of shape \(1, 31\)",
        ),
        ({"token_ids": ARRAY[0]}, r"`token_ids` must be int32 of shape \(1, 32\)\. Received: int32 of shape \(32,\)"),
        ({"segment_ids": [[0] * LENGTH]}, r"`segment_ids` must be a NumPy array, int32 of shape .*Received: list"),
        (
            {"token_ids": ARRAY + 9999},
            r"`token_ids` must be at least 0 and less than \d+\. Received: from 9999 to 9999",
        ),
        ({"token_ids": ARRAY - 1}, r"`token_ids` must be at least 0 and less than \d+\. Received: from -1 to -1"),
        ({"segment_ids": ARRAY + 2}, r"`segment_ids` must be at least 0 and less than 2\. Received: from 2 to 2"),
        ({"padding_mask": ARRAY + 2}, r"`padding_mask` must be at least 0 and less than 2\. Received: from 2 to 2"),
    ],
)
def test_what_the_inputs_must_be_is_said(change, message, fixed):
    model = TFLiteModel(fixed)
    inputs = {name: array for name, array in (inputs_of(model) | change).items() if array is not None}
    with pytest.raises(InputError, match=message):
        model.run(inputs)


def test_rows_of_free_length_must_fit_one_another_and_the_model(free):
    model = TFLiteModel(free)
    inputs = inputs_of(model, length=16)
    with pytest.raises(
        InputError, match=r"`inputs` must have one shape\. Received: token_ids \(1, 16\), segment_ids \(1, 9\)"
    ):
        model.run(inputs | {"segment_ids": np.zeros((1, 9), "int32")})
    with pytest.raises(InputError, match="`token_ids` must have at most 40 columns"):
        model.run({name: np.zeros((1, 41), "int32") for name in inputs})
    with pytest.raises(InputError, match=r"`token_ids` must be int32 of shape .*Received: int32 of shape \(1, 0\)"):
        model.run({name: np.zeros((1, 0), "int32") for name in inputs})


def test_names_that_are_not_known_are_said(fixed):
    model = TFLiteModel(fixed)
    with pytest.raises(InputError, match=r"`signature` must be one of token_ids\. Received: signature='serving'"):
        model.run({}, "serving")
    with pytest.raises(InputError, match=r"`inputs` must be arrays by name\. Received: ndarray"):
        model.run(ARRAY)
    for threads in (0, True, "2"):
        with pytest.raises(
            InputError, match=f"`threads` must be a positive whole number. Received: threads={threads!r}"
        ):
            TFLiteModel(fixed, threads)


def test_a_graph_that_is_not_what_its_notes_say_is_refused(fixed, tmp_path):
    target = tmp_path / "other.tflite"

    def leave(graph):
        pass

    with pytest.raises(InputError, match=r"`model` must have a score for each label\. Received: .*with 1 labels and"):
        TFLiteModel(changed(fixed, target, leave, labels=("one",)))
    notes = read(fixed).signatures
    with pytest.raises(InputError, match="`model` must have the signature 'text' that it tells of"):
        TFLiteModel(changed(fixed, target, leave, signatures={**notes, "text": {"inputs": {}, "outputs": {}}}))
    others = {"token_ids": {**notes["token_ids"], "outputs": {"vector": {}}}}
    with pytest.raises(
        InputError, match=r"`model` must have the outputs that it tells of, vector\. Received: .*logits"
    ):
        TFLiteModel(changed(fixed, target, leave, signatures=others))


def test_a_graph_that_cannot_be_run_is_said(fixed, tmp_path):
    target = tmp_path / "broken.tflite"
    target.write_bytes(append(b"\x1c\0\0\0TFL3" + b"\0" * 200, read(fixed)))
    with pytest.raises(InputError, match="`model` must be a file that LiteRT can run"):
        TFLiteModel(target)


def test_operators_that_must_be_registered_are_named(fixed, tmp_path):
    from ai_edge_litert import schema_py_generated as schema

    def with_custom_operator(graph):
        code = graph.operatorCodes[graph.subgraphs[0].operators[0].opcodeIndex]
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode = b"TFText>FastWordpieceTokenizeWithOffsets"

    path = changed(fixed, tmp_path / "custom.tflite", with_custom_operator)
    with pytest.raises(
        InputError, match=r"`custom_ops` must register the operators.*tensorflow_text\.tflite_registrar.*FastWordpiece"
    ):
        TFLiteModel(path)


def test_what_is_not_installed_is_said_in_a_sentence(fixed, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        InputError,
        match=r"A TFLite file needs the extra `tflite`: pip install 'keras-bert-impl\[tflite\]'\. Missing: ai",
    ):
        TFLiteModel(fixed)


def test_a_file_is_asked_without_tensorflow_and_keras(fixed, model_dirs):
    script = f"""
import sys
import keras_bert_console

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "keras", "torch"):
            raise ImportError("opened " + name)

sys.meta_path.insert(0, Refuse())
from keras_bert_impl.serving.tflite.runner import TFLiteModel
answers = TFLiteModel({str(fixed)!r}).answers()(["a good film", "a bad one " * 40])
print([(one.label, one.truncated) for one in answers])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    asked = TextClassification(model_dirs["multilabel"], max_length=LENGTH)
    expected = [(one.label, one.truncated) for one in asked(["a good film", "a bad one " * 40])]
    assert done.stdout.strip() == str(expected)
    assert done.stderr == ""


def test_a_file_may_lie_anywhere(fixed, tmp_path):
    place = tmp_path / "größe 1" / "моя модель.tflite"
    place.parent.mkdir()
    shutil.copyfile(fixed, place)
    assert TFLiteModel(place).contents.labels == ("short", "fine")
