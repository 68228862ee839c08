"""`:classify` and `:regress` over HTTP: examples as JSON in, labels and numbers out, with the real server's texts."""

import json

import pytest
from fake_example_model import ExampleModel
from starlette.testclient import TestClient

from keras_bert_impl.serving.server.models.store import ModelStore
from keras_bert_impl.serving.server.predictor import Predictor
from keras_bert_impl.serving.server.request_error import RequestError
from keras_bert_impl.serving.server.rest.api import RestApi
from keras_bert_impl.serving.server.rest.examples import read_examples


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    (folder / "1").mkdir()
    (folder / "1" / "saved_model.pb").touch()
    store = ModelStore({"m": folder}, load=lambda name, directory: ExampleModel(name, 1), poll_seconds=60)
    store.start()
    yield TestClient(RestApi(Predictor(store), store))
    store.close()


def test_every_kind_of_feature_is_read():
    features = {"a": "é", "b": {"b64": "/w=="}, "c": [1, True, -(2**63)], "d": [0.5, 1e3], "e": [], "f": 2**70}
    [example] = read_examples({"examples": [features]}).example_list.examples
    read = example.features.feature
    assert list(read["a"].bytes_list.value) == ["é".encode()]
    assert list(read["b"].bytes_list.value) == [b"\xff"]
    assert list(read["c"].int64_list.value) == [1, 1, -(2**63)]
    assert list(read["d"].float_list.value) == [0.5, 1000]
    assert read["e"].WhichOneof("kind") is None
    assert list(read["f"].float_list.value) == [2**70]


def test_a_context_is_kept_beside_the_examples():
    read = read_examples({"context": {"a": 1}, "examples": [{"b": 2}, {}]}).example_list_with_context
    assert list(read.context.features.feature["a"].int64_list.value) == [1]
    assert [list(example.features.feature) for example in read.examples] == [["b"], []]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, r"JSON Value: \{\} When method is classify, key 'examples' is expected and was not found"),
        ({"examples": 1}, "Expecting 'examples' value to be an list/array"),
        ({"examples": []}, "'examples' value is an empty array"),
        ({"examples": [1]}, "Example must be JSON object but got JSON Number"),
        ({"context": [], "examples": [{}]}, "Example must be JSON object but got JSON Array"),
        ({"examples": [{"a": None}]}, "Feature: a has element with unexpected JSON type: Null"),
        ({"examples": [{"a": [[1]]}]}, "Feature: a has element with unexpected JSON type: Array"),
        ({"examples": [{"a": {"x": 1}}]}, "Feature: a has element with unexpected JSON type: Object"),
        ({"examples": [{"a": [1, "x"]}]}, "Unexpected element type in feature: a expecting type: int64"),
        ({"examples": [{"a": ["x", 0.5]}]}, "Unexpected element type in feature: a expecting type: bytes"),
        ({"examples": [{"a": [0.5, 1]}]}, "Unexpected element type in feature: a expecting type: float"),
        ({"examples": [{"a": 2**63}]}, "Feature: a has uint64 element. Only int64 is supported."),
        ({"examples": [{"a": 1e39}]}, r"Cannot convert JSON value: 1e\+39 to float without loss of precision."),
        ({"examples": [{"a": {"b64": "?"}}]}, "Unable to base64 decode"),
        ({"examples": [{"a": "\ud800"}]}, "The surrogate pair in string is invalid."),
        ({"examples": [{"\ud800": 1}]}, "The surrogate pair in string is invalid."),
    ],
)
def test_each_wrong_request_has_its_text(document, message):
    with pytest.raises(RequestError, match=message):
        read_examples(document)


def test_labels_and_scores_are_answered_for_each_example(http):
    body = {"signature_name": "labels", "examples": [{"text": "a"}, {"text": "bcd"}]}
    [one, three] = http.post("/v1/models/m:classify", json=body).json()["results"]
    assert [label for label, _ in one] == [label for label, _ in three] == ["long", "süß"]
    assert one[0][1] == -one[1][1] == three[0][1] - 2


def test_a_number_is_answered_for_each_example(http):
    body = {"signature_name": "value", "context": {"c": "x"}, "examples": [{"text": "a"}, {"text": "bcd"}]}
    answer = http.post("/v1/models/m/versions/1:regress", json=body)
    [one, three] = answer.json()["results"]
    assert three == one + 2
    assert b".0" in answer.content


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("m:classify", {"examples": [{}]}, 'No classification inputs found in SignatureDef: inputs {\n  key: "text"'),
        ("m:regress", {"examples": [{}]}, "No regression inputs found in SignatureDef: inputs {"),
        ("m:classify", {"signature_name": "q", "examples": [{}]}, "No signature was found with the name: q"),
        ("m:regress", {"signature_name": "many", "examples": [{}]}, "Expected one output Tensor."),
        ("m:classify", {"examples": []}, "JSON Value: {\n"),
    ],
)
def test_each_refusal_has_the_real_servers_text(http, path, body, message):
    answer = http.post(f"/v1/models/{path}", content=json.dumps(body))
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)
