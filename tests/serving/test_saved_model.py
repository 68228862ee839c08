"""An export answers as the Keras model does, in a process that has nothing of ours."""

import hashlib
import json
import shutil
import subprocess
import sys

import httpx
import numpy as np
import pytest
import tensorflow as tf
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.serving import saved_model, warm_up
from keras_bert_impl.serving.description import weights_sha256
from keras_bert_impl.serving.kinds import kind_of
from keras_bert_impl.serving.loaded_model import LoadedMaskedLM
from keras_bert_impl.serving.local_server import LocalServer
from keras_bert_impl.serving.proof import clean_process
from keras_bert_impl.serving.proof.clean_process import ExportError
from keras_bert_impl.serving.proof.fill_mask import FillMaskComparison
from keras_bert_impl.serving.proof.prove import prove
from keras_bert_impl.serving.saved_model import export_saved_model
from keras_bert_impl.serving.signatures import fill_mask
from keras_bert_impl.serving.signatures.fill_mask import FillMaskSignatures
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece

TOP = 4
TEXTS = [
    "the [MASK] sat on the mat",
    "[MASK] [MASK]: and [MASK]!",
    "no mask",
    "",
    "\t [MASK]\u00a0ÉCOLE naïve ÇA",
    "今天天气[MASK] いろ 한국어",
    "e\u0301\u0301 \U0001f469\u200d\U0001f4bb\x00\ufffd [MASK] ΟΔΟΣ \u0130 ﬁ ½ עברית",
    "playing played plays [MASK] " + "cat " * 30,
    "dog " * 30 + "[MASK]",
    "[CLS] [SEP] [UNK] [mask]",
]

PAIRS = {
    "token_ids": [[2, 5, 4, 3, 9, 10, 3], [2, 11, 3, 4, 3]],
    "segment_ids": [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1]],
}

# Own words for what a server does: nothing here comes from the package.
RUN = """
import sys
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

requests = np.load(sys.argv[2])
answers = {}
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    signatures = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1]).signature_def
    for case in sorted({key.rpartition("/")[0] for key in requests.files}):
        signature = signatures[case.partition("/")[0]]
        feeds = {info.name: requests[f"{case}/{name}"] for name, info in signature.inputs.items()}
        fetches = {name: info.name for name, info in signature.outputs.items()}
        for name, value in session.run(fetches, feeds).items():
            answers[f"{case}/{name}"] = value.astype("S") if value.dtype == object else value

with open(sys.argv[1] + "/saved_model.pb", "rb") as file:
    [meta_graph] = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
library = meta_graph.graph_def.library.function
ops = {node.op for node in meta_graph.graph_def.node}
# How the weights are written is TensorFlow's own.
ops |= {node.op for function in library if "traced_save" not in function.signature.name for node in function.node_def}
ops -= {function.signature.name for function in library}
answers["ops/core"] = np.array(sorted(op for op in ops if op_def_registry.get(op) is not None))
answers["ops/unknown"] = np.array(sorted(op for op in ops if op_def_registry.get(op) is None), dtype="U")

for name in ("keras_bert_impl", "tensorflow_text", "keras_hub"):
    assert name not in sys.modules, name
np.savez(sys.argv[3], **answers)
"""


def run_export(version_directory, requests, folder):
    """Answers of an export to `{"SIGNATURE/CASE": inputs}`, each as a dict of arrays; and its operations."""
    arrays = {f"{case}/{name}": value for case, inputs in requests.items() for name, value in inputs.items()}
    np.savez(folder / "requests.npz", **arrays)
    files = [str(folder / "requests.npz"), str(folder / "answers.npz")]
    subprocess.run([sys.executable, "-c", RUN, str(version_directory), *files], check=True, cwd=folder)
    answers = {}
    with np.load(folder / "answers.npz") as arrays:
        for key in arrays.files:
            case, _, name = key.rpartition("/")
            answers.setdefault(case, {})[name] = arrays[key]
    return answers


def encode(tokenizer, texts, max_length):
    """Rows as the model reads them, one list of ids per text, and whether it was cut."""
    pieces = [tokenizer.encode_ids(text) for text in texts]
    rows = [[tokenizer.cls_token_id, *ids[: max_length - 2], tokenizer.sep_token_id] for ids in pieces]
    return rows, [len(ids) > max_length - 2 for ids in pieces]


