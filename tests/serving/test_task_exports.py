"""Every kind of model is exported with raw text in and names out, and answers as its Python class does."""

import json
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import tensorflow as tf
from task_models import MODELS, toy_bert_config, toy_tokenizer
from tensorflow.core.protobuf import saved_model_pb2
from unicode_texts import unicode_texts

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.local_server import LocalServer
from keras_bert_impl.serving.saved_model import export_saved_model
from keras_bert_impl.serving.server.models.servable import Servable
from keras_bert_impl.serving.signatures import question_answering
from keras_bert_impl.serving.signatures.classification import ClassificationSignatures
from keras_bert_impl.serving.signatures.signatures import slices
from keras_bert_impl.serving.signatures.tagging import TaggingSignatures
from keras_bert_impl.tasks import QuestionAnswering, SentenceEmbedding, TaskSettings, TextClassification, WordTagging
from keras_bert_impl.tasks.rows import batch_inputs, text_row
from keras_bert_impl.tasks.word_windows import sentence_rows

EXPORTED = {
    **{name: model for name, model in MODELS.items() if name != "fill-mask"},
    "regression": (MODELS["regression"][0], {"pair": True}),
    "tagging_all": (MODELS["tagging"][0], {"labelled_pieces": "all"}),
    "qa": (
        MODELS["qa"][0],
        {"may_have_no_answer": True, "null_threshold": -0.3, "max_question_length": 9, "max_answer_length": 7},
    ),
}

TEXTS = [
    "a fine film, and a great book.",
    "",
    "No! The BÖÖK was very, very e\u0301a\u0301sy\u0301 \U0001f469\u200d\U0001f4bb ΟΔΟΣ 今天い",
    "[MASK] [SEP] it was \x00 not\u200b dull?",
    "i play. " * 40,
    "unaffable " * 3,
]
OTHERS = ["a play was good, not dull.", "great " * 50, "", "fine. fine. fine.", "the song!", "a bad book"]

# Every operation of an export; all are TensorFlow's own.
CORE_OPS = set(
    """
    AddV2 All Any ArgMax Assert AssignVariableOp BatchMatMulV2 BiasAdd BitwiseAnd BroadcastTo Cast ConcatV2 Const
    Cumprod Cumsum Equal ExpandDims Fill FloorDiv FloorMod GatherNd GatherV2 Greater GreaterEqual Identity IdentityN If
    IsFinite L2Loss Less LessEqual LogicalAnd LogicalNot LogicalOr LowerBound MatMul Max Maximum Mean Min Minimum
    Mul Neg NoOp NotEqual Pack Pad PadV2 PartitionedCall Placeholder Pow Prod RaggedGather RaggedRange
    RaggedTensorToTensor Range ReadVariableOp RealDiv Relu Reshape RestoreV2 RightShift Rsqrt ScatterNd SegmentMean
    Select SelectV2 Shape Sigmoid Size Softmax Square Squeeze StatefulPartitionedCall StatelessIf StatelessWhile
    StridedSlice StringLength Sub Substr Sum Tanh TensorScatterUpdate Tile TopKV2 Transpose UnicodeDecode
    UnicodeDecodeWithOffsets Unique Unpack UnsortedSegmentMin UnsortedSegmentSum UpperBound VarHandleOp Where
    """.split()
)


@pytest.fixture(scope="module")
def tokenizer():
    return toy_tokenizer()


def saved(name, tokenizer, folder):
    make, options = EXPORTED[name]
    model = make(toy_bert_config(tokenizer, max_position_embeddings=40))
    model.save_pretrained(folder, tokenizer=tokenizer)
    if options is not None:
        TaskSettings(task=name.removesuffix("_all"), **options).save(folder)
    return folder


class Stub:
    """A model and a tokenizer without either."""

    def __init__(self, tokenizer, max_length, **settings):
        self.model = self.fresh_parts = None
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.settings = SimpleNamespace(**settings)
        self.text_inputs = ("text", "text_pair")


