import json
import os
import subprocess
import sys
import time

import keras
import pytest
import tensorflow as tf

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

TEXTS = [
    "", " \t\u3000", "The unaffable, sat!", "Naïve NAI\u0308VE", "中文x中", "ΑΣ ΑΣΑ ΑΣ.Α Σ", "Α\u200bΣ\u200b", "İI ı ß",
    "한글 한", "t\x00he\ufffd s\u200da\u00adt", "the\u2029sat", "a\u1fefb", "\U0001f468\u200d\U0001f469 the", "\u0301",
    "\u302e\U0001d165\u302e", "a\u302e\u0e31\U0001d165 \u302ea", "\U00011f00", "a" * 200, "a" * 201,
    "the[MASK]sat [CLS", "[MASK][SEP] [mask]", "Α[MASK]Σ", "Α", "Σ", "[MA", "SK]",
]  # fmt: skip

# Loads the export as TensorFlow Serving does, in a process that has neither this package nor tensorflow-text.
SESSION = """
import json, sys
import tensorflow as tf
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    loaded = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = loaded.signature_def["serving_default"]
    outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
    for texts in json.loads(sys.argv[2]):
        result = session.run(outputs, {signature.inputs["text"].name: texts})
        print(json.dumps({name: value.tolist() for name, value in result.items()}))
graph = loaded.graph_def
nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
print(json.dumps(sorted({node.op for node in nodes})))
print(json.dumps([name for name in sys.modules if name.startswith(("keras_bert", "tensorflow_text"))]))
"""

# Every op of the default text signature; all in TensorFlow's core since 2.3 at the latest.
CORE_OPS = {
    "AddV2", "All", "Any", "ArgMax", "BitwiseAnd", "BroadcastTo", "Cast", "ConcatV2", "Const", "Cumsum", "Equal",
    "ExpandDims", "Fill", "GatherV2", "Greater", "GreaterEqual", "Identity", "Less", "LogicalAnd", "LogicalNot",
    "LogicalOr", "LowerBound", "Max", "Maximum", "Minimum", "Mul", "Neg", "NoOp", "NotEqual", "Pack",
    "PartitionedCall", "Placeholder", "Prod", "Range", "Reshape", "RightShift", "ScatterNd", "Select", "SelectV2",
    "Shape", "Size", "Squeeze", "StatefulPartitionedCall", "StatelessIf", "StatelessWhile", "StridedSlice", "Sub",
    "TensorScatterUpdate", "Tile", "TopKV2", "UnicodeDecode", "UpperBound", "Where",
}  # fmt: skip
CHECKPOINT_OPS = {
    "MergeV2Checkpoints", "RestoreV2", "SaveV2", "ShardedFilename", "StaticRegexFullMatch", "StringJoin",
}  # fmt: skip


@pytest.fixture(scope="module")
def in_graph(tokenizer):
    return InGraphWordPiece(tokenizer)


@pytest.mark.parametrize("keep_special_tokens", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lowercase": False},
        {"strip_accents": False},
        {"lowercase": False, "strip_accents": True},
        {"split_cjk": False, "max_chars_per_word": 3},
    ],
)
def test_equals_the_python_form_under_every_option(vocabulary, options, keep_special_tokens):
    tokenizer = WordPieceTokenizer(vocabulary, **options)
    in_graph = InGraphWordPiece(tokenizer)
    expected = [tokenizer.encode_ids(text, keep_special_tokens=keep_special_tokens) for text in TEXTS]
    # All together, so that texts follow one another; and each alone.
    assert in_graph(tf.constant(TEXTS), keep_special_tokens).to_list() == expected
    assert [in_graph(tf.constant([text]), keep_special_tokens).to_list()[0] for text in TEXTS] == expected


@pytest.mark.parametrize("texts", [[], [""], ["", "", ""], ["", "the", ""]])
def test_empty_texts_and_batches(in_graph, tokenizer, texts):
    ids = in_graph(tf.constant(texts, tf.string))
    assert (ids.dtype, ids.row_splits.dtype) == (tf.int32, tf.int64)
    assert ids.to_list() == [tokenizer.encode_ids(text) for text in texts]