def filled_up(rows):
    return np.int32([row + [0] * (max(map(len, rows)) - len(row)) for row in rows])


def predict(model, rows, segments=None):
    """`model.predict` on each row alone, at its masks."""
    outputs = []
    for row, segment_ids in zip(rows, segments or [[0] * len(row) for row in rows], strict=True):
        ids = np.int32([row])
        inputs = {"token_ids": ids, "segment_ids": np.int32([segment_ids]), "padding_mask": np.int32(ids != 0)}
        positions = np.int32([[i for i, token_id in enumerate(row) if token_id == 4]]).reshape(1, -1)
        # A predict step needs one prediction at least.
        asked = positions if positions.size else np.zeros((1, 1), "int32")
        answer = model.predict_on_batch({**inputs, "mask_positions": asked})
        answer |= model.encoder.predict_on_batch(inputs)
        answer["mlm_logits"] = answer["mlm_logits"][:, : positions.size]
        outputs.append({name: value[0] for name, value in answer.items()} | {"mask_positions": positions[0]})
    return outputs


def as_text(texts):
    return {"text": np.array([text.encode() for text in texts])}


@pytest.fixture(scope="module")
def expected(small_run, small_tokenizer):
    rows, truncated = encode(small_tokenizer, TEXTS, 24)
    return rows, truncated, predict(BertPretrainer.from_pretrained(small_run / "model"), rows)


@pytest.fixture(scope="module")
def lines():
    return []


@pytest.fixture(scope="module")
def export(small_run, lines, tmp_path_factory):
    """Moved to another place after the model was deleted."""
    folder = tmp_path_factory.mktemp("exports")
    shutil.copytree(small_run, folder / "run")
    export_saved_model(folder / "run", folder / "first_place", top=TOP, say=lines.append)
    shutil.rmtree(folder / "run")
    (folder / "first_place").rename(folder / "moved")
    return folder / "moved"


@pytest.fixture(scope="module")
def answers(export, expected, tmp_path_factory):
    rows, _, _ = expected
    requests = {"serving_default/all": as_text(TEXTS), "serving_default/no_mask": as_text(TEXTS[2:4])}
    requests |= {f"serving_default/{i}": as_text([text]) for i, text in enumerate(TEXTS)}
    ids = {"all": filled_up(rows), "no_mask": filled_up(rows[2:4])}
    ids |= {str(i): np.int32([row]) for i, row in enumerate(rows)}
    requests |= {
        f"token_ids/{case}": {"token_ids": value, "segment_ids": np.zeros_like(value)} for case, value in ids.items()
    }
    nothing = np.zeros((0, 0), "int32")
    requests["serving_default/nothing"] = {"text": np.array([], "S1")}
    requests["token_ids/nothing"] = {"token_ids": nothing, "segment_ids": nothing}
    requests["token_ids/pairs"] = {name: filled_up(rows) for name, rows in PAIRS.items()}
    return run_export(export / "1", requests, tmp_path_factory.mktemp("answers"))


@pytest.fixture(scope="module")
def close(expected):
    """Equal to 1e-5 of the output's largest absolute value."""
    largest = {name: max(np.abs(of_text[name]).max(initial=0) for of_text in expected[2]) for name in expected[2][0]}

    def assert_close(answer, wanted, name):
        np.testing.assert_allclose(answer, wanted, rtol=0, atol=1e-5 * largest.get(name, 1), err_msg=name)

    return assert_close


def each_answer(answers, signature):
    """Number of the text and its part of the answer, for every text of every request."""
    for key, answer in answers.items():
        name, _, case = key.partition("/")
        if name == signature and case not in ("pairs", "nothing"):
            texts = {"all": range(len(TEXTS)), "no_mask": [2, 3]}.get(case) or [int(case)]
            for position, i in enumerate(texts):
                yield i, {output: value[position] for output, value in answer.items()}