def test_pairs_lose_their_pieces_in_the_graph_as_in_python(tokenizer):
    texts = [" ".join(["good"] * n) for n in (0, 1, 3, 4, 5, 9)]
    pairs = [(a, b) for a in texts for b in texts]
    for max_length in (4, 5, 10, 11):
        signatures = ClassificationSignatures(Stub(tokenizer, max_length), lambda ids: ids)
        ids = [[tokenizer.encode_ids(pair[side]) for pair in pairs] for side in (0, 1)]
        rows = signatures.rows(*(tf.ragged.constant(side, dtype=tf.int32) for side in ids))
        expected = [text_row(tokenizer, max_length, *pair) for pair in pairs]
        counts = [len(row.token_ids) for row in expected]
        assert rows.num_tokens.numpy().tolist() == counts
        assert rows.truncated.numpy().tolist() == [row.truncated for row in expected]
        for name, values in batch_inputs(expected, tokenizer.pad_token_id).items():
            np.testing.assert_array_equal(rows.inputs[name], values)


def test_whole_words_are_read_in_the_graph_as_in_a_window_in_python(tokenizer):
    sentences = [
        [],
        ["good"],
        ["zzz", "\x00", "good", "bad"],
        ["z" * 20, "a"],
        ["a", "z" * 20, "a"],
        ["it", "zz", "zz"],
    ]

    def cut(words):
        pieces = [tokenizer.encode_ids(word.decode()) for word in words.numpy()]
        return tf.RaggedTensor.from_row_lengths(
            tf.constant([i for ids in pieces for i in ids], tf.int32), [len(ids) for ids in pieces]
        )

    signatures = TaggingSignatures(Stub(tokenizer, 6), cut)
    words = tf.ragged.constant(sentences, dtype=tf.string)
    rows, pieces, is_read, truncated = signatures._pieces_read(words)
    assert is_read.to_list() == [
        [],
        [True],
        [True, True, False, False],
        [True, False],
        [True, False, False],
        [True] * 2 + [False],
    ]
    assert truncated.numpy().tolist() == [False, False, True, True, True, True]
    for sentence, read, row in zip(sentences, is_read.to_list(), rows.to_list(), strict=True):
        kept = sentence_rows(tokenizer, sentence[: sum(read)], 4, 4).rows
        assert row == [token_id for window in kept for token_id in window.row.token_ids[1:-1]]
    assert pieces.nrows() == sum(map(sum, is_read.to_list()))


def test_slices_count_characters_as_python_does():
    texts = [*unicode_texts(100, 5), "", "abc", "é\U0001f469x"]
    places = [
        sorted([(7 * i + j) % (len(text) + 1), (3 * i) % (len(text) + 1)])
        for j in (0, 5)
        for i, text in enumerate(texts)
    ]
    starts, ends = (
        tf.ragged.constant([[places[i + j][side] for j in (0, len(texts))] for i in range(len(texts))], dtype=tf.int32)
        for side in (0, 1)
    )
    found = slices(tf.constant(texts), starts, ends).to_list()
    for text, row, first, last in zip(texts, found, starts.to_list(), ends.to_list(), strict=True):
        assert [part.decode() for part in row] == [text[a:b] for a, b in zip(first, last, strict=True)]


def test_slices_have_one_key_just_where_they_read_the_same():
    texts = ["abcabcab", "aaaa", "é中é中", "abcabcab"]
    spans = [(a, b) for a in range(5) for b in range(a, min(a + 4, 5))]
    starts, ends = (tf.constant([[span[side] for span in spans]] * len(texts)) for side in (0, 1))
    lengths = tf.constant([[len(text)] for text in texts])
    keys = question_answering._text_keys(tf.constant(texts), tf.minimum(starts, lengths), tf.minimum(ends, lengths))
    read = [[(i, text[a:b]) for a, b in spans] for i, text in enumerate(texts)]
    flat = [part for row in read for part in row]
    expected = [part not in flat[:place] for place, part in enumerate(flat)]
    assert question_answering._comes_first(keys).numpy().ravel().tolist() == expected


def test_candidates_are_for_models_that_fill_masks(tokenizer, tmp_path):
    model = saved("classification", tokenizer, tmp_path / "model")
    message = "`top` must be left out but for a model that fills masks. Received: top=3, a model for classification"
    with pytest.raises(InputError, match=message):
        export_saved_model(model, tmp_path / "export", top=3)
    assert not (tmp_path / "export").exists()


