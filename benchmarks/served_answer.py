"""One text through the local server, beside the same text through the session behind it."""

import json
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.serving.local_server import LocalServer
from keras_bert_impl.serving.saved_model import export_saved_model
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .row import Row, interleaved
from .texts import documentation, vocabulary


def measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-"))
    tokenizer = WordPieceTokenizer.from_vocab_file(vocabulary())
    model = BertPretrainer.from_preset("mini", vocab_size=tokenizer.vocab_size)
    model.save_pretrained(folder / "model", tokenizer=tokenizer)
    version = export_saved_model(folder / "model", folder / "export")
    words = documentation().read_text(encoding="utf-8").split()[:80]
    text = " ".join(["[MASK]", *words[1:]])

    graph = tf.Graph()
    with graph.as_default():
        session = tf.compat.v1.Session(graph=graph)
        meta = tf.compat.v1.saved_model.load(session, ["serve"], str(version))
    signature = meta.signature_def["serving_default"]
    outputs = {name: tensor.name for name, tensor in signature.outputs.items()}
    feed = {signature.inputs["text"].name: np.array([text.encode()], object)}

    with LocalServer(folder / "export") as server:
        body = json.dumps({"instances": [{"text": text}]}).encode()

        def ask() -> None:
            request = urllib.request.Request(f"{server.url}:predict", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                json.load(reply)

        served, direct = interleaved([ask, lambda: session.run(outputs, feed)], rounds=50)
    return [Row("one text of 80 words, 4 x 256, over REST", "ms", served * 1e3, "graph session", direct * 1e3, 1.5)]
