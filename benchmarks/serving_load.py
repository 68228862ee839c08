"""The local server under load: a version comes, a broken one comes, and at last SIGTERM; nobody must notice.

Half of the clients ask over REST, half over gRPC, each on one connection and without ever asking again. Every answer
is compared with those of the two whole versions, so one of a half-loaded version would be told apart.
SECONDS and CLIENTS are read from KERAS_BERT_LOAD_SECONDS and KERAS_BERT_LOAD_CLIENTS.
"""

import contextlib
import functools
import http.client
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.bert_classifier import BertClassifier
from keras_bert_impl.serving.saved_model import export_saved_model
from keras_bert_impl.serving.server.models.servable import Servable
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.configs import VocabConfig
from keras_bert_impl.training.vocab import learn_vocab

from .row import Row
from .texts import documentation

SECONDS = float(os.environ.get("KERAS_BERT_LOAD_SECONDS", "600"))
CLIENTS = int(os.environ.get("KERAS_BERT_LOAD_CLIENTS", "16"))

_TEXT_BYTES = 500_000
_LABELS = [f"label {i}" for i in range(5)]
_OLD, _BROKEN, _NEW = 1, 2, 3
# Parts of the time: when the broken version is dropped in, the new one, and when memory counts as warm.
_BROKEN_AT, _NEW_AT, _WARM = 0.3, 0.5, 0.2


def measure() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="keras-bert-benchmark-"))
    texts = _texts()
    _export(folder / "made", _OLD, 1)
    _export(folder / "made", _NEW, 2)
    right = {version: _answers(folder / "made" / str(version), texts) for version in (_OLD, _NEW)}
    shutil.copytree(folder / "made" / str(_OLD), folder / "served" / str(_OLD))
    load = _Load(texts, right)
    with _server(folder / "served") as (process, rest_port, grpc_port):
        clients = [
            threading.Thread(target=load.ask, args=(_rest(rest_port) if i % 2 else _grpc(grpc_port), i))
            for i in range(CLIENTS)
        ]
        started = time.monotonic()
        for client in clients:
            client.start()
        memory = _watched(process, started, folder, load)
        load.signalled = time.monotonic()
        process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(60)
        code = process.wait(60)
    shutil.rmtree(folder)
    return _rows(load, memory, code)


def _rows(load: "_Load", memory: list[float], code: int) -> list[Row]:
    seconds = sorted(load.seconds)
    warm = memory[int(len(memory) * _WARM) : int(len(memory) * _BROKEN_AT)] or memory[:1]
    last = memory[-max(1, len(memory) // 10) :]
    growth = 100 * (statistics.median(last) / statistics.median(warm) - 1)
    what = f"{CLIENTS} clients for {SECONDS:.0f} s"
    return [
        Row(f"{what}: answered requests", "requests", len(seconds), bound=1, more_is_better=True),
        Row(f"failed requests {dict(load.failures) or ''}", "requests", sum(load.failures.values()), bound=0),
        Row("answers of neither version", "requests", load.versions[None], bound=0),
        Row(f"answers of version {_OLD}", "requests", load.versions[_OLD], bound=1, more_is_better=True),
        Row(f"answers of version {_NEW}", "requests", load.versions[_NEW], bound=1, more_is_better=True),
        Row("accepted requests without an answer after SIGTERM", "requests", load.cut_off, bound=0),
        Row("exit code after SIGTERM", "", code, bound=0),
        Row(f"from the last file of version {_NEW} to its first answer", "s", load.first_answer - load.copied),
        Row("p50", "ms", 1e3 * seconds[len(seconds) // 2]),
        Row("p99", "ms", 1e3 * seconds[len(seconds) * 99 // 100]),
        Row("longest", "ms", 1e3 * seconds[-1]),
        Row("memory after warm-up", "MB", statistics.median(warm) / 1e6),
        Row("its growth", "%", growth, bound=5),
    ]


class _Load:
    """What the clients ask, and what became of it."""

    def __init__(self, texts: list[str], right: dict[int, np.ndarray]) -> None:
        self.signalled: float | None = None
        self.copied = self.first_answer = math.inf
        """When the new version had been copied in, and when it answered for the first time."""
        self.seconds: list[float] = []
        self.versions: Counter[int | None] = Counter()
        self.failures: Counter[str] = Counter()
        self.cut_off = 0
        self._texts = texts
        self._right = right

    def ask(self, post: Callable[[list[str]], np.ndarray], seed: int) -> None:
        rng = random.Random(seed)
        while True:
            chosen = rng.sample(range(len(self._texts)), rng.choice([1, 1, 1, 2, 4, 8]))
            started = time.monotonic()
            try:
                answer = post([self._texts[i] for i in chosen])
            except _NobodyThereError:
                if self.signalled is None:
                    self.failures["nobody there"] += 1
                return
            except Exception as error:
                if self.signalled is None:
                    self.failures[repr(error)[:200]] += 1
                    continue
                # What was asked after the signal may be refused, but not before it.
                self.cut_off += started < self.signalled
                return
            self.seconds.append(time.monotonic() - started)
            version = self._version(answer, chosen)
            self.versions[version] += 1
            if version == _NEW:
                self.first_answer = min(self.first_answer, time.monotonic())

    def _version(self, answer: np.ndarray, chosen: list[int]) -> int | None:
        equal = [v for v, right in self._right.items() if np.allclose(answer, right[chosen], atol=1e-4)]
        return equal[0] if len(equal) == 1 else None


class _NobodyThereError(Exception):
    """The connection could not be made."""


def _rest(port: int) -> Callable[[list[str]], np.ndarray]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(texts: list[str]) -> np.ndarray:
        if connection.sock is None:
            try:
                connection.connect()
            except OSError as error:
                raise _NobodyThereError from error
        try:
            connection.request("POST", "/v1/models/bert:predict", json.dumps({"instances": texts}))
            response = connection.getresponse()
            body = response.read()
        except BaseException:
            connection.close()
            raise
        if response.status != 200:
            raise ValueError(body.decode())
        return np.array([row["probabilities"] for row in json.loads(body)["predictions"]])

    return post


def _grpc(port: int) -> Callable[[list[str]], np.ndarray]:
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)])
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)

    def post(texts: list[str]) -> np.ndarray:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "bert"
        request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts))
        return tf.make_ndarray(stub.Predict(request, timeout=60).outputs["probabilities"])

    return post