def test_a_row_without_room_for_a_pair_is_refused(tokenizer, tmp_path):
    model = saved("classification", tokenizer, tmp_path / "model")
    with pytest.raises(
        InputError, match=r"`max_length` must be more than 3 for a pair of texts. Received: max_length=3"
    ):
        export_saved_model(model, tmp_path / "export", max_length=3)


# --------------------------------------------------------------- whole exports, each proved before it is put in place


@pytest.fixture(scope="module", params=list(EXPORTED))
def export(request, tokenizer, tmp_path_factory):
    """Name of the model, its directory, the exports, and what was said."""
    folder = tmp_path_factory.mktemp(request.param)
    lines: list[str] = []
    model = saved(request.param, tokenizer, folder / "model")
    export_saved_model(model, folder / "exports", say=lines.append)
    return SimpleNamespace(name=request.param, model=model, exports=folder / "exports", lines=lines)


def answers_of(export, inputs, signature="serving_default"):
    servable = Servable(export.exports / "1")
    try:
        names = servable.signatures[signature].inputs
        return servable.run(
            signature, {name: np.array([text.encode() for text in inputs[name]], object) for name in names}
        )
    finally:
        servable.close()


def texts_of(array):
    return [text.decode() for text in array.tolist()]


@pytest.mark.slow
def test_an_export_answers_as_its_python_class(export):
    check = {
        "embedding": check_embedding,
        **dict.fromkeys(("tagging", "tagging_all"), check_tagging),
        "qa": check_answers,
    }.get(export.name, check_classification)
    check(export)
    check_empty(export)
    check_padding(export)
    check_description(export)
    check_operations(export)
    check_server(export)


def check_empty(export):
    """A batch of nothing has empty answers, by every signature."""
    servable = Servable(export.exports / "1")
    for name, known in servable.signatures.items():
        inputs = known.inputs
        if not inputs:  # that of its initialization
            continue
        shape = (0,) if name == "serving_default" else (0, 0)
        empty = np.zeros(shape, "int32" if name == "token_ids" else object)
        answer = servable.run(name, dict.fromkeys(inputs, empty))
        assert answer and all(len(values) == 0 for values in answer.values())
    servable.close()


def check_padding(export):
    """What is given for each position is 0 at padding, even of a row that has nothing else."""
    servable = Servable(export.exports / "1")
    ids = np.int32([[0, 0, 0], [2, 5, 0]])
    answer = servable.run("token_ids", {"token_ids": ids, "segment_ids": np.zeros_like(ids)})
    servable.close()
    of_positions = {"sequence_output", "start_logits", "end_logits"}
    if export.name.startswith("tagging"):
        of_positions.add("logits")
    for name in answer.keys() & of_positions:
        assert not answer[name][0].any() and not answer[name][1, 2:].any() and answer[name][1, :2].any()


def check_classification(export):
    classify = TextClassification(export.model)
    paired = classify.settings.pair
    answer = answers_of(export, {"text": TEXTS, "text_pair": OTHERS})
    for i, prediction in enumerate(classify(TEXTS, OTHERS if paired else None)):
        assert answer["truncated"][i] == prediction.truncated
        if export.name == "regression":
            np.testing.assert_allclose(answer["value"][i], prediction.label, rtol=1e-4)
            continue
        assert texts_of(answer["labels"][i]) == list(prediction.probabilities)
        np.testing.assert_allclose(answer["probabilities"][i], [*prediction.probabilities.values()], atol=1e-5)
        if export.name == "multilabel":
            holding = [name for name, holds in zip(classify.labels, answer["holds"][i], strict=True) if holds]
            assert tuple(holding) == prediction.label
        else:
            assert answer["label"][i].decode() == prediction.label
    assert True in answer["truncated"] and False in answer["truncated"]


