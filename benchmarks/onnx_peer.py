"""The same weights in ONNX Runtime, fed with ready ids: a peer of what we export.

Its file is our own export as ONNX, which is proved to answer as the Keras model does. ONNX Runtime's separate optimizer
of transformers is left out: it finds all the attention and normalisation of such a file and replaces them by fused
operators, and on a CPU these take as long (3 x 768, 1 x 128, one thread: 75.7 ms of processor time, without them 75.3).
"""

import contextlib
import tempfile
from pathlib import Path

import numpy as np

from keras_bert_impl.serving.onnx_export import export_onnx


class OnnxRuntime:
    """A session on the CPU.

    Args:
        file: the ONNX file.
        threads: threads of the session.
        outputs: names of the outputs that are computed; all when not given.
    """

    def __init__(self, file, threads, outputs=None):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Between runs its threads would go on spinning for a while, at the cost of whoever is measured next.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.outputs = outputs or [output.name for output in self.session.get_outputs()]

    def __call__(self, token_ids, segment_ids=None):
        """Returns the outputs by name for ids, int32, `(batch, seq_len)`; of one segment when not given others."""
        segment_ids = np.zeros_like(token_ids) if segment_ids is None else segment_ids
        found = self.session.run(self.outputs, {"token_ids": token_ids, "segment_ids": segment_ids})
        return dict(zip(self.outputs, found, strict=True))


@contextlib.contextmanager
def onnx_runtime(model_dir, threads, outputs=None):
    """Yields an `OnnxRuntime` of a model directory's weights."""
    with tempfile.TemporaryDirectory(prefix="keras-bert-benchmark-") as folder:
        yield OnnxRuntime(export_onnx(model_dir, Path(folder) / "onnx"), threads, outputs)
