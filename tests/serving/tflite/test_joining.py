"""Several signatures lie in one file, with weights that are stored once."""

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")
pytest.importorskip("ai_edge_quantizer", reason="needs the extra `tflite`")

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.kinds import kind_of
from keras_bert_impl.serving.tflite.conversion import convert
from keras_bert_impl.serving.tflite.graph import joining
from keras_bert_impl.serving.tflite.graph.joining import join
from keras_bert_impl.serving.tflite.quantization import quantize

LENGTHS = {"short": 8, "long": 40, "free": None}


@pytest.fixture(scope="module", params=["none", "float16", "dynamic"])
def files(request, model_dirs):
    """The files of a classifier for three lengths, in each form."""
    kind = kind_of(model_dirs["classification"])
    loaded = kind.load(model_dirs["classification"])
    return {name: quantize(convert(kind, loaded, length=length), request.param) for name, length in LENGTHS.items()}


def runner(file: bytes, signature: str):
    interpreter = Interpreter(model_content=file)
    interpreter.allocate_tensors()
    return interpreter.get_signature_runner(signature)


def test_each_signature_answers_as_its_own_file(files):
    joined = join(files)
    for name, length in LENGTHS.items():
        ids = np.arange(5, 5 + (length or 11), dtype="int32")[None]
        inputs = {"token_ids": ids, "segment_ids": ids % 2, "padding_mask": np.ones_like(ids)}
        expected = runner(files[name], "token_ids")(**inputs)
        for key, value in runner(joined, name)(**inputs).items():
            np.testing.assert_array_equal(value, expected[key], err_msg=f"{name} {key}")


def test_weights_that_are_alike_are_stored_once(files):
    model = schema.ModelT.InitFromPackedBuf(join(files), 0)
    contents = [bytes(buffer.data) for buffer in model.buffers if buffer.data is not None]
    assert len(set(contents)) == len(contents)
    for weight in (b"token_embedding/table", b"block_1/feed_forward/output/kernel", b"classifier/kernel"):
        buffers = [
            {tensor.buffer for tensor in graph.tensors if tensor.buffer and tensor.name.endswith(weight)}
            for graph in model.subgraphs
        ]
        assert len(buffers) == 3 and buffers[0] and buffers[0] == buffers[1] == buffers[2], weight


def test_weights_beyond_what_a_file_can_hold_are_refused(files, monkeypatch):
    monkeypatch.setattr(joining, "_MOST_BYTES", 1000)
    with pytest.raises(InputError, match=r"`files` must have at most 2 GiB of weights together\. Received: .* bytes"):
        join(files)
