"""A file that takes texts makes the rows that the tokenizer makes, and answers as for their ids."""

import json
import lzma
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")

from ai_edge_litert.interpreter import InterpreterWithCustomOps
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertEncoder
from keras_bert_impl.serving.kinds import EMBEDDING, kind_of
from keras_bert_impl.serving.tflite.contents import Contents, append
from keras_bert_impl.serving.tflite.conversion import convert
from keras_bert_impl.serving.tflite.graph.graph import Graph
from keras_bert_impl.serving.tflite.operators import operators
from keras_bert_impl.serving.tflite.runner import TFLiteModel
from keras_bert_impl.serving.tflite.signature_specs import signature_specs
from keras_bert_impl.serving.tflite.text_graph.pieces import CUSTOM_OPERATORS
from keras_bert_impl.serving.tflite.text_graph.rows import rows
from keras_bert_impl.serving.tflite.text_in import with_text_in
from keras_bert_impl.tasks.rows import text_row
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

LENGTH = 24
TEXTS = [
    "",
    " \t\n",
    "a good film",
    "It was NOT a good film, and the play was very bad!",
    "café, Ångström; naïve … “film” (50 %)",
    "good電影film 电影。한국어 нет",
    "no\0thing\u200b to\u00a0see\ufffd here\u3000x",
    "[MASK] a [SEP] film",
    "a" * 100 + " " + "b" * 101 + " good",
    "é" * 100 + " " + "ü" * 101 + " good",
    "a good film " * 30,
]


def registerers():
    from tensorflow_text import tflite_registrar

    return tflite_registrar.SELECT_TFTEXT_OPS


def runner(file: bytes, signature: str):
    interpreter = InterpreterWithCustomOps(custom_op_registerers=registerers(), model_content=file)
    interpreter.allocate_tensors()
    return interpreter.get_signature_runner(signature)


def text(content: str) -> np.ndarray:
    return np.array([content.encode("utf-8")], object)


@pytest.fixture(scope="module")
def loaded(model_dirs):
    """By name the kind of a model and what is loaded of it."""
    kinds = {name: kind_of(path) for name, path in model_dirs.items()}
    return {name: (kind, kind.load(model_dirs[name])) for name, kind in kinds.items()}


def row_graph(tokenizer, names, max_length, length):
    graph = Graph()
    texts = [graph.input(name, (1,), "string") for name in names]
    return runner(
        graph.file("text", rows(graph, tokenizer, texts, max_length=max_length, length=length), "rows"), "text"
    )


def check_row(made, tokenizer, max_length, *texts):
    """Makes sure that a row is that of `text_row`, of which special tokens that are written are none."""
    row = text_row(_WithoutKeptTokens(tokenizer), max_length, *texts)
    count, columns = len(row.token_ids), made["token_ids"].shape[1]
    padding = [tokenizer.pad_token_id] * (columns - count)
    assert made["token_ids"].tolist() == [[*row.token_ids, *padding]]
    assert made["segment_ids"].tolist() == [[*row.segment_ids, *[0] * (columns - count)]]
    assert made["padding_mask"].tolist() == [[1] * count + [0] * (columns - count)]
    assert made["num_tokens"].tolist() == [count] and made["truncated"].tolist() == [row.truncated]


class _WithoutKeptTokens:
    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def encode_ids(self, text):
        return self._tokenizer.encode_ids(text, keep_special_tokens=False)


@pytest.mark.parametrize("options", [{"max_chars_per_word": 100}, {"lowercase": False, "max_chars_per_word": 100}])
def test_a_text_becomes_the_row_that_the_tokenizer_makes(options):
    tokenizer = toy_tokenizer(["good", "film", "café", "cafe", "##電", "電", "影", "##é", "é"], **options)
    for max_length, length in ((LENGTH, LENGTH), (9, 16), (240, 256)):
        run = row_graph(tokenizer, ["text"], max_length, length)
        for content in TEXTS:
            check_row(run(text=text(content)), tokenizer, max_length, content)


def test_a_pair_becomes_the_row_that_the_tokenizer_makes():
    tokenizer = toy_tokenizer()
    words = "a good film was not very bad".split()
    for max_length, length in ((8, 8), (9, 12), (16, 16)):
        run = row_graph(tokenizer, ["text", "text_pair"], max_length, length)
        for first in (0, 1, 2, 4, 7, 20):
            for second in (0, 1, 3, 5, 6, 21):
                pair = [" ".join(words[i % 7] for i in range(count)) for count in (first, second)]
                check_row(run(text=text(pair[0]), text_pair=text(pair[1])), tokenizer, max_length, *pair)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", ["uncased", "cased", "chinese"])
