"""TFLite files of a real encoder on one thread: int8 products beside float32, and float32 beside ONNX Runtime."""

import os
import tempfile
from pathlib import Path

import numpy as np

from keras_bert_impl.serving.kinds import kind_of
from keras_bert_impl.serving.tflite.conversion import convert
from keras_bert_impl.serving.tflite.quantization import quantize

from .onnx_peer import onnx_runtime
from .row import Row, interleaved

SHARED = Path(os.environ.get("KERAS_BERT_SHARED", Path(__file__).resolve().parents[2] / "shared"))
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "40"))
COLUMNS = 128


def measure() -> list[Row]:
    model_dir = SHARED / "models" / "all-MiniLM-L6-v2"
    if not model_dir.is_dir():
        raise SystemExit(f"The model of this benchmark is not there: {model_dir}; set KERAS_BERT_SHARED")
    kind = kind_of(model_dir)
    float32 = convert(kind, kind.load(model_dir), length=COLUMNS)
    ids = np.random.default_rng(1).integers(1000, 20000, (1, COLUMNS)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": np.ones_like(ids)}
    with tempfile.TemporaryDirectory(prefix="keras-bert-benchmark-") as folder:
        runners = {}
        for form in ("none", "float16", "dynamic"):
            path = Path(folder) / f"{form}.tflite"
            path.write_bytes(quantize(float32, form))
            runners[form] = _runner(path)
        outputs = sorted(runners["none"](**inputs))
        with onnx_runtime(model_dir, 1, outputs) as onnx:
            expected, given = onnx(ids), runners["none"](**inputs)
            for name in outputs:
                np.testing.assert_allclose(given[name], expected[name], atol=1e-4)
            seconds = interleaved(
                [*(lambda run=run: run(**inputs) for run in runners.values()), lambda: onnx(ids)], rounds=ROUNDS
            )
    of_none, of_float16, of_dynamic, of_onnx = (1e3 * value for value in seconds)
    what = f"all-MiniLM-L6-v2, one row of {COLUMNS}, one thread"
    return [
        Row(f"{what}: float32", "ms", of_none, "ONNX Runtime", of_onnx, 1.1),
        Row(f"{what}: float16", "ms", of_float16, "float32", of_none),
        Row(f"{what}: dynamic", "ms", of_dynamic, "float32", of_none, 0.5),
    ]


def _runner(path: Path):
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_path=str(path), num_threads=1).get_signature_runner("token_ids")
