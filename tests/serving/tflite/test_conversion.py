"""The graph of a file computes what the Keras model does, of built-in operators, bound by name."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from task_models import toy_tokenizer

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder
from keras_bert_impl.serving.kinds import kind_of
from keras_bert_impl.serving.tflite.conversion import convert
from keras_bert_impl.serving.tflite.graph import graph as graph_module
from keras_bert_impl.serving.tflite.graph.graph import Graph
from keras_bert_impl.serving.tflite.graph.packing import packed
from keras_bert_impl.serving.tflite.operators import operators
from keras_bert_impl.tasks import TaskSettings

NAMES = ("embedding", "fill-mask", "classification", "multilabel", "regression", "tagging", "qa")
POSITIONS = 40
OF_TOKENS = ("sequence_output", "start_logits", "end_logits")


@pytest.fixture(scope="module")
def loaded(model_dirs):
    """By name the kind of a model and what is loaded of it."""
    kinds = {name: kind_of(path) for name, path in model_dirs.items()}
    return {name: (kind, kind.load(model_dirs[name])) for name, kind in kinds.items()}


def runner(file: bytes):
    """What runs the signature of a file."""
    interpreter = Interpreter(model_content=file)
    interpreter.allocate_tensors()
    return interpreter.get_signature_runner("token_ids")


def row(model, length: int, tokens: int, seed: int = 0, masks: int = 1) -> dict[str, np.ndarray]:
    """A row of two segments, with padding behind its tokens."""
    tokenizer = model.tokenizer
    special = {tokenizer.mask_token_id, tokenizer.pad_token_id}
    usual = np.array([i for i in range(tokenizer.vocab_size) if i not in special], "int32")
    ids = np.random.default_rng(seed).choice(usual, (1, length)).astype("int32")
    ids[0, 1 : 1 + min(masks, tokens - 1)] = tokenizer.mask_token_id
    ids[0, tokens:] = tokenizer.pad_token_id
    segments, mask = np.zeros((1, length), "int32"), np.zeros((1, length), "int32")
    segments[0, tokens // 2 : tokens], mask[0, :tokens] = 1, 1
    return {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}


def expected(name: str, model, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the Keras model gives, under the names of the file's outputs."""
    if name == "fill-mask":
        places = np.flatnonzero(inputs["token_ids"][0] == model.tokenizer.mask_token_id).astype("int32")
        inputs = {**inputs, "mask_positions": places[None]}
    given = model.model(inputs, training=False)
    if not isinstance(given, dict):
        return {"value": np.ravel(given)} if name == "regression" else {"logits": np.array(given)}
    of_tokens = [key for key in given if key in OF_TOKENS]
    given = {key: np.array(value) for key, value in given.items()}
    for key in of_tokens:
        given[key] = given[key] * inputs["padding_mask"].reshape(1, -1, *[1] * (given[key].ndim - 2))
    if name == "embedding":
        sums = given["sequence_output"].sum(axis=1)
        given["sentence_embedding"] = sums / np.linalg.norm(sums)
    return given


@pytest.mark.parametrize("length", [16, None])
@pytest.mark.parametrize("name", NAMES)
def test_every_output_is_that_of_the_keras_model_at_every_length(name, length, loaded):
    kind, model = loaded[name]
    run = runner(convert(kind, model, length=length))
    compared = set()
    for columns in (16,) if length else (16, 3, POSITIONS, 17):
        for tokens in {2, columns // 2, columns}:
            inputs = row(model, columns, max(tokens, 2), seed=tokens)
            given, right = run(**inputs), expected(name, model, inputs)
            if name == "tagging":
                right["logits"] = right["logits"] * inputs["padding_mask"][..., None]
            for key in given.keys() & right.keys():
                np.testing.assert_allclose(given[key], right[key], atol=1e-5, err_msg=f"{key} of {tokens}")
                compared.add(key)
            if "probabilities" in given:
                scores = np.float64(given["logits"])
                exponents = np.exp(scores - scores.max())
                wanted = 1 / (1 + np.exp(-scores)) if name == "multilabel" else exponents / exponents.sum()
                np.testing.assert_allclose(given["probabilities"], wanted, atol=1e-6)
    assert compared >= {
        "embedding": {"sentence_embedding", "sequence_output", "pooled_output"},
        "fill-mask": {"mlm_logits", "nsp_logits"},
        "regression": {"value"},
        "qa": {"start_logits", "end_logits"},
    }.get(name, {"logits"})


@pytest.mark.parametrize("masks", [0, 1, 3])
def test_there_are_scores_for_each_mask_however_many(masks, loaded):
    kind, model = loaded["fill-mask"]
    given = runner(convert(kind, model, length=None))(**row(model, 12, 8, masks=masks))
    assert given["mask_positions"].tolist() == [list(range(1, 1 + masks))]
    assert given["mlm_logits"].shape == (1, masks, model.model.config.vocab_size)


def test_padding_has_no_influence(loaded):
    for name in ("classification", "embedding", "qa"):
        kind, model = loaded[name]
        run = runner(convert(kind, model, length=None))
        short = row(model, 9, 9)
        for columns in (10, 40):
            long = {key: np.pad(value, ((0, 0), (0, columns - 9))) for key, value in short.items()}
            # What stands at padding is not looked at.
            long["token_ids"][0, 9:], long["segment_ids"][0, 9:] = 7, 1
            for key, value in run(**short).items():
                given = run(**long)[key]
                at_tokens = given[:, :9] if key in OF_TOKENS else given
                np.testing.assert_allclose(at_tokens, value, atol=2e-6, err_msg=f"{name} {key}")
                assert not given[:, 9:].any() or key not in OF_TOKENS


@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_padding_alone_gives_numbers_and_nothing_for_its_positions(name, loaded):
    kind, model = loaded[name]
    inputs = {key: np.zeros((1, 8), "int32") for key in ("token_ids", "segment_ids", "padding_mask")}
    for key, value in runner(convert(kind, model, length=8))(**inputs).items():
        assert np.isfinite(value).all()
        assert not value.any() or key not in OF_TOKENS


@pytest.mark.parametrize("name", NAMES)
def test_all_operators_are_built_in(name, loaded):
    kind, model = loaded[name]
    for length in (8, None):
        found = operators(convert(kind, model, length=length))
        assert found.built_in["FULLY_CONNECTED"] > 6 and not found.custom


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_new", "relu"])
def test_activations_are_the_models_own(hidden_act, tmp_path, loaded):
    tokenizer = loaded["embedding"][1].tokenizer
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=20,
        max_position_embeddings=16,
        hidden_act=hidden_act,
        initializer_range=0.5,
    )
    BertEncoder(config, seed=1).save_pretrained(tmp_path, tokenizer=tokenizer)
    kind = kind_of(tmp_path)
    model = kind.load(tmp_path)
    inputs = row(model, 10, 7)
    given, right = runner(convert(kind, model, length=10))(**inputs), expected("embedding", model, inputs)
    np.testing.assert_allclose(given["sequence_output"], right["sequence_output"], atol=1e-5)


