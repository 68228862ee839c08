"""The tokenizer as it stands in an export: in a graph session of a process without this package, under a locale whose
upper and lower case differ."""

import json
import lzma
import os
import subprocess
import sys

import keras
import pytest
import tensorflow as tf
from unicode_texts import unicode_texts

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

ROWS = 500

SESSION = """
import contextlib, json, locale, sys
from pathlib import Path
import tensorflow as tf
with contextlib.suppress(locale.Error): locale.setlocale(locale.LC_ALL, "")
export, texts, ids = map(Path, sys.argv[1:])
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    signature = tf.compat.v1.saved_model.load(session, ["serve"], str(export)).signature_def["serving_default"]
    outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
    with ids.open("w") as file:
        for line in texts.open(encoding="utf-8"):
            result = session.run(outputs, {signature.inputs["text"].name: json.loads(line)})
            ends, values = result["row_splits"], result["ids"].tolist()
            file.write(json.dumps([values[a:b] for a, b in zip(ends[:-1], ends[1:])]) + "\\n")
print([name for name in sys.modules if name.startswith(("keras_bert", "tensorflow_text"))])
"""


def ids_from_export(tokenizer, texts, folder):
    """Returns the ids of each text, in batches of ROWS, as the export gives them."""
    in_graph = InGraphWordPiece(tokenizer)
    archive = keras.export.ExportArchive()
    archive.track(in_graph)

    def signature(text):
        # As the original tokenizer, which knows no special tokens inside a text.
        ids = in_graph(text, keep_special_tokens=False)
        return {"ids": ids.values, "row_splits": ids.row_splits}

    archive.add_endpoint("serving_default", signature, input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    archive.write_out(folder / "export", verbose=False)
    batches = [texts[i : i + ROWS] for i in range(0, len(texts), ROWS)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(batch) + "\n" for batch in batches), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", SESSION, folder / "export", folder / "texts.jsonl", folder / "ids.jsonl"],
        env={**os.environ, "LC_ALL": "tr_TR.UTF-8", "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=folder,
    )
    assert done.stdout.strip() == "[]"
    return [ids for line in (folder / "ids.jsonl").read_text().splitlines() for ids in json.loads(line)]


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", ["uncased", "cased", "chinese"])
def test_export_equals_the_original_on_golden_texts_and_python_on_generated_ones(shared, name, tmp_path):
    vocabulary = shared / "data" / "vocab" / f"bert-base-{name}-vocab.txt"
    tokenizer = WordPieceTokenizer.from_vocab_file(vocabulary, lowercase=name != "cased")
    golden = []
    for file in ("golden_tokenization", "golden_tokenization_fuzz"):
        with lzma.open(shared / "data" / "bert_original" / f"{file}.json.xz") as stored:
            golden += json.load(stored)
    generated = list(unicode_texts(20_000, 11))
    found = ids_from_export(tokenizer, [example["text"] for example in golden] + generated, tmp_path)
    assert len(found) == len(golden) + len(generated)
    for example, ids in zip(golden, found, strict=False):
        assert [tokenizer.vocabulary[i] for i in ids] == example[name]
    for text, ids in zip(generated, found[len(golden) :], strict=True):
        assert ids == tokenizer.encode_ids(text, keep_special_tokens=False)
