"""A client that others wrote for TensorFlow Serving talks to the local server by both protocols."""

import numpy as np
import pytest
import tensorflow as tf

ovmsclient = pytest.importorskip("ovmsclient", reason="needs ovmsclient, which the extra `dev` has")
from ovmsclient.tfs_compat.base.errors import InvalidInputError, ModelNotFoundError  # noqa: E402

MODEL, VERSION = "small", 3
"""Version 0, which the client sends when none is given, means the newest to OpenVINO's own server only."""


@pytest.fixture(params=["grpc", "http"])
def client(request, small_local_server, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if request.param == "grpc":
        return ovmsclient.make_grpc_client(small_local_server.grpc_target)
    return ovmsclient.make_http_client(small_local_server.root_url.removeprefix("http://"))


def test_it_is_told_the_status(client):
    expected = {VERSION: {"state": "AVAILABLE", "error_code": 0, "error_message": ""}}
    assert client.get_model_status(MODEL, VERSION) == expected


def test_it_is_told_the_signature(small_local_server):
    client = ovmsclient.make_grpc_client(small_local_server.grpc_target)
    metadata = client.get_model_metadata(MODEL, VERSION)
    assert metadata["model_version"] == VERSION
    assert metadata["inputs"] == {"text": {"shape": [-1], "dtype": "DT_STRING"}}
    assert metadata["outputs"]["scaled"] == {"shape": [-1], "dtype": "DT_FLOAT"}


def test_it_is_answered(client):
    answer = client.predict({"text": ["a", "héy"]}, MODEL, VERSION)
    assert answer["length"].tolist() == [1, 4]
    assert [tf.compat.as_text(text) for text in answer["upper"].tolist()] == ["A", "HéY"]
    np.testing.assert_allclose(answer["scaled"], [0.2, 0.8], rtol=1e-6)
    assert answer["long"].tolist() == [False, True]


def test_it_understands_refusals(client):
    with pytest.raises(ModelNotFoundError, match=r"Servable not found for request: Specific\(zz, 3\)"):
        client.predict({"text": ["a"]}, "zz", VERSION)
    with pytest.raises(ModelNotFoundError, match=r"Servable not found for request: Specific\(small, 7\)"):
        client.predict({"text": ["a"]}, MODEL, 7)
    with pytest.raises(InvalidInputError, match=r"to be string but int32 is provided|not of expected type: string"):
        client.predict({"text": [1]}, MODEL, VERSION)
    with pytest.raises(InvalidInputError, match=r"Missing but required: {text}|Missing named input: text"):
        client.predict({}, MODEL, VERSION)