def test_invalid_utf8_vanishes_without_separating_words(in_graph, tokenizer):
    ids = in_graph(tf.constant([b"t\xffhe \xed\xa0\x80sat \xc0\x80un\xe4\xb8"]))
    assert ids.to_list() == [tokenizer.encode_ids("the sat un")]


def test_works_inside_a_dataset(in_graph, tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(7).map(in_graph, num_parallel_calls=2)
    assert [ids for batch in dataset for ids in batch.to_list()] == [tokenizer.encode_ids(text) for text in TEXTS]


@pytest.mark.parametrize(
    "text",
    [
        ("abcdefghij" * 20 + " ") * 600, "a" * 300_000, "[MASK]" * 50_000, "Σ" * 100_000, "ΑΣ " * 50_000,
        "한" * 100_000, "\u302e\U0001d165" * 50_000, "." * 100_000, "é" * 100_000,
    ],
    ids=lambda text: ascii(text[:6]),
)  # fmt: skip
def test_no_text_makes_it_crawl(in_graph, tokenizer, text):
    in_graph(tf.constant(["warm-up ΑΣ 한 \u302e [MASK]"]))
    started = time.process_time()
    ids = in_graph(tf.constant([text]))
    assert time.process_time() - started < 2
    assert ids.to_list() == [tokenizer.encode_ids(text)]


@pytest.mark.parametrize("text", ["xyxyx", "xyxyxyx yx", "xyxxyx", "xxxxx", "xy", "a[MASK]xyxyxx", "xyx" * 5000 + "yx"])
def test_overlapping_tokens_are_taken_from_left_to_right(vocabulary, text):
    tokenizer = WordPieceTokenizer([*vocabulary, "xyx", "xx"], mask_token="xyx", added_tokens=["xx"])
    ids = InGraphWordPiece(tokenizer)(tf.constant([text, "yx", text]))
    assert ids.to_list() == [tokenizer.encode_ids(text), tokenizer.encode_ids("yx"), tokenizer.encode_ids(text)]


def test_other_special_tokens_are_found_longest_first(vocabulary):
    tokenizer = WordPieceTokenizer([*vocabulary, "<m", "<mask"], mask_token="<m", cls_token="<mask")
    ids = InGraphWordPiece(tokenizer)(tf.constant(["a<mask<mas"]))
    assert [tokenizer.id_to_token(i) for i in ids.to_list()[0]] == ["a", "<mask", "<m", "a", "##s"]
    assert ids.to_list() == [tokenizer.encode_ids("a<mask<mas")]


def test_export_runs_in_a_graph_session_with_core_ops_only(tmp_path, in_graph, tokenizer):
    archive = keras.export.ExportArchive()
    archive.track(in_graph)

    def signature(text):
        ids = in_graph(text)
        return {"ids": ids.values, "row_splits": ids.row_splits}

    archive.add_endpoint("serving_default", signature, input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    archive.write_out(tmp_path / "export", verbose=False)
    batches = [TEXTS, [], TEXTS[:1]]
    done = subprocess.run(
        [sys.executable, "-P", "-c", SESSION, str(tmp_path / "export"), json.dumps(batches)],
        env={**os.environ, "LC_ALL": "tr_TR.UTF-8", "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    *results, ops, foreign_modules = map(json.loads, done.stdout.splitlines())
    for texts, result in zip(batches, results, strict=True):
        ids = tf.RaggedTensor.from_row_splits(tf.constant(result["ids"], tf.int32), result["row_splits"])
        assert ids.to_list() == [tokenizer.encode_ids(text) for text in texts]
    assert set(ops) - CHECKPOINT_OPS <= CORE_OPS
    assert foreign_modules == []


@pytest.mark.slow
def test_equals_the_python_form_on_every_code_point_between_others(in_graph, tokenizer):
    code_points = [*range(0xD800), *range(0xE000, 0x20000)]
    texts = [f"A{chr(code_point)}B Σ{chr(code_point)}Σ a\u302e{chr(code_point)}\u1161" for code_point in code_points]
    assert in_graph(texts).to_list() == [tokenizer.encode_ids(text) for text in texts]
