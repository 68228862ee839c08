"""Warm-up requests: written without a server's package, as TensorFlow Serving reads them."""

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving import warm_up
from keras_bert_impl.serving.proof.clean_process import ExportError
from keras_bert_impl.serving.warm_up import FILE, MOST, Request, read, write

prediction_log_pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")

REQUESTS = [
    Request("serving_default", {"text": np.array(["héy".encode(), b"", b"a\x00\xff"], object)}),
    Request("pairs", {"text": np.array([b"a"]), "text_pair": np.array([b"bc"])}, ("label",)),
    Request("token_ids", {"token_ids": np.int32([[101, 7, 102]]), "segment_ids": np.int32([[0, 0, 1]])}),
    Request("token_ids", {"token_ids": np.zeros((0, 4), "int32"), "segment_ids": np.zeros((0, 4), "int32")}),
    Request("decimals", {"x": np.float32([[0.5, -1]]), "flags": np.array([True, False])}),
]


def official_logs(version):
    records = tf.data.TFRecordDataset(str(version / FILE)).as_numpy_iterator()
    return [prediction_log_pb2.PredictionLog.FromString(record) for record in records]


def write_records(version, *records):
    (version / "assets.extra").mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(version / FILE)) as writer:
        for record in records:
            writer.write(record)


def official_log(signature="serving_default", **inputs):
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.model_spec.name = "another"
    log.predict_log.request.model_spec.version.value = 7
    log.predict_log.request.model_spec.signature_name = signature
    for name, value in inputs.items():
        log.predict_log.request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return log


def assert_same(found, expected):
    assert (found.signature, found.inputs.keys(), found.outputs) == (
        expected.signature,
        expected.inputs.keys(),
        expected.outputs,
    )
    for name, array in expected.inputs.items():
        assert found.inputs[name].shape == array.shape
        assert found.inputs[name].tolist() == array.tolist()


def test_what_is_written_is_read(tmp_path):
    assert write(tmp_path, "bert", REQUESTS) == len(REQUESTS)
    for found, expected in zip(read(tmp_path), REQUESTS, strict=True):
        assert_same(found, expected)


def test_rows_are_counted():
    assert [request.rows for request in REQUESTS] == [3, 1, 1, 0, 2]
    assert Request("none", {}).rows == Request("none", {"x": np.float32(1)}).rows == 1


def test_it_is_a_prediction_log_of_tensorflow_serving(tmp_path):
    write(tmp_path, "bert", REQUESTS)
    logs = official_logs(tmp_path)
    for log, expected in zip(logs, REQUESTS, strict=True):
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        assert (request.model_spec.name, request.model_spec.signature_name) == ("bert", expected.signature)
        inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        assert_same(Request(request.model_spec.signature_name, inputs, tuple(request.output_filter)), expected)
        # Nothing is in it that the server's own class would leave aside.
        assert type(log).FromString(log.SerializeToString(deterministic=True)) == log
        assert not log.HasField("log_metadata")


def test_logs_that_others_wrote_are_read(tmp_path):
    log = official_log("", x=[[1.5]], text=["a", "b"])
    log.log_metadata.model_spec.name = "another"
    write_records(tmp_path, log.SerializeToString())
    [request] = read(tmp_path)
    assert (request.signature, request.outputs) == ("serving_default", ())
    assert request.inputs["x"].tolist() == [[1.5]]
    assert request.inputs["text"].tolist() == [b"a", b"b"]


def test_a_version_without_the_file_has_no_requests(tmp_path):
    assert list(read(tmp_path)) == []


def test_no_more_are_written_than_the_server_accepts(tmp_path):
    with pytest.raises(InputError, match=r"`requests` must be at most 1,000, .* Received: 1,001"):
        write(tmp_path, "bert", [REQUESTS[0]] * (MOST + 1))
    assert not (tmp_path / FILE).exists()


def test_a_file_with_more_is_refused_as_by_the_server(tmp_path, monkeypatch):
    write_records(tmp_path, *[official_log(x=[1]).SerializeToString()] * 4)
    monkeypatch.setattr(warm_up, "MOST", 3)
    requests = read(tmp_path)
    assert len([next(requests) for _ in range(3)]) == 3
    with pytest.raises(InputError, match=r"Received: '.*tf_serving_warmup_requests', which has more than 3"):
        next(requests)


def test_what_is_not_read_as_it_was_written_is_not_exported(tmp_path, monkeypatch):
    monkeypatch.setattr(warm_up, "read", lambda directory: iter(REQUESTS[1:2]))
    with pytest.raises(ExportError, match="not put in place: tf_serving_warmup_requests is not read as it was written"):
        write(tmp_path, "bert", REQUESTS[:1])


def test_another_kind_of_log_is_named(tmp_path):
    other = prediction_log_pb2.PredictionLog()
    other.classify_log.request.model_spec.name = "bert"
    write_records(tmp_path, official_log(x=[1]).SerializeToString(), other.SerializeToString())
    with pytest.raises(InputError, match=r"must hold requests to predict.*of which number 2 is classify_log"):
        list(read(tmp_path))


@pytest.mark.parametrize("fault", ["no_protobuf", "no_tensor", "cut", "changed", "empty"])
def test_a_damaged_file_is_a_sentence(tmp_path, fault):
    log = official_log(x=[1, 2])
    if fault == "no_tensor":
        log.predict_log.request.inputs["x"].tensor_shape.dim[0].size = 5
        log.predict_log.request.inputs["x"].dtype = 99
    records = {"no_protobuf": b"\xff\xff\xff", "empty": b""}
    write_records(tmp_path, records.get(fault, log.SerializeToString()))
    content = (tmp_path / FILE).read_bytes()
    if fault in ("cut", "changed"):
        (tmp_path / FILE).write_bytes(content[:-3] if fault == "cut" else content[:-3] + b"abc")
    fault = "is of no kind known here" if fault == "empty" else "cannot be read"
    with pytest.raises(InputError, match=f"A version's warm-up file must hold .*of which number 1 {fault}"):
        list(read(tmp_path))
