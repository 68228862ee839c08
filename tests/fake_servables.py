"""Versions of a model that need no TensorFlow: their answers say which version gave them, and to what."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.serving.server.models.load_error import LoadError
from keras_bert_impl.serving.server.models.signature import Signature, TensorInfo
from keras_bert_impl.serving.server.request_error import RequestError

PREDICT = "tensorflow/serving/predict"


def signature(
    inputs: Mapping[str, TensorInfo], outputs: Mapping[str, TensorInfo], method_name: str = PREDICT
) -> Signature:
    return Signature(method_name, inputs, outputs, None)


def tensor(dtype: str, *shape: int | None) -> TensorInfo:
    return TensorInfo("any:0", dtype, shape)


SIGNATURES = {
    "serving_default": signature(
        {"text": tensor("string", None)},
        {"length": tensor("int32", None), "upper": tensor("string", None), "version": tensor("int64", None)},
    ),
    "sums": signature(
        {"token_ids": tensor("int32", None, None), "segment_ids": tensor("int32", None, None)},
        {"sum": tensor("int32", None)},
    ),
    "total": signature({"x": tensor("float", None)}, {"total": tensor("float")}),
    "says_rows": signature({"x": tensor("float", None)}, {"total": tensor("float", None)}),
}
"""Text and ids by rows; one whose output has no rows; one that says it had."""


class FakeServable:
    """Refuses texts that begin with `bad`, as a graph refuses a whole run; answers no more once it is closed.

    Args:
        name: the model's.
        version: its number.
        before_run: is called with the inputs of every run.
    """

    def __init__(
        self,
        name: str = "fake",
        version: int = 1,
        before_run: Callable[[Mapping[str, np.ndarray]], object] = lambda inputs: None,
    ) -> None:
        self.name = name
        self.version = version
        self.signatures: Mapping[str, Signature] = SIGNATURES
        self.runs: list[dict[str, list[Any]]] = []
        self.closed = 0
        self._before_run = before_run
        self._lock = threading.Lock()

    def run(
        self, signature: str, inputs: Mapping[str, np.ndarray], outputs: Collection[str] | None = None
    ) -> dict[str, np.ndarray]:
        with self._lock:
            self.runs.append({name: array.tolist() for name, array in inputs.items()})
        self._before_run(inputs)
        results = self._results(signature, inputs)
        if self.closed:
            raise AssertionError("A version was asked after it had been closed.")
        return {name: array for name, array in results.items() if outputs is None or name in outputs}

    def _results(self, signature: str, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if signature == "serving_default":
            texts = inputs["text"].tolist()
            if bad := [text for text in texts if text.startswith(b"bad")]:
                raise RequestError(f"No such text: {bad[0].decode()}")
            upper = np.empty(len(texts), object)
            upper[:] = [text.upper() for text in texts]
            lengths = np.array([len(text) for text in texts], np.int32)
            return {"length": lengths, "upper": upper, "version": np.full(len(texts), self.version)}
        if signature == "sums":
            return {"sum": inputs["token_ids"].sum(axis=1) + inputs["segment_ids"].sum(axis=1)}
        return {"total": inputs["x"].sum()}

    def metadata(self) -> dict[str, Any]:
        return {name: {"method_name": known.method_name} for name, known in self.signatures.items()}

    def signature_def_map(self) -> Any:
        raise NotImplementedError

    def close(self) -> None:
        self.closed += 1


def texts(*values: str) -> dict[str, np.ndarray]:
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return {"text": array}


class FakeVersions:
    """Directories of versions, and what loads them.

    Attributes:
        directory: has the version directories.
        loaded: all that were made, in their order.
        tried: numbers of the versions that were to be loaded.
        while_loading: is called with each version directory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.loaded: list[FakeServable] = []
        self.tried: list[int] = []
        self.while_loading: Callable[[Path], object] = lambda directory: None
        self.before_run: Callable[[Mapping[str, np.ndarray]], object] = lambda inputs: None
        directory.mkdir(parents=True, exist_ok=True)

    def add(self, number: int | str, content: str = "whole") -> Path:
        """Adds a version, or changes its content; one that is not `"whole"` cannot be loaded."""
        version = self.directory / str(number)
        version.mkdir(exist_ok=True)
        (version / "saved_model.pb").write_text(content)
        return version

    def load(self, name: str, directory: Path) -> FakeServable:
        self.tried.append(int(directory.name))
        content = (directory / "saved_model.pb").read_text()
        self.while_loading(directory)
        if content == "fails oddly":
            raise IndexError(f"list index out of range in {directory}")
        if content != "whole":
            raise LoadError(f"{directory} cannot be loaded: {content}", f"It is {content}", "DATA_LOSS")
        self.loaded.append(FakeServable(name, int(directory.name), self.before_run))
        return self.loaded[-1]


def wait_until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Returns when the condition holds; fails if it does not for long."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)