def check_tagging(export):
    tagging = WordTagging(export.model)
    texts = [text for text in TEXTS if len(text) < 80]
    answer = answers_of(export, {"text": texts})
    assert not answer["truncated"].all()
    for i, tagged in enumerate(tagging(texts)):
        if answer["truncated"][i]:
            continue
        count = len(tagged.words)
        assert texts_of(answer["words"][i]) == [*tagged.words, *[""] * (answer["words"].shape[1] - count)]
        assert texts_of(answer["tags"][i])[:count] == list(tagged.tags)
        np.testing.assert_allclose(answer["probabilities"][i, :count], tagged.probabilities, atol=1e-5)
        places = zip(answer["start"][i, :count], answer["end"][i, :count], strict=True)
        assert [texts[i][start:end] for start, end in places] == list(tagged.words)
        assert set(answer["start"][i, count:]) | set(answer["end"][i, count:]) <= {-1}
    lists = [["U.S.", "play"], ["a"], ["fine", "", "film"]]
    width = max(map(len, lists))
    servable = Servable(export.exports / "1")
    filled_up = np.array([[word.encode() for word in words] + [b""] * (width - len(words)) for words in lists], object)
    of_lists = servable.run("words", {"words": filled_up})
    servable.close()
    for i, tagged in enumerate(tagging(lists)):
        assert texts_of(of_lists["tags"][i]) == [*tagged.tags, *[""] * (width - len(lists[i]))]


def check_answers(export):
    answering = QuestionAnswering(export.model)
    contexts = ["the bøok was very\u0301 fine, not bad. fine, not bad", *TEXTS]
    questions = ["was it good?", *OTHERS]
    answer = answers_of(export, {"question": questions, "context": contexts})
    compared = 0
    for i, given in enumerate(answering(questions, contexts)):
        if given.windows > 1:
            assert answer["truncated"][i]
            continue
        compared += 1
        assert answer["truncated"][i] == given.truncated
        assert (answer["answer"][i].decode(), answer["start"][i], answer["end"][i]) == (
            given.text,
            given.start,
            given.end,
        )
        np.testing.assert_allclose(answer["probability"][i], given.probability, atol=1e-5)
        np.testing.assert_allclose(answer["score"][i], given.score, atol=1e-4)
        np.testing.assert_allclose(answer["null_score"][i], given.null_score, atol=1e-4)
        # With a threshold that nothing is above, the best answer is given.
        [best] = [answering.choose(answering.find([questions[i]], [contexts[i]])[0], null_threshold=1e9)]
        assert (answer["best_start"][i], answer["best_end"][i]) == (best.start, best.end)
        if best.end:
            np.testing.assert_allclose(answer["best_score"][i], best.score, atol=1e-4)
            np.testing.assert_allclose(answer["best_probability"][i], best.probability, atol=1e-5)
        assert answer["null_threshold"][i] == np.float32(-0.3)
    assert compared > 3


def check_embedding(export):
    answer = answers_of(export, {"text": TEXTS})
    np.testing.assert_allclose(answer["sentence_embedding"], SentenceEmbedding(export.model)(TEXTS), atol=1e-5)
    assert answer["pooled_output"].shape == answer["sentence_embedding"].shape


def description_of(export):
    return json.loads((export.exports / "1" / "assets.extra" / "signature.json").read_text(encoding="utf-8"))


def check_description(export):
    described = description_of(export)
    proof = json.loads((export.exports / "1" / "assets.extra" / "proof.json").read_text())
    assert 0 < proof["largest_difference"] <= proof["bound"] == 1e-5
    assert proof["not_imported"] == ["keras_bert_impl", "tensorflow_text"]
    texts = {
        "classification": ["text", "text_pair"],
        "regression": ["text", "text_pair"],
        "qa": ["question", "context"],
    }.get(export.name, ["text"])
    assert described["signatures"]["serving_default"]["inputs"] == {
        name: {"dtype": "string", "shape": [-1]} for name in texts
    }
    assert described["signatures"]["token_ids"]["inputs"].keys() == {"token_ids", "segment_ids"}
    assert described["max_length"] == (33 if export.name == "classification" else 40)
    told = {"multilabel": "multilabel classification", "regression": "regression"}.get(export.name)
    if told:
        assert f"It is a model for {told}: requests give {' and '.join(texts)}." in export.lines
    assert any(line.endswith(f"requests give {' and '.join(texts)}.") for line in export.lines)
    assert ("task" in described) == (export.name != "embedding")
    # The ids that are shown are those of the text that is shown beside them.
    shown = described["signatures"]["token_ids"]["example"]["request"]["inputs"]["segment_ids"]
    assert {*shown[0]} == ({0, 1} if len(texts) == 2 else {0})