def test_every_golden_text_becomes_the_ids_of_the_original_but_for_final_sigmas(name, shared):
    path = shared / "data" / "vocab" / f"bert-base-{name}-vocab.txt"
    tokenizer = WordPieceTokenizer.from_vocab_file(path, lowercase=name != "cased")
    run, others = row_graph(tokenizer, ["text"], 512, 512), []
    for file in ("golden_tokenization", "golden_tokenization_fuzz"):
        with lzma.open(shared / "data" / "bert_original" / f"{file}.json.xz") as golden:
            known = json.load(golden)
        for example in known:
            made = run(text=text(example["text"]))
            count, ids = int(made["num_tokens"][0]), [tokenizer.start_pieces[piece] for piece in example[name]]
            wanted = [tokenizer.cls_token_id, *ids[:510], tokenizer.sep_token_id]
            if made["token_ids"][0, :count].tolist() != wanted or made["truncated"].tolist() != [len(ids) > 510]:
                others.append(example["text"])
    assert all("Σ" in example for example in others) and len(others) < 10
    assert not others or name != "cased"


@pytest.mark.parametrize("name", ["embedding", "classification", "multilabel", "regression"])
def test_answers_are_those_for_the_ids(name, loaded):
    kind, model = loaded[name]
    file = convert(kind, model, length=LENGTH)
    both = with_text_in(file, kind, model, length=LENGTH)
    of_texts, of_ids = runner(both, "text"), runner(both, "token_ids")
    for content in TEXTS:
        pair = {"text_pair": text("was it")} if "text_pair" in model.text_inputs else {}
        given = of_texts(text=text(content), **pair)
        check_row(given, model.tokenizer, LENGTH, content, *(["was it"] if pair else []))
        expected = of_ids(**{name: given[name] for name in ("token_ids", "segment_ids", "padding_mask")})
        for key, value in expected.items():
            np.testing.assert_array_equal(given[key], value, err_msg=key)
    assert operators(file).custom == {} and set(operators(both).custom) == set(CUSTOM_OPERATORS)


def test_a_long_text_is_cut_at_the_length_of_the_file_and_of_the_model(loaded):
    kind, model = loaded["classification"]
    assert model.max_length == 33
    for length in (LENGTH, 40):
        run = runner(with_text_in(convert(kind, model, length=length), kind, model, length=length), "text")
        given = run(text=text("good film " * 40), text_pair=text("i was there"))
        assert given["truncated"].tolist() == [True] and given["num_tokens"].tolist() == [min(length, 33)]


def test_weights_are_stored_once(tmp_path):
    tokenizer = toy_tokenizer()
    BertEncoder(toy_bert_config(tokenizer, hidden_size=256, intermediate_size=1024), seed=1).save_pretrained(
        tmp_path, tokenizer=tokenizer
    )
    kind = kind_of(tmp_path)
    model = kind.load(tmp_path)
    file = convert(kind, model, length=LENGTH)
    assert len(file) > 6e6
    assert len(with_text_in(file, kind, model, length=LENGTH)) < len(file) + 1.6e6


def written(loaded, tmp_path):
    kind, model = loaded["multilabel"]
    file = with_text_in(convert(kind, model, length=LENGTH), kind, model, length=LENGTH)
    contents = Contents(
        kind=kind.name,
        tokenizer=model.tokenizer,
        config=model.model.config,
        settings=model.settings,
        labels=tuple(model.model.labels),
        max_length=LENGTH,
        length=LENGTH,
        quantization="none",
        signatures=signature_specs(file),
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(append(file, contents))
    return path


def test_without_the_operators_ids_are_answered_and_the_error_for_texts_names_what_to_register(loaded, tmp_path):
    model = TFLiteModel(written(loaded, tmp_path))
    assert model.answers()(["a good film"])
    for _ in range(2):
        with pytest.raises(
            InputError,
            match=r"`custom_ops` must register the operators.*tensorflow_text\.tflite_registrar.*FastBertNormalize",
        ):
            model.run({"text": text("a good film")}, "text")


def test_the_runner_takes_texts_by_name(loaded, tmp_path):
    model = TFLiteModel(written(loaded, tmp_path), custom_ops=registerers())
    given = model.run({"text": text("a good film")}, "text")
    [answer] = model.answers()(["a good film"])
    np.testing.assert_allclose(given["probabilities"][0], list(answer.probabilities.values()), atol=1e-6)
    with pytest.raises(InputError, match=r"`inputs` must be text .*Received: texts; did you mean text"):
        model.run({"texts": text("a good film")}, "text")


def test_what_cannot_take_texts_is_refused(loaded):
    for name in ("fill-mask", "tagging", "qa"):
        kind, model = loaded[name]
        with pytest.raises(
            InputError,
            match=f"`model` must be one that labels texts or gives their .* Received: a model for {kind.name}",
        ):
            with_text_in(b"", kind, model, length=LENGTH)
    kind, model = loaded["embedding"]
    with pytest.raises(InputError, match=r"`length` must be fixed for text in\. Received: length='dynamic'"):
        with_text_in(b"", kind, model, length=None)
    for tokenizer, message in (
        (toy_tokenizer(["[E1]"], added_tokens=["[E1]"]), r"`model` must have no added tokens .* Received: '\[E1\]'"),
        (toy_tokenizer(["é" * 129]), r"`model` must have no piece of over 256 bytes .*Received: one of 258"),
    ):
        other = SimpleNamespace(tokenizer=tokenizer, text_inputs=("text",), max_length=LENGTH)
        with pytest.raises(InputError, match=message):
            with_text_in(b"", EMBEDDING, other, length=LENGTH)