def test_the_token_id_signature_equals_model_predict(answers, expected, close):
    rows, _, outputs = expected
    found = list(each_answer(answers, "token_ids"))
    assert len(found) == 2 * len(TEXTS) + 2
    for i, answer in found:
        masks = len(outputs[i]["mask_positions"])
        assert answer["mask_positions"][:masks].tolist() == outputs[i]["mask_positions"].tolist()
        assert set(answer["mask_positions"][masks:].tolist()) <= {-1}
        close(answer["mlm_logits"][:masks], outputs[i]["mlm_logits"], "mlm_logits")
        assert not answer["mlm_logits"][masks:].any()
        close(answer["sequence_output"][: len(rows[i])], outputs[i]["sequence_output"], "sequence_output")
        for name in ("pooled_output", "nsp_logits"):
            close(answer[name], outputs[i][name], name)


def test_pairs_of_texts_equal_model_predict(answers, small_run, close):
    model = BertPretrainer.from_pretrained(small_run / "model")
    rows = PAIRS["token_ids"]
    for i, output in enumerate(predict(model, rows, PAIRS["segment_ids"])):
        answer = {name: value[i] for name, value in answers["token_ids/pairs"].items()}
        close(answer["sequence_output"][: len(rows[i])], output["sequence_output"], "sequence_output")
        for name in ("mlm_logits", "pooled_output", "nsp_logits"):
            close(answer[name], output[name], name)
    one_segment = predict(model, rows)[0]["sequence_output"]
    assert np.abs(answers["token_ids/pairs"]["sequence_output"][0] - one_segment).max() > 0.1


def test_the_text_signature_equals_model_predict(answers, expected, small_tokenizer, close):
    rows, truncated, outputs = expected
    tokens = np.array([*small_tokenizer.vocabulary, "", "", ""])
    found = list(each_answer(answers, "serving_default"))
    assert len(found) == 2 * len(TEXTS) + 2
    for i, answer in found:
        logits, masks = outputs[i]["mlm_logits"], len(outputs[i]["mask_positions"])
        assert answer["num_tokens"] == len(rows[i])
        assert answer["truncated"] == truncated[i]
        assert answer["mask_positions"][:masks].tolist() == outputs[i]["mask_positions"].tolist()
        best = np.argsort(-logits, axis=-1, kind="stable")[:, :TOP]
        assert answer["top_token_ids"][:masks].tolist() == best.tolist()
        assert np.char.decode(answer["top_tokens"][:masks], "utf-8").tolist() == tokens[best].tolist()
        close(answer["top_logits"][:masks], np.take_along_axis(logits, best, -1), "mlm_logits")
        exponentials = np.exp(logits.astype("float64"))
        probabilities = exponentials / exponentials.sum(-1, keepdims=True)
        close(answer["top_probabilities"][:masks], np.take_along_axis(probabilities, best, -1), "top_probabilities")


def test_slots_without_a_mask_are_blank(answers):
    for _, answer in each_answer(answers, "serving_default"):
        masks = answer["mask_positions"].tolist().count(-1)
        blank = slice(len(answer["mask_positions"]) - masks, None)
        assert set(answer["mask_positions"][blank].tolist()) <= {-1}
        assert set(answer["top_token_ids"][blank].ravel().tolist()) <= {-1}
        assert set(answer["top_tokens"][blank].ravel().tolist()) <= {b""}
        assert not answer["top_probabilities"][blank].any() and not answer["top_logits"][blank].any()


def test_a_batch_without_any_mask_is_answered(answers):
    answer = answers["serving_default/no_mask"]
    assert answer["top_tokens"].shape == (2, 0, TOP)
    assert answer["mask_positions"].shape == (2, 0)


def test_a_batch_of_nothing_has_empty_answers(answers):
    for signature in ("serving_default", "token_ids"):
        answer = answers[f"{signature}/nothing"]
        assert answer and {len(values) for values in answer.values()} == {0}


def test_only_core_operations_are_in_the_graph(answers):
    assert answers["ops"]["unknown"].tolist() == []
    ops = set(answers["ops"]["core"].tolist())
    assert {"MatMul", "TopKV2", "VarHandleOp"} <= ops
    assert {op for op in ops if ">" in op or "PyFunc" in op or "Regex" in op or "Table" in op} == set()


