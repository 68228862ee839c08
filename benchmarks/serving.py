"""The export of a base-sized model: what it takes, and its answers beside ONNX Runtime's for the same weights."""

import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.models.bert_classifier import BertClassifier
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .onnx_peer import onnx_runtime
from .row import Row, interleaved
from .texts import documentation, vocabulary

SHARED = Path(os.environ.get("KERAS_BERT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "15"))
# Peak memory is what this process had at most beyond what TensorFlow alone takes, and what its largest child had, which
# loads the export. (`ru_maxrss` of the process itself would start from that of the one that started it.)
EXPORT = """
import json, resource, sys, time
from pathlib import Path
import tensorflow as tf
from keras_bert_impl.serving.saved_model import export_saved_model
tf.constant(0.0)
def peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
before, started = peak(), time.perf_counter()
version = export_saved_model(*sys.argv[1:])
seconds = time.perf_counter() - started
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps([seconds, peak() - before, child - before, str(version)]))
"""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="keras-bert-benchmark-") as name:
        folder = Path(name)
        tokenizer = WordPieceTokenizer.from_vocab_file(vocabulary())
        encoder, classifier = folder / "encoder", folder / "classifier"
        options = {"vocab_size": 30522, "hidden_act": "gelu"}
        model = BertEncoder.from_preset("base", **options)
        model.save_pretrained(encoder, tokenizer=tokenizer)
        weights = model.count_params() * 4
        del model
        seconds, memory, of_proof, version = _export(encoder)
        size = sum(path.stat().st_size for path in Path(version).rglob("*") if path.is_file())
        rows = [
            Row("export of a base model, with its proof", "s", seconds, bound=60),
            Row("  peak memory", "of the weights", memory / weights, bound=3),
            Row("  peak memory of the process that proves it", "of the weights", of_proof / weights, bound=3),
            Row("  size of the version", "of the weights", size / weights, bound=1.05),
            *_one_text("encoder", version, encoder, tokenizer, ("sentence_embedding", "pooled_output")),
            *_mixed_texts(version, tokenizer),
        ]
        BertClassifier.from_preset("base", labels=["bad", "good"], **options).save_pretrained(classifier, tokenizer)
        *_, version = _export(classifier)
        return [*rows, *_one_text("classifier", version, classifier, tokenizer, ("logits",))]


def _export(model: Path) -> tuple[float, float, float, str]:
    """Exports a model in a process of its own; returns seconds, bytes of it and of its child, and the version."""
    command = [sys.executable, "-c", EXPORT, str(model), str(model.with_name(f"{model.name} export"))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _one_text(kind: str, version: str, model: Path, tokenizer: WordPieceTokenizer, outputs: Sequence[str]) -> list[Row]:
    ids = tokenizer.encode_ids(documentation().read_text(encoding="utf-8")[:20_000])
    text = _text_of(tokenizer, ids, 126)
    row = np.int32([[tokenizer.cls_token_id, *tokenizer.encode_ids(text), tokenizer.sep_token_id]])
    assert row.shape == (1, 128)
    texts, token_ids = (_signature(version, name, outputs) for name in ("serving_default", "token_ids"))
    with onnx_runtime(model, os.cpu_count(), list(outputs)) as onnx:
        expected = onnx(row)
        found = texts(np.array([text.encode()], object))
        for name, value in zip(outputs, found, strict=True):
            np.testing.assert_allclose(value, expected[name], atol=1e-4)
        ours, ids_alone, theirs = interleaved(
            [
                lambda: texts(np.array([text.encode()], object)),
                lambda: token_ids(row, np.zeros_like(row)),
                lambda: onnx(row),
            ],
            rounds=ROUNDS,
        )
    return [
        Row(f"base {kind}, one text of 128 tokens", "ms", ours * 1e3, "ONNX Runtime, ready ids", theirs * 1e3, 1.1),
        Row(f"base {kind}, one text of 128 tokens", "ms", ours * 1e3, "our id signature", ids_alone * 1e3, 1.05),
    ]


def _mixed_texts(version: str, tokenizer: WordPieceTokenizer) -> list[Row]:
    """Contexts of questions and rows of reviews, beside the same rows with tokens in place of padding."""
    mixed = _contexts_and_reviews()
    rows = [[tokenizer.cls_token_id, *tokenizer.encode_ids(text)[:510], tokenizer.sep_token_id] for text in mixed]
    padded = np.full((len(rows), max(map(len, rows))), tokenizer.sep_token_id, np.int32)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    names = ("serving_default", "token_ids")
    texts, token_ids = (_signature(version, name, ["sentence_embedding"]) for name in names)
    asked = np.array([text.encode() for text in mixed], object)
    ours, theirs = interleaved(
        [lambda: texts(asked), lambda: token_ids(padded, np.zeros_like(padded))], rounds=max(3, ROUNDS // 5)
    )
    share = sum(map(len, rows)) / padded.size
    what = (
        f"base encoder, 32 texts of {min(map(len, rows))} to {padded.shape[1]} tokens ({share:.0%} of the padded rows)"
    )
    return [Row(what, "s", ours, "padded", theirs, 0.7)]


def _contexts_and_reviews() -> list[str]:
    squad, reviews = SHARED / "data" / "squad" / "dev-v1.1.json.xz", SHARED / "data" / "glue" / "SST-2" / "dev.tsv"
    if squad.is_file() and reviews.is_file():
        articles = json.loads(lzma.decompress(squad.read_bytes()))["data"]
        contexts = [article["paragraphs"][0]["context"] for article in articles[:16]]
        lines = reviews.read_text(encoding="utf-8").splitlines()[1:17]
        return [text for pair in zip(contexts, (line.split("\t")[0] for line in lines), strict=True) for text in pair]
    words = documentation().read_text(encoding="utf-8").split()
    lengths = [(120, 20)[i % 2] + 5 * i for i in range(32)]
    return [" ".join(words[200 * i : 200 * i + length]) for i, length in enumerate(lengths)]


def _text_of(tokenizer: WordPieceTokenizer, ids: list[int], count: int) -> str:
    """Returns words that are `count` pieces together."""
    words: list[str] = []
    for i in ids:
        word = tokenizer.vocabulary[i]
        if word.isalpha() and len(tokenizer.encode_ids(word)) == 1:
            words.append(word)
    return " ".join(words[:count])


def _signature(version: str, name: str, outputs: Sequence[str]) -> Callable[..., list[np.ndarray]]:
    graph = tf.Graph()
    with graph.as_default():
        session = tf.compat.v1.Session(graph=graph)
        definition = tf.compat.v1.saved_model.load(session, ["serve"], version).signature_def[name]
    inputs = ("text",) if name == "serving_default" else ("token_ids", "segment_ids")
    fetches = [definition.outputs[output].name for output in outputs]
    return session.make_callable(fetches, [definition.inputs[key].name for key in inputs])