def _watched(process: subprocess.Popen, started: float, folder: Path, load: _Load) -> list[float]:
    """Drops the versions in at their times; returns the server's memory, about five times a second."""
    memory: list[float] = []
    due = [(_BROKEN_AT, lambda: _drop_in_broken(folder)), (_NEW_AT, lambda: _copy_in_new(folder, load))]
    while (passed := (time.monotonic() - started) / SECONDS) < 1:
        if due and passed > due[0][0]:
            due.pop(0)[1]()
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        memory.append(pages * os.sysconf("SC_PAGE_SIZE"))
        time.sleep(0.2)
    return memory


def _copy_in_new(folder: Path, load: _Load) -> None:
    """Copies the new version in slowly, file by file, as over a network."""
    source, target = folder / "made" / str(_NEW), folder / "served" / str(_NEW)
    for file in sorted(path for path in source.rglob("*") if path.is_file()):
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        time.sleep(0.05)
    load.copied = time.monotonic()


def _drop_in_broken(folder: Path) -> None:
    made = folder / "broken"
    shutil.copytree(folder / "made" / str(_OLD), made)
    variables = made / "variables" / "variables.data-00000-of-00001"
    variables.write_bytes(variables.read_bytes()[: variables.stat().st_size // 2])
    made.rename(folder / "served" / str(_BROKEN))


@contextlib.contextmanager
def _server(exports: Path) -> Iterator[tuple[subprocess.Popen, int, int]]:
    command = [sys.executable, "-m", "keras_bert_console", "serve", str(exports)]
    command += ["--rest-port", "0", "--grpc-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            ports = [int(found[1]) for line in lines if (found := re.search(r":(\d+)", line.replace("http:", "")))]
            yield process, ports[0], ports[1]
        finally:
            process.kill()


def _export(exports: Path, version: int, seed: int) -> None:
    tokenizer = WordPieceTokenizer.from_vocab_file(_vocabulary())
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        initializer_range=0.2,  # large enough to tell the versions' answers apart
    )
    model = exports.with_name(f"model {version}")
    BertClassifier(config, labels=_LABELS, seed=seed).save_pretrained(model, tokenizer)
    export_saved_model(model, exports, version=version)


@functools.cache
def _vocabulary() -> Path:
    path = documentation(_TEXT_BYTES).with_name("vocab.txt")
    learn_vocab(VocabConfig(inputs=(str(documentation(_TEXT_BYTES)),), output=str(path), size=4000))
    return path


def _texts() -> list[str]:
    """Returns texts of 0 to 600 words, most of them short."""
    words = documentation(_TEXT_BYTES).read_text(encoding="utf-8").split()
    rng = random.Random(7)
    lengths = [0, 600, *(int(600 * rng.random() ** 3) for _ in range(98))]
    starts = [rng.randrange(len(words) - 600) for _ in lengths]
    return [" ".join(words[start : start + length]) for start, length in zip(starts, lengths, strict=True)]


def _answers(version: Path, texts: list[str]) -> np.ndarray:
    servable = Servable(version)
    rows = [servable.run("serving_default", {"text": np.array([text.encode()], object)}) for text in texts]
    servable.close()
    return np.concatenate([row["probabilities"] for row in rows])
