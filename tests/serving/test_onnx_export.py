"""A model as ONNX answers to ids as the Keras model does."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from task_models import MODELS, toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import (
    BertEncoder,
    BertPretrainer,
)
from keras_bert_impl.serving import onnx_export
from keras_bert_impl.serving.kinds import EMBEDDING, FILL_MASK
from keras_bert_impl.serving.onnx_export import export_onnx
from keras_bert_impl.serving.proof.clean_process import ExportError
from keras_bert_impl.tasks import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

onnx = pytest.importorskip("onnx", reason="needs the extra `onnx`")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"
POSITIONS = 40
OUTPUTS = {
    "embedding": {"sentence_embedding", "sequence_output", "pooled_output"},
    "fill-mask": {"mask_positions", "mlm_logits", "sequence_output", "pooled_output", "nsp_logits"},
    "classification": {"label", "labels", "probabilities", "logits"},
    "multilabel": {"labels", "probabilities", "logits", "holds"},
    "regression": {"value"},
    "tagging": {"labels", "logits"},
    "qa": {"start_logits", "end_logits"},
}


@pytest.fixture(scope="module")
def tokenizer():
    return toy_tokenizer()


def session_of(kind, model, tokenizer, folder, **options):
    """A session of a model that was not read from a directory."""
    from keras_bert_impl.serving.onnx_graph.answers import INPUTS, answers
    from keras_bert_impl.serving.onnx_graph.graph import Graph

    encoder = getattr(model, "encoder", model)
    graph = Graph()
    outputs = answers(graph, kind, SimpleNamespace(model=model, encoder=encoder, tokenizer=tokenizer, fresh_parts=()))
    graph.write(folder / "model.onnx", INPUTS, outputs, opset=17, **options)
    return session_from(folder / "model.onnx")


def session_from(file):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # refusals are expected
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def run(session, token_ids, segment_ids=None):
    token_ids = np.int32(token_ids)
    segment_ids = np.zeros_like(token_ids) if segment_ids is None else np.int32(segment_ids)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {"token_ids": token_ids, "segment_ids": segment_ids}), strict=True))


@pytest.fixture(scope="module", params=["gelu", "gelu_new", "relu"])
def pretrainer(request, tokenizer, tmp_path_factory):
    """A pretrainer of one block and a session of it, by nonlinearity."""
    config = toy_bert_config(tokenizer, num_hidden_layers=1, hidden_act=request.param, max_position_embeddings=16)
    model = BertPretrainer(config, seed=3)
    return model, session_of(FILL_MASK, model, tokenizer, tmp_path_factory.mktemp("onnx"))


def test_masks_and_vectors_are_those_of_the_keras_model(pretrainer):
    model, session = pretrainer
    mask = 4
    token_ids = [[2, 9, mask, 7, 3, 0, 0], [2, mask, mask, 8, 9, 7, 3], [2, 7, 3, 0, 0, 0, 0]]
    segment_ids = [[0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 1], [0] * 7]
    answer = run(session, token_ids, segment_ids)
    assert answer["mask_positions"].tolist() == [[2, -1], [1, 2], [-1, -1]]
    assert not answer["mlm_logits"][0, 1].any() and not answer["mlm_logits"][2].any()
    inputs = {
        "token_ids": np.int32(token_ids),
        "segment_ids": np.int32(segment_ids),
        "padding_mask": np.int32(np.int32(token_ids) != 0),
    }
    expected = model({**inputs, "mask_positions": np.int32([[2, 0], [1, 2], [0, 0]])}, training=False)
    encoded = model.encoder(inputs, training=False)
    for row, masks in enumerate((1, 2, 0)):
        close(answer["mlm_logits"][row, :masks], expected["mlm_logits"][row, :masks])
    close(answer["nsp_logits"], expected["nsp_logits"])
    close(answer["pooled_output"], encoded["pooled_output"])
    # Vectors are 0 at padding, as those of a SavedModel's id signature.
    close(answer["sequence_output"], encoded["sequence_output"] * inputs["padding_mask"][:, :, None])


def close(answer, expected):
    expected = np.asarray(expected)
    np.testing.assert_allclose(answer, expected, rtol=0, atol=1e-5 * np.abs(expected).max(initial=0))


def test_batches_of_nothing_and_without_masks_are_answered(pretrainer):
    _, session = pretrainer
    assert run(session, np.zeros((0, 5)))["mlm_logits"].shape[:2] == (0, 0)
    assert run(session, [[2, 7, 3]])["mlm_logits"].shape[:2] == (1, 0)


def test_ids_that_the_tables_have_no_row_for_are_refused(pretrainer):
    _, session = pretrainer
    for token_ids, segment_ids in ([[2, -1, 3]], [[0] * 3]), ([[2, 999, 3]], [[0] * 3]), ([[2, 3]], [[0, 2]]):
        with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="out of data bounds"):
            run(session, token_ids, segment_ids)
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument, match="out of data bounds"):
        run(session, [[7] * 17])


def test_the_file_has_the_oldest_form_that_its_operators_allow_and_each_weight_once(pretrainer, tokenizer, tmp_path):
    model, _ = pretrainer
    session_of(FILL_MASK, model, tokenizer, tmp_path)
    stored = onnx.load(tmp_path / "model.onnx")
    assert [(opset.domain, opset.version) for opset in stored.opset_import] == [("", 17)]
    assert stored.ir_version == 8
    floats = sum(np.prod(weight.dims) for weight in stored.graph.initializer if len(weight.dims))
    assert model.count_params() <= floats < model.count_params() + 50


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return BertEncoder(toy_bert_config(tokenizer, num_hidden_layers=1), pooler=False, seed=2)


def test_a_row_of_padding_alone_has_no_sentence_vector(encoder, tokenizer, tmp_path):
    answer = run(session_of(EMBEDDING, encoder, tokenizer, tmp_path), [[0, 0, 0], [2, 7, 3]])
    assert not answer["sentence_embedding"][0].any() and not answer["sequence_output"][0].any()
    assert np.linalg.norm(answer["sentence_embedding"][1]) == pytest.approx(1)
    assert answer.keys() == {"sentence_embedding", "sequence_output"}


def test_weights_can_lie_in_a_file_of_their_own(encoder, tokenizer, tmp_path):
    inside = session_of(EMBEDDING, encoder, tokenizer, tmp_path)
    (tmp_path / "apart").mkdir()
    apart = session_of(EMBEDDING, encoder, tokenizer, tmp_path / "apart", with_weights_apart=True)
    beside = (tmp_path / "apart" / "model.onnx.data").stat().st_size
    assert beside > 4 * 1024
    sizes = [(tmp_path / folder / "model.onnx").stat().st_size for folder in (".", "apart")]
    assert sizes[1] + beside < sizes[0] + 8 * 1024
    one, other = (run(session, [[2, 7, 9, 3]]) for session in (inside, apart))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_cannot_be_is_refused_before_the_model_is_read(tmp_path, monkeypatch):
    for opset in (16, 999, True, "17"):
        with pytest.raises(InputError, match=rf"`opset` must be a whole number from 17 to \d+, .*opset={opset!r}"):
            export_onnx(tmp_path / "none", tmp_path / "target", opset=opset)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="`target_dir` must be a new or empty directory"):
        export_onnx(tmp_path / "none", tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs the extra `onnx`: pip install 'keras-bert-impl\[onnx\]'.*: onnx and"):
        export_onnx(tmp_path / "none", tmp_path / "target")


# --------------------------------------------------------------- whole exports, each proved before it is put in place


def saved(name, tokenizer, folder):
    make, options = MODELS[name]
    make(toy_bert_config(tokenizer, max_position_embeddings=POSITIONS)).save_pretrained(folder, tokenizer=tokenizer)
    if options is not None:
        TaskSettings(task=name, **options).save(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_an_export_is_proved_and_described(name, tokenizer, tmp_path, monkeypatch):
    if name == "qa":
        monkeypatch.setattr(onnx_export, "_MOST_WEIGHTS_INSIDE", 1024)
    lines = []
    file = export_onnx(saved(name, tokenizer, tmp_path / "model"), tmp_path / "target", say=lines.append)
    assert file == tmp_path / "target" / "model.onnx"
    names = {path.name for path in file.parent.iterdir()}
    apart = {"model.onnx.data"} if name == "qa" else set()
    assert names == {"model.onnx", "vocab.txt", "tokenizer_config.json", "signature.json", "proof.json"} | apart

    proof = json.loads((file.parent / "proof.json").read_text())
    assert proof["largest_difference"] <= proof["bound"] == 1e-5
    assert proof["not_imported"] == ["keras_bert_impl", "keras", "tensorflow"]
    assert "Proved on" in lines[-2]

    description = json.loads((file.parent / "signature.json").read_text(encoding="utf-8"))
    signature = description["signatures"]["token_ids"]
    assert signature["inputs"].keys() == {"token_ids", "segment_ids"}
    assert signature["outputs"].keys() == OUTPUTS[name]
    assert description["max_length"] == (33 if name == "classification" else POSITIONS)
    request, answer = signature["example"].values()
    found = run(session_from(file), **request["inputs"])
    for output, values in answer["outputs"].items():
        if found[output].dtype.kind == "f":
            np.testing.assert_allclose(found[output], values, rtol=1e-4, atol=1e-6)
        else:
            assert found[output].tolist() == values

    alike = WordPieceTokenizer.from_pretrained(file.parent)
    assert alike.encode_ids("a good film") == tokenizer.encode_ids("a good film")


@pytest.mark.slow
def test_what_does_not_answer_as_the_model_is_not_put_in_place(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.serving.onnx_graph.encoder.math.sqrt", lambda value: value)
    with pytest.raises(ExportError, match="differs from the Keras model by"):
        export_onnx(saved("embedding", tokenizer, tmp_path / "model"), tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.slow
def test_the_command_writes_it_and_the_page_shows_how_to_run_it(tokenizer, tmp_path, monkeypatch):
    saved("classification", tokenizer, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "keras_bert_console", "export", "model", "film_onnx", "--format", "onnx"]
    subprocess.run(command, check=True, capture_output=True)
    [example] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    found: dict = {}
    exec(example, found)
    assert set(found["labels"]) <= {"bad", "søso", "good"} and found["probabilities"].shape == (2, 3)
    done = subprocess.run([*command, "--top", "3"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "`top` must be left out of an ONNX export, which answers with all logits. Received: top=3" in done.stderr


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "bert-tiny-splade-mlm"])
def test_real_models_are_proved(shared, name, tmp_path):
    file = export_onnx(shared / "models" / name, tmp_path / "target")
    assert json.loads((file.parent / "proof.json").read_text())["largest_difference"] < 1e-5
    if name == "all-MiniLM-L6-v2":
        golden = json.loads((shared / "models" / name / "golden_outputs.json").read_text(encoding="utf-8"))["cases"]
        session = session_from(file)
        for case in golden:
            answer = run(session, [case["input_ids"]], [case["token_type_ids"]])
            np.testing.assert_allclose(answer["sentence_embedding"][0], case["sentence_embedding"], atol=1e-5)
            np.testing.assert_allclose(answer["pooled_output"][0], case["pooler_output"], atol=1e-5)
