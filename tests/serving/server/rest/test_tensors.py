"""JSON to arrays and back, as TensorFlow Serving does it."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.serving.server.models.signature import TensorInfo
from keras_bert_impl.serving.server.request_error import RequestError
from keras_bert_impl.serving.server.rest import tensors
from keras_bert_impl.serving.server.rest.json_values import parse_json
from keras_bert_impl.serving.server.rest.tensors import read_inputs, write_outputs

TEXT = {"text": TensorInfo("text:0", "string", (None,))}
PAIR = {
    "token_ids": TensorInfo("a:0", "int32", (None, None)),
    "segment_ids": TensorInfo("b:0", "int32", (None, None)),
}
DECIMAL = {"x": TensorInfo("x:0", "float", None)}


@pytest.mark.parametrize(
    "request_",
    [
        {"instances": ["a", "é"]},
        {"instances": [{"text": "a"}, {"text": "é"}]},
        {"instances": [{"text": "a"}, {"text": {"b64": "w6k="}}]},
        {"instances": [{"b64": "YQ"}, {"b64": "w6k="}]},
        {"inputs": ["a", "é"]},
        {"inputs": {"text": ["a", {"b64": "w6k="}]}},
    ],
)
def test_row_and_column_form_give_the_same_array(request_):
    arrays, row_form = read_inputs(request_, TEXT)
    assert arrays["text"].tolist() == [b"a", "é".encode()]
    assert row_form == ("instances" in request_)


def test_several_inputs_are_stacked_by_row():
    rows = [{"token_ids": [1, 2], "segment_ids": [0, 1]}, {"segment_ids": [0, 0], "token_ids": [3, 4]}]
    arrays, _ = read_inputs({"instances": rows}, PAIR)
    assert arrays["token_ids"].tolist() == [[1, 2], [3, 4]]
    assert arrays["segment_ids"].tolist() == [[0, 1], [0, 0]]
    assert arrays["token_ids"].dtype == np.int32


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"{", "JSON Parse error: .* at offset: 1"),
        (b"\xff", "JSON Parse error: The document is not UTF-8 at offset: 0"),
        (b"[" * 100_000, "JSON Parse error: The document is nested too deeply"),
        (b'{"inputs": ' + b"9" * 5000 + b"}", "JSON Parse error: A number has too many digits"),
        (b"[1]", r"JSON Value: \[\n    1\n\] Is not object"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(body, message):
    with pytest.raises(RequestError, match=message):
        parse_json(body)


@pytest.mark.parametrize(
    ("request_", "inputs", "message"),
    [
        ({}, TEXT, "Missing 'inputs' or 'instances' key"),
        ({"inputs": ["a"], "instances": ["a"]}, TEXT, "expecting only one of 'inputs' or 'instances' keys to exist"),
        ({"instances": "a"}, TEXT, "Excepting 'instances' to be an list/array"),
        ({"instances": []}, TEXT, "No values in 'instances' array"),
        ({"inputs": {}}, TEXT, "Missing named input: text in 'inputs' object."),
        ({"instances": [{}]}, TEXT, r"Failed to process element: 0 of 'instances' list. JSON object: {} must only hav"),
        ({"instances": [{"texts": "a"}]}, TEXT, "JSON object: does not have named input: texts"),
        ({"instances": ["a", {"text": "a"}]}, TEXT, "Expecting value/list but got object at item 1 of input list"),
        ({"instances": [{"text": "a"}, "a"]}, TEXT, "Expecting object but got list at item 1 of input list"),
        ({"instances": [[1]]}, PAIR, "instances is a plain list, but expecting list of objects as multiple input"),
        ({"inputs": [[1]]}, PAIR, "inputs is a plain value/list, but expecting an object as multiple input"),
        ({"instances": [1]}, TEXT, "JSON Value: 1 Type: Number is not of expected type: string"),
        ({"instances": [None]}, TEXT, "JSON Value: null Type: Null is not of expected type: string"),
        ({"instances": [True]}, DECIMAL, "JSON Value: true Type: True is not of expected type: float"),
        ({"inputs": [2**24]}, DECIMAL, "Cannot convert JSON value: 16777216 to float without loss of precision."),
        ({"inputs": [1e39]}, DECIMAL, "without loss of precision."),
        ({"instances": [{"b64": "?"}]}, TEXT, "Unable to base64 decode"),
        ({"inputs": [{"b64": 1}]}, TEXT, "not formatted correctly for base64 data"),
        ({"inputs": ["\ud800"]}, TEXT, "The surrogate pair in string is invalid."),
        ({"inputs": [["a"], ["b"]]}, TEXT, r"Expecting shape \[-1\] for input: text but got: \[2,1\]"),
        ({"inputs": ["a", ["b"]]}, TEXT, "Encountered list at unexpected level: 1 expected < 1"),
        (
            {"inputs": [["a"], "b"]},
            TEXT,
            'JSON Value: "b" found at incorrect level: 2 in the JSON DOM. Expected at lev',
        ),
        ({"inputs": [["a"], []]}, TEXT, "Encountered list at unexpected size: 0 at level: 1 expected size: 1"),
        ({"instances": [[[1, 2]], [[1], [2]]]}, DECIMAL, r"Expecting shape \[1,2\] but got: \[2,1\]"),
        (
            {"instances": [{"token_ids": [1, 2, 3], "segment_ids": [0, 0, 0]}, {"token_ids": [1, 2]}]},
            PAIR,
            "Failed to process element: 1 key: token_ids of 'instances' list. "
            "Error: INVALID_ARGUMENT: Expecting tensor size: 3 but got: 2",
        ),
        (
            {"instances": [{"token_ids": [2**31], "segment_ids": [0]}]},
            PAIR,
            "JSON Value: 2147483648 Type: Number is not of expected type: int32",
        ),
        ({"instances": [{"token_ids": [1.0], "segment_ids": [0]}]}, PAIR, "1.0 Type: Number is not of expected type"),
        ({"inputs": [1j]}, {"x": TensorInfo("x:0", "complex64", None)}, "to type: complex64 is not supported"),
    ],
)
def test_each_wrong_request_has_its_sentence(request_, inputs, message):
    with pytest.raises(RequestError, match=message):
        read_inputs(request_, inputs)


def test_long_values_are_cut_in_error_texts():
    with pytest.raises(RequestError) as error:
        read_inputs({"instances": "a" * 10_000_000}, TEXT)
    assert len(str(error.value)) < 500


def test_a_single_output_stands_without_its_name():
    outputs = {"y": np.float32([[0.5], [1.5]])}
    assert json.loads(write_outputs(outputs, row_form=True)) == {"predictions": [[0.5], [1.5]]}
    assert json.loads(write_outputs(outputs, row_form=False)) == {"outputs": [[0.5], [1.5]]}


@pytest.mark.parametrize("row_form", [True, False])
@pytest.mark.parametrize("names", ["ab", "abcd"])
def test_answers_written_in_parts_are_those_written_at_once(names, row_form, monkeypatch):
    outputs = {
        "a": np.arange(42, dtype="float32").reshape(7, 2, 3) / 7,
        "b": np.array([str(i).encode() for i in range(7)], object),
        "c": np.zeros((7, 0), "int32"),
        "d": np.arange(7, dtype="int64"),
    }
    outputs = {name: outputs[name] for name in names}
    whole = write_outputs(outputs, row_form)
    for at_once in (1, 20, 60):
        monkeypatch.setattr(tensors, "_VALUES_AT_ONCE", at_once)
        assert write_outputs(outputs, row_form) == whole
    answer = json.loads(whole)["predictions" if row_form else "outputs"]
    assert (answer[6]["b"] if row_form else answer["b"][6]) == "6"


def test_several_outputs_are_named():
    outputs = {
        "a": np.int32([1, 2]),
        "b": np.array([[b"x"], ["é".encode()]], object),
        "c_bytes": np.array([b"\xff", b""]),
    }
    outputs["c_bytes"] = outputs["c_bytes"].astype(object)
    rows = json.loads(write_outputs(outputs, row_form=True))["predictions"]
    assert rows == [{"a": 1, "b": ["x"], "c_bytes": {"b64": "/w=="}}, {"a": 2, "b": ["é"], "c_bytes": {"b64": ""}}]
    columns = json.loads(write_outputs(outputs, row_form=False))["outputs"]
    assert columns == {"a": [1, 2], "b": [["x"], ["é"]], "c_bytes": [{"b64": "/w=="}, {"b64": ""}]}


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"a": np.float32(1)}, "Tensor name: a has no shape information"),
        ({"a": np.float32([])}, "Tensor name: a has invalid batch size: 0"),
        ({"a": np.float32([1]), "b": np.float32([1, 2])}, "b has inconsistent batch size: 2 expecting: 1"),
    ],
)
def test_outputs_that_do_not_fit_rows_are_refused(outputs, message):
    with pytest.raises(RequestError, match=message):
        write_outputs(outputs, row_form=True)


@given(st.lists(st.floats(width=32), min_size=1))
def test_decimals_come_back_as_the_same_float32(values):
    answer = json.loads(write_outputs({"y": np.float32(values)}, row_form=False))["outputs"]
    np.testing.assert_array_equal(np.float32(answer), np.float32(values))


def test_decimals_are_as_short_as_the_real_servers():
    text = write_outputs({"y": np.float32([0.2, 3, 1 / 3, 1e-9, math.nan, -math.inf])}, row_form=False).decode()
    assert text == '{"outputs": [0.2, 3.0, 0.333333343, 1e-09, NaN, -Infinity]}'