def test_the_length_can_be_set_below_the_models(small_run, small_tokenizer):
    loaded = LoadedMaskedLM.from_path(small_run, max_length=10)
    signatures = FillMaskSignatures(loaded, InGraphWordPiece(small_tokenizer), top=2)
    answer = signatures.answer_texts(tf.constant(TEXTS))
    rows, truncated = encode(small_tokenizer, TEXTS, 10)
    assert answer["num_tokens"].numpy().tolist() == [len(row) for row in rows]
    assert answer["truncated"].numpy().tolist() == truncated
    assert True in truncated and False in truncated
    assert answer["top_token_ids"].shape[-1] == 2


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_masks_scored_in_parts_have_the_same_answers(small_run, small_tokenizer, monkeypatch, at_once):
    signatures = FillMaskSignatures(LoadedMaskedLM.from_path(small_run), InGraphWordPiece(small_tokenizer), top=2)
    texts = tf.constant(TEXTS)
    whole = signatures.answer_texts(texts)
    assert np.sum(whole["mask_positions"] != -1) == 8
    monkeypatch.setattr(fill_mask, "_MASKS_AT_ONCE", at_once)
    for name, values in tf.function(signatures.answer_texts)(texts).items():
        if values.dtype == tf.float32:
            np.testing.assert_allclose(values, whole[name], rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert values.numpy().tolist() == whole[name].numpy().tolist()


def test_an_answer_with_all_scores_that_no_memory_holds_is_refused(small_run, small_tokenizer, monkeypatch):
    loaded = LoadedMaskedLM.from_path(small_run)
    signatures = FillMaskSignatures(loaded, InGraphWordPiece(small_tokenizer), top=2)
    monkeypatch.setattr(fill_mask, "_MOST_SCORES", 6 * loaded.model.config.vocab_size)
    mask = small_tokenizer.mask_token_id
    three, one = [2, mask, mask, mask, 3], [2, mask, 5, 5, 3]
    ids = tf.constant([three, one, one])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`token_ids` must have at most 6 masks in a batch"):
        signatures.answer_checked_ids(ids, tf.zeros_like(ids))
    assert signatures.answer_checked_ids(ids[:2], tf.zeros_like(ids[:2]))["mlm_logits"].shape[:2] == (2, 3)


def test_a_row_of_padding_alone_has_vectors_of_nothing(small_run, small_tokenizer):
    signatures = FillMaskSignatures(LoadedMaskedLM.from_path(small_run), InGraphWordPiece(small_tokenizer), top=2)
    ids = tf.constant([[0, 0, 0], [2, 5, 3]])
    vectors = signatures.answer_checked_ids(ids, tf.zeros_like(ids))["sequence_output"].numpy()
    assert not vectors[0].any() and vectors[1].all(axis=-1).all()


def test_the_version_carries_example_proof_and_checksum(export, small_run):
    extra = export / "1" / "assets.extra"
    proof = json.loads((extra / "proof.json").read_text())
    assert 0 < proof["largest_difference"] <= proof["bound"] == 1e-5
    assert proof["not_imported"] == ["keras_bert_impl", "tensorflow_text"]
    description = json.loads((extra / "signature.json").read_text())
    assert (description["top"], description["max_length"], description["config"]["hidden_size"]) == (TOP, 24, 32)
    inputs = {name: signature["inputs"] for name, signature in description["signatures"].items()}
    assert inputs == {
        "serving_default": {"text": {"dtype": "string", "shape": [-1]}},
        "token_ids": {name: {"dtype": "int32", "shape": [-1, -1]} for name in ("token_ids", "segment_ids")},
    }
    assert description["signatures"]["serving_default"]["outputs"]["top_tokens"] == {
        "dtype": "string",
        "shape": [-1, -1, TOP],
    }
    weights = (small_run / "model" / "model.safetensors").read_bytes()
    assert description["weights_sha256"] == hashlib.sha256(weights).hexdigest()


def test_the_version_carries_requests_to_warm_up_with(export):
    requests = list(warm_up.read(export / "1"))
    assert [request.signature for request in requests] == ["serving_default"] * 4 + ["token_ids"] * 4
    assert [request.rows for request in requests] == [1, 1, 12, 32] * 2
    widths = {request.inputs["token_ids"].shape[1] for request in requests[4:]}
    assert len(widths) > 1 and max(widths) == 24


def test_the_version_carries_a_card(export, small_run):
    card = (export / "1" / "assets.extra" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# BERT for fill-mask\n\n`BertPretrainer`: 2 blocks of 32 units")
    assert hashlib.sha256((small_run / "model" / "model.safetensors").read_bytes()).hexdigest() in card
    assert "Nothing is known here" in card and "8 of these requests lie beside it" in card


def test_the_checksum_of_shards_is_that_of_one_file_after_another(tmp_path):
    for name, content in (("model-00002-of-00002.safetensors", b"b"), ("model-00001-of-00002.safetensors", b"a")):
        (tmp_path / name).write_bytes(content)
    assert weights_sha256(tmp_path) == hashlib.sha256(b"ab").hexdigest()


def test_the_weights_are_stored_once(export, small_run):
    stored = (export / "1" / "variables" / "variables.data-00000-of-00001").stat().st_size
    assert stored <= 1.05 * (small_run / "model" / "model.safetensors").stat().st_size


def test_it_says_what_it_does(lines):
    assert lines[0].startswith("Read ") and "parameters from" in lines[0]
    assert any(line.startswith("Proved on ") for line in lines)
    assert lines[-1].startswith("Exported version 1 to ")


def test_the_local_server_gives_the_example_answers(export):
    description = json.loads((export / "1" / "assets.extra" / "signature.json").read_text())
    with LocalServer(export) as server, httpx.Client(trust_env=False) as http:
        assert http.get(server.url).json()["model_version_status"][0]["version"] == "1"
        for signature, example in ((name, d["example"]) for name, d in description["signatures"].items()):
            answer = http.post(f"{server.url}:predict", json=example["request"]).json()
            if signature == "serving_default":
                assert answer["predictions"][0]["top_tokens"] == example["answer"]["predictions"][0]["top_tokens"]
                assert answer["predictions"][0].keys() == example["answer"]["predictions"][0].keys()
            else:
                for name, value in example["answer_in_part"]["outputs"].items():
                    np.testing.assert_allclose(answer["outputs"][name], value, rtol=1e-4)
        for ids, segments, message in (
            ([[2, 999, 3]], [[0, 0, 0]], "`token_ids` must be at least 0 and less than"),
            ([[2, -1, 3]], [[0, 0, 0]], "`token_ids` must be at least 0 and less than"),
            ([[2, 5, 3]], [[0, 2, 0]], "`segment_ids` must be at least 0 and less than 2"),
            ([[2, 5, 3]], [[0]], "`token_ids` and `segment_ids` must have one shape"),
            ([[5] * 25], [[0] * 25], "`token_ids` must have at most 24 columns"),
        ):
            body = {"signature_name": "token_ids", "inputs": {"token_ids": ids, "segment_ids": segments}}
            answer = http.post(f"{server.url}:predict", json=body)
            assert (answer.status_code, message in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top": 0}, "`top` must be at least 1 and at most .*Received: top=0"),
        ({"version": 0}, "`version` must be a positive whole number. Received: version=0"),
        ({"version": 1}, "`version` must be new. Received: version=1, which '.*' has"),
        ({"max_length": 2}, "`max_length` must be at least 3 and at most the model's 24 positions. Received: max_len"),
        ({"max_length": 25}, "`max_length` must be at least 3 and at most the model's 24 positions. Received: max_l"),
    ],
)
def test_each_wrong_option_has_its_sentence_and_leaves_nothing(small_run, tmp_path, options, message):
    (tmp_path / "1").mkdir()
    with pytest.raises(InputError, match=message):
        export_saved_model(small_run, tmp_path, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


def test_a_target_that_is_no_directory_of_versions_is_refused(small_run, export, tmp_path):
    with pytest.raises(InputError, match=r"`target_dir` must be a directory of numbered versions.*give the one above"):
        export_saved_model(small_run, export / "1")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"`target_dir` must be a directory. Received: '.*file', which is a file"):
        export_saved_model(small_run, tmp_path / "file")
    with pytest.raises(
        InputError, match=r"`target_dir` must be a directory. Received: '.*a/b', below '.*file', which is a"
    ):
        export_saved_model(small_run, tmp_path / "file" / "a" / "b")
    with pytest.raises(InputError, match=r"`target_dir` must name a directory. Received: target_dir=''"):
        export_saved_model(small_run, "")


def test_a_vocabulary_that_may_not_be_whole_is_told_of_and_one_that_cannot_be_is_refused(tmp_path):
    tokenizer = toy_tokenizer([f"word{i}" for i in range(600)])
    BertEncoder(toy_bert_config(tokenizer), pooler=False, seed=1).save_pretrained(tmp_path, tokenizer=tokenizer)
    rows, vocabulary = tokenizer.vocab_size, (tmp_path / "vocab.txt").read_text().splitlines(keepends=True)
    for cut, note in ((255, []), (256, [f"The vocabulary has {rows - 256} tokens for the {rows} rows of the model's"])):
        (tmp_path / "vocab.txt").write_text("".join(vocabulary[: rows - cut]))
        notes = kind_of(tmp_path).load(tmp_path).notes
        assert len(notes) == len(note) and all(map(str.startswith, notes, note))
    (tmp_path / "vocab.txt").write_text("".join(vocabulary[: rows // 2 - 1]))
    message = rf"tokens for at least half the rows of its table; .* Received: {rows // 2 - 1} tokens, {rows} rows"
    with pytest.raises(InputError, match=message):
        export_saved_model(tmp_path, tmp_path / "exports")


def test_an_export_that_differs_from_the_model_is_found_out(export, small_run):
    loaded = LoadedMaskedLM.from_path(small_run)
    loaded.model.nsp_head.bias.assign([1e-3, 0.0])
    message = (
        r"not put in place: token_ids/nsp_logits differs from the Keras model by \S+ of its largest absolute value"
    )
    with pytest.raises(ExportError, match=message):
        prove(export / "1", FillMaskComparison(loaded, TOP))


def test_a_model_that_gives_no_numbers_is_not_exported(export, small_run):
    loaded = LoadedMaskedLM.from_path(small_run)
    loaded.model.nsp_head.bias.assign([float("nan"), 0.0])
    with pytest.raises(ExportError, match="the model itself gives values that are not numbers"):
        prove(export / "1", FillMaskComparison(loaded, TOP))


def test_an_export_that_cannot_be_run_is_found_out(export, small_run, tmp_path, monkeypatch):
    runner = tmp_path / "broken.py"
    runner.write_text("raise SystemExit('no such operation')")
    monkeypatch.setattr(clean_process, "_RUNNER", runner)
    with pytest.raises(ExportError, match="cannot be run by TensorFlow alone: no such operation"):
        prove(export / "1", FillMaskComparison(LoadedMaskedLM.from_path(small_run), TOP))


def test_a_number_that_another_export_took_meanwhile_is_left_to_it(small_run, export, tmp_path, monkeypatch):
    proved = prove

    def prove_while_another_finishes(*arguments, **options):
        shutil.copytree(export / "1", tmp_path / "exports" / "1")
        return proved(*arguments, **options)

    monkeypatch.setattr(saved_model, "prove", prove_while_another_finishes)
    lines = []
    assert export_saved_model(small_run, tmp_path / "exports", say=lines.append) == tmp_path / "exports" / "2"
    assert lines[-1].startswith(f"Exported version 2 to {tmp_path / 'exports' / '2'}.")
    assert sorted(path.name for path in (tmp_path / "exports").iterdir()) == ["1", "2"]


def test_an_export_without_proof_is_not_put_in_place(small_run, tmp_path, monkeypatch):
    target = tmp_path / "target"
    (target / "7").mkdir(parents=True)

    def refuse(folder, comparison, text_ops):
        assert (folder / "saved_model.pb").is_file()
        # Under a name that servers pass over, for the next free number.
        assert folder.name.startswith(".8.")
        raise ExportError("The export was not put in place")

    monkeypatch.setattr(saved_model, "prove", refuse)
    with pytest.raises(ExportError):
        export_saved_model(small_run, target)
    assert [path.name for path in target.iterdir()] == ["7"]


@pytest.mark.slow
@pytest.mark.shared
def test_a_real_model_without_pooler_is_exported_without_its_outputs(shared, tmp_path):
    lines = []
    version = export_saved_model(shared / "models" / "bert-tiny-splade-mlm", tmp_path, say=lines.append)
    assert any("without its pooler" in line for line in lines)
    description = json.loads((version / "assets.extra" / "signature.json").read_text())
    outputs = description["signatures"]["token_ids"]["outputs"]
    assert sorted(outputs) == ["mask_positions", "mlm_logits", "sequence_output"]
