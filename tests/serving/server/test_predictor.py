"""The one way in: what it refuses, and what it tells of each request."""

import json
import os

import numpy as np
import pytest
from fake_servables import FakeVersions, texts

from keras_bert_impl.serving.server.batching import Batching
from keras_bert_impl.serving.server.json_log import JsonLog
from keras_bert_impl.serving.server.models.store import ModelStore
from keras_bert_impl.serving.server.monitoring import Monitor
from keras_bert_impl.serving.server.predictor import Predictor
from keras_bert_impl.serving.server.request_error import RequestError


@pytest.fixture
def store(tmp_path):
    versions = FakeVersions(tmp_path / "model")
    versions.add(1, "torn")
    versions.add(3)
    store = ModelStore({"m": versions.directory}, load=versions.load)
    store.start()
    versions.add(4, "torn")
    yield store
    store.close()


@pytest.fixture
def records():
    return []


@pytest.fixture
def monitor(store):
    return Monitor(store)


@pytest.fixture
def predictor(store, records, monitor):
    batching = Batching(on_run=monitor.ran)
    yield Predictor(store, batching, monitor, log=records.append, max_request_rows=3)
    batching.close()


def ask(predictor, *values, signature="serving_default", model="m"):
    with predictor.request("gRPC", "Predict", model), predictor.lease(model) as servable:
        return predictor.run(servable, signature, texts(*values))


def test_a_request_is_answered_and_told_of(predictor, records):
    assert ask(predictor, "a", "bb")["length"].tolist() == [1, 2]
    (record,) = records
    assert (record.protocol, record.method, record.model) == ("gRPC", "Predict", "m")
    assert (record.version, record.signature, record.rows, record.code) == (3, "serving_default", 2, "OK")
    assert 0 < record.seconds < 20


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        ({"signature": "zzz"}, 'Serving signature key "zzz" not found.', "FAILED_PRECONDITION"),
        ({"model": "zz"}, "Servable not found for request: Latest(zz)", "NOT_FOUND"),
    ],
)
def test_what_is_refused_is_told_of_by_its_code(predictor, records, options, message, code):
    with pytest.raises(RequestError) as error:
        ask(predictor, "a", **options)
    assert (str(error.value), error.value.code, records[0].code) == (message, code, code)


def test_too_many_rows_are_refused_as_the_real_server_does(predictor):
    with pytest.raises(RequestError, match=r"^Task size 4 is larger than maximum input batch size 3$") as error:
        ask(predictor, *"abcd")
    assert error.value.code == "INVALID_ARGUMENT"


def test_labels_are_refused(predictor):
    message = "^Unrecognized servable version label: stable$"
    with pytest.raises(RequestError, match=message), predictor.lease("m", label="stable"):
        pass


def test_an_error_of_ours_is_told_of_as_internal(predictor, records):
    with pytest.raises(ZeroDivisionError), predictor.request("REST", "Predict", "m"):
        raise ZeroDivisionError
    assert records[0].code == "INTERNAL"


def test_without_batching_each_request_is_run_by_itself(store):
    predictor = Predictor(store)
    with predictor.lease("m", 3) as servable:
        assert predictor.run(servable, "total", {"x": np.float32([1, 2])})["total"] == 3
        assert predictor.run(servable, "serving_default", texts("a"), ["length"]).keys() == {"length"}


def lines_of(monitor):
    return [line for line in monitor.text().decode().splitlines() if not line.startswith("#")]


def test_counts_have_the_real_servers_names(predictor, monitor):
    ask(predictor, "a", "b")
    for model in ("zz", "yy"):
        with pytest.raises(RequestError):
            ask(predictor, "a", model=model)
    lines = lines_of(monitor)
    assert ':tensorflow:serving:request_count{model_name="m",status="OK"} 1.0' in lines
    assert ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"} 2.0' in lines
    latency = ':tensorflow:serving:request_latency_count{API="Predict",entrypoint="gRPC",model_name="m"} 1.0'
    assert latency in lines
    assert "keras_bert_batch_rows_sum 2.0" in lines and "keras_bert_batch_requests_sum 1.0" in lines
    assert 'keras_bert_version_state{model_name="m",state="AVAILABLE",version="3"} 1.0' in lines
    assert not any("_created" in line or "zz" in line for line in lines)


def test_names_that_nobody_knows_do_not_fill_the_memory(predictor, monitor):
    before = len(lines_of(monitor))
    for number in range(50):
        with pytest.raises(RequestError):
            ask(predictor, "a", model=f"model {number}")
    assert len(lines_of(monitor)) == before + 1


def test_the_log_has_a_line_of_json_for_each_request_without_its_texts(predictor, store, tmp_path):
    with (tmp_path / "log").open("wb") as file:
        log = JsonLog(file.fileno())
        predictor = Predictor(store, log=log.answered)
        ask(predictor, "a secret")
        with pytest.raises(RequestError):
            ask(predictor, "bad secret")
        with pytest.raises(RequestError):
            ask(predictor, "a", model='"\n\x00é' * 1000)
        log.event("Version 4 of m is served in place of version 3.")
        log.close()
    text = (tmp_path / "log").read_text(encoding="utf-8")
    good, bad, unknown, event = map(json.loads, text.splitlines())
    assert "secret" not in text
    assert good.pop("seconds") > 0 and good.pop("time").endswith("Z")
    assert good == {
        "protocol": "gRPC",
        "method": "Predict",
        "model": "m",
        "version": 3,
        "signature": "serving_default",
        "rows": 1,
        "code": "OK",
    }
    assert bad["code"] == "INVALID_ARGUMENT"
    assert (unknown["version"], len(unknown["model"])) == (None, 100)
    assert event["event"].startswith("Version 4 of m")


def test_a_log_that_nobody_reads_does_not_disturb_requests(store):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        log = JsonLog(writer)
        assert ask(Predictor(store, log=log.answered), "a")["length"].tolist() == [1]
        log.close()
    finally:
        os.close(writer)