def test_inputs_are_bound_by_name_in_whatever_order_the_graph_has_them(loaded):
    kind, model = loaded["classification"]
    file = convert(kind, model, length=12)
    inputs = row(model, 12, 9)
    usual = runner(file)(**inputs)["logits"]
    written = schema.ModelT.InitFromPackedBuf(file, 0)
    for turn in range(3):
        written.subgraphs[0].inputs = np.roll(written.subgraphs[0].inputs, 1)
        given = runner(packed(written))(**dict(sorted(inputs.items(), reverse=turn == 1)))
        np.testing.assert_array_equal(given["logits"], usual)


def test_weights_lie_where_kernels_may_read_whole_registers(loaded):
    file = convert(*loaded["embedding"], length=8)
    model, places = schema.Model.GetRootAs(file, 0), []
    for i in range(model.BuffersLength()):
        buffer = model.Buffers(i)
        if buffer.DataLength():
            places.append(buffer._tab.Vector(buffer._tab.Offset(4)))
    assert len(places) > 20 and not any(place % 16 for place in places)


def test_weights_beyond_what_a_file_can_hold_are_refused(monkeypatch, loaded):
    monkeypatch.setattr(graph_module, "_MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"`model` must have at most 2 GiB of weights as TFLite\. Received: .* bytes"):
        convert(*loaded["tagging"], length=8)


def test_an_operator_may_give_another_dtype_than_it_takes():
    graph = Graph()
    value = graph.input("ids", (1, 4), "int32")
    is_two = graph.add("EQUAL", value, graph.constant(2, "int32"), shape=(1, 4), dtype="bool")
    run = runner(graph.file("token_ids", {"is_two": is_two}, "a test"))
    assert run(ids=np.int32([[2, 1, 2, 0]]))["is_two"].tolist() == [[True, False, True, False]]


_ALONE = """
import json, sys
sys.modules["tensorflow"] = None
import numpy as np
from ai_edge_litert.interpreter import Interpreter
run = Interpreter(model_path=sys.argv[1]).get_signature_runner("token_ids")
inputs = {name: np.int32(values) for name, values in json.loads(sys.argv[2]).items()}
print(json.dumps({name: value.tolist() for name, value in run(**inputs).items()}))
"""


def test_a_file_runs_in_litert_alone(loaded, tmp_path):
    kind, model = loaded["classification"]
    path, inputs = tmp_path / "model.tflite", row(model, 12, 9)
    path.write_bytes(convert(kind, model, length=12))
    asked = json.dumps({name: values.tolist() for name, values in inputs.items()})
    done = subprocess.run([sys.executable, "-c", _ALONE, path, asked], capture_output=True, text=True, check=True)
    given = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(given["logits"], expected("classification", model, inputs)["logits"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["small"])
def test_a_small_model_is_converted_in_seconds_and_little_memory(preset, tmp_path):
    """Bounds of 90 s and 6 GB, which a machine under load keeps too."""
    tokenizer = toy_tokenizer([f"word{i}" for i in range(30_500)])
    model = BertClassifier.from_preset(preset, labels=("no", "yes"), vocab_size=tokenizer.vocab_size)
    model.save_pretrained(tmp_path / "model", tokenizer=tokenizer)
    TaskSettings(task="classification").save(tmp_path / "model")
    script = (
        "import resource, sys, time, keras_bert_console\n"
        "from keras_bert_impl.serving.kinds import kind_of\n"
        "from keras_bert_impl.serving.tflite.conversion import convert\n"
        "from keras_bert_impl.serving.tflite.quantization import quantize\n"
        "kind, start = kind_of(sys.argv[1]), time.monotonic()\n"
        "quantize(convert(kind, kind.load(sys.argv[1]), length=128), 'dynamic')\n"
        "print(time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)\n"
    )
    command = [sys.executable, "-c", script, tmp_path / "model"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, gigabytes = map(float, done.stdout.split()[-2:])
    assert seconds < 90 and gigabytes < 6