def check_operations(export):
    content = (export.exports / "1" / "saved_model.pb").read_bytes()
    [meta_graph] = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    library = meta_graph.graph_def.library.function
    # How the weights are written is TensorFlow's own.
    computing = [function for function in library if "traced_save" not in function.signature.name]
    ops = {node.op for node in meta_graph.graph_def.node} | {node.op for f in computing for node in f.node_def}
    assert ops - {function.signature.name for function in library} - CORE_OPS == set()


def check_server(export):
    with LocalServer(export.exports) as server, httpx.Client(trust_env=False) as http:
        for signature in description_of(export)["signatures"].values():
            example = signature["example"]
            [(_, expected)] = [item for item in example.items() if item[0] != "request"]
            answer = http.post(f"{server.url}:predict", json=example["request"]).json()
            assert_alike(answer, expected)
        if len(description_of(export)["signatures"]["serving_default"]["inputs"]) == 2:
            refused = http.post(f"{server.url}:predict", json={"instances": ["a text alone"]})
            assert refused.status_code == 400 and "expecting list of objects" in refused.json()["error"]


def assert_alike(answer, expected):
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_alike(answer[name], value)
    elif isinstance(expected, list) and expected and isinstance(expected[0], dict):
        for one, other in zip(answer, expected, strict=True):
            assert_alike(one, other)
    elif np.asarray(expected).dtype.kind == "f":
        np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-6)
    else:
        assert answer == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["classification", "tagging_all", "qa", "embedding"])
def test_tensorflow_text_and_attention_are_proved_and_named(name, tokenizer, tmp_path):
    model = saved(name, tokenizer, tmp_path / "model")
    lines = []
    version = export_saved_model(model, tmp_path / "exports", tokenizer_ops="text", attention=True, say=lines.append)
    description = json.loads((version / "assets.extra" / "signature.json").read_text())
    assert description["other_ops"] == ["FastWordpieceTokenizeWithOffsets"]
    assert "A server needs these operations of tensorflow-text: FastWordpieceTokenizeWithOffsets." in lines
    proof = json.loads((version / "assets.extra" / "proof.json").read_text())
    assert proof["not_imported"] == ["keras_bert_impl"]
    assert proof["differences"]["attention/tokens"] == 0
    assert 0 < proof["differences"]["attention/attention"] < 1e-5
    example = description["signatures"]["attention"]["example"]
    tokens = example["answer_in_part"]["outputs"]["tokens"][0]
    assert (tokens[0], tokens[-1]) == (tokenizer.cls_token, tokenizer.sep_token)
    with LocalServer(version.parent) as server:
        example = description["signatures"]["serving_default"]["example"]
        assert_alike(httpx.post(f"{server.url}:predict", json=example["request"]).json(), example["answer"])


def test_only_two_sets_of_operations_can_be_asked_for(tokenizer, tmp_path):
    model = saved("embedding", tokenizer, tmp_path / "model")
    with pytest.raises(InputError, match=r"`tokenizer_ops` must be core or text\. Received: tokenizer_ops='regex'"):
        export_saved_model(model, tmp_path / "exports", tokenizer_ops="regex")


@pytest.mark.slow
@pytest.mark.shared
def test_a_real_encoder_gives_its_published_vectors(shared, tmp_path):
    folder: Path = shared / "models" / "all-MiniLM-L6-v2"
    version = export_saved_model(folder, tmp_path)
    golden = json.loads((folder / "golden_outputs.json").read_text(encoding="utf-8"))["cases"]
    cases = [case for case in golden if case["text_b"] is None]
    answer = answers_of(SimpleNamespace(exports=version.parent), {"text": [case["text_a"] for case in cases]})
    np.testing.assert_allclose(answer["sentence_embedding"], [case["sentence_embedding"] for case in cases], atol=1e-5)
    np.testing.assert_allclose(answer["pooled_output"], [case["pooler_output"] for case in cases], atol=1e-5)
    assert answer["num_tokens"].tolist() == [len(case["input_ids"]) for case in cases]
    description = json.loads((version / "assets.extra" / "signature.json").read_text())
    assert (description["kind"], description["max_length"]) == ("embedding", 256)
