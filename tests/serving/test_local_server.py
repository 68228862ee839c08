"""The local server answers as TensorFlow Serving does, and stays alive."""

import json
import logging
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from http.client import HTTPResponse
from pathlib import Path

import httpx
import pytest
from fake_servables import FakeServable, wait_until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_faults import faults_of

from keras_bert_impl.cli import main
from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.client import ServingError, predict
from keras_bert_impl.serving.local_server import LocalServer, latest_version, serve


@pytest.fixture(scope="module")
def http():
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


def test_a_damaged_description_of_the_export_is_a_sentence(tmp_path):
    extra = tmp_path / "1" / "assets.extra"
    extra.mkdir(parents=True)
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"")
    whole = {"signatures": {"serving_default": {"example": {"request": {"instances": ["a"]}}}}}
    refused = 0
    for text in faults_of(whole):
        (extra / "signature.json").write_text(text)
        try:
            LocalServer(tmp_path)
        except InputError as error:
            assert str(error).startswith("`export_dir` must hold a whole export; export it anew. Received: ")
            refused += 1
    assert refused > 40


@pytest.mark.parametrize("signatures", [{"nope": {"instances": ["a"]}}, {"pairs": {"instances": ["a"]}}, {"pairs": {}}])
def test_a_description_that_does_not_fit_the_export_is_a_sentence(small_export, tmp_path, signatures):
    shutil.copytree(small_export / "3", tmp_path / "3")
    (tmp_path / "3" / "assets.extra").mkdir(exist_ok=True)
    described = {name: {"example": {"request": request}} for name, request in signatures.items()}
    (tmp_path / "3" / "assets.extra" / "signature.json").write_text(json.dumps({"signatures": described}))
    with pytest.raises(InputError, match="`export_dir` must hold a whole export"), LocalServer(tmp_path):
        pass


def test_status_has_the_form_of_the_real_server(small_server, http):
    expected = {
        "model_version_status": [
            {"version": "3", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
        ]
    }
    for url in (small_server, f"{small_server}/versions/3"):
        answer = http.get(url)
        assert (answer.status_code, answer.json()) == (200, expected)
        assert answer.headers["content-type"] == "application/json"


def test_metadata_has_the_form_of_the_real_server(small_server, http):
    answer = http.get(f"{small_server}/metadata").json()
    assert answer["model_spec"] == {"name": "small", "signature_name": "", "version": "3"}
    signature = answer["metadata"]["signature_def"]["signature_def"]["pairs"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    assert signature["inputs"]["token_ids"] == {
        "name": "pairs_token_ids:0",
        "dtype": "DT_INT32",
        "tensor_shape": {"dim": [{"size": "-1", "name": ""}, {"size": "-1", "name": ""}], "unknown_rank": False},
    }


def test_row_form_is_answered_by_predictions(small_server, http):
    answer = http.post(f"{small_server}:predict", json={"instances": ["héy", "a"]}).json()
    assert answer == {
        "predictions": [
            {"length": 4, "long": True, "raw_bytes": {"b64": "aMOpeQ=="}, "scaled": 0.8, "upper": "HéY"},
            {"length": 1, "long": False, "raw_bytes": {"b64": "YQ=="}, "scaled": 0.2, "upper": "A"},
        ]
    }


def test_column_form_is_answered_by_outputs(small_server, http):
    body = {"signature_name": "decimals", "inputs": {"x": [[1, 0.5]]}}
    for url in (small_server, f"{small_server}/versions/3", small_server.replace("/models/", "/Models/")):
        assert http.post(f"{url}:predict", json=body).json() == {"outputs": [[2.0, 1.0]]}


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("small:predict", {"signature_name": "q", "instances": ["a"]}, 400, 'name: "q" not found in signature def'),
        ("small:predict", {"signature_name": 1}, 400, "'signature_name' key must be a string value."),
        ("small:predict", {"instances": [5]}, 400, "Type: Number is not of expected type: string"),
        ("small:predict", {"inputs": {}}, 400, "Missing named input: text in 'inputs' object."),
        ("zz:predict", {"instances": ["a"]}, 404, "Servable not found for request: Latest(zz)"),
        ("small/versions/7:predict", {"instances": ["a"]}, 404, "Servable not found for request: Specific(small, 7)"),
        ("small/versions/99999999999999999999:predict", {}, 400, "Failed to convert version"),
        ("small/labels/stable:predict", {}, 400, "Unrecognized servable version label: stable"),
        ("small:classify", {"examples": [{"text": "a"}]}, 400, "No classification inputs found in SignatureDef"),
        ("small:regress", {"examples": [{"text": "a"}]}, 400, "No regression inputs found in SignatureDef"),
        ("small:classify", {"signature_name": "q", "examples": [{}]}, 400, "No signature was found with the name: q"),
        ("small:explain", {}, 400, "Malformed request: POST /v1/models/small:explain"),
        ("small", {}, 400, "Malformed request: POST /v1/models/small"),
        (
            "small:predict",
            {
                "signature_name": "pairs",
                "instances": [
                    {"token_ids": [1, 2, 3], "segment_ids": [0, 0, 0]},
                    {"token_ids": [1, 2], "segment_ids": [0, 0]},
                ],
            },
            400,
            "Failed to process element: 1 key: token_ids of 'instances' list. "
            "Error: INVALID_ARGUMENT: Expecting tensor size: 3 but got: 2",
        ),
        (
            "small:predict",
            {"signature_name": "pairs", "instances": [{"token_ids": [9], "segment_ids": [0]}]},
            400,
            "indices[0,0] = 9 is not in [0, 4)",
        ),
        (
            "small:predict",
            {"signature_name": "pairs", "inputs": {"token_ids": [[1, 2]], "segment_ids": [[0, 0, 0]]}},
            400,
            "Incompatible shapes: [1,",
        ),
        (
            "small:predict",
            {"signature_name": "pairs", "inputs": {"token_ids": [[1], [2]], "segment_ids": [[0]]}},
            400,
            "Expecting inputs of one number of rows but got: ",
        ),
    ],
)
def test_each_wrong_post_has_the_real_servers_status_and_text(small_server, http, path, body, status, message):
    answer = http.post(small_server.replace("small", path), json=body)
    assert answer.status_code == status
    assert answer.json().keys() == {"error"}
    assert message in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/v1/models/zz", 404, "Could not find any versions of model zz"),
        ("/v1/models/small/versions/7", 404, "Could not find version 7 of model small"),
        ("/v1/models/zz/metadata", 404, "Servable not found for request: Latest(zz)"),
        ("/v1/models/small/versions/x", 400, "Malformed request: GET /v1/models/small/versions/x"),
        ("/nothing", 400, "Malformed request: GET /nothing"),
        ("/playground/nothing", 404, "There is no such page"),
        ("/v1/models/..%2f..%2fetc/passwd", 400, "Malformed request"),
    ],
)
def test_each_wrong_get_has_its_status_and_text(small_server, http, path, status, message):
    answer = http.get(small_server.partition("/v1/")[0] + path)
    assert (answer.status_code, answer.json().keys()) == (status, {"error"})
    assert message in answer.json()["error"]


def test_other_methods_are_malformed_requests(small_server, http):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = http.request(method, small_server)
        assert (answer.status_code, answer.json()["error"].startswith("Malformed request")) == (400, True)


def test_a_body_over_the_limit_is_refused(small_server, http):
    answer = http.post(f"{small_server}:predict", content=b" " * (33 * 1024 * 1024))
    assert answer.status_code == 413
    assert "larger than 33554432 bytes" in answer.json()["error"]


def said_to(small_server, data):
    """What comes back on a connection of its own: status, and the error."""
    host, port = small_server.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(data)
        answer = HTTPResponse(connection)
        answer.begin()
        assert answer.getheader("content-type") == "application/json"
        return answer.status, json.loads(answer.read())["error"]


POST = b"POST /v1/models/small:predict HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    ("data", "status", "message"),
    [
        (POST + b"Content-Length: 99999999999999999999\r\n\r\n", 400, "Malformed request: it is no HTTP"),
        (POST + b"Content-Length: 9999999999999999999\r\n\r\n", 413, "larger than 33554432 bytes"),
        (POST + b"Content-Length: 33554433\r\n\r\n", 413, "larger than 33554432 bytes"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n", 400, "it is no HTTP"),
        (POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "it is no HTTP"),
        (POST + b"Content-Length: 19, 19\r\n\r\n", 400, "it is no HTTP"),
        (POST + b"Content-Length: -1\r\n\r\n", 400, "it is no HTTP"),
        (POST + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415, "without Content-Encoding"),
        (b"no http at all\r\n\r\n", 400, "it is no HTTP"),
        (b"GET /" + b"a" * 70_000, 431, "The head of the request is too long"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000, 431, "The head of the request is too long"),
    ],
)
def test_what_is_no_request_is_refused_at_once_and_in_json(small_server, data, status, message):
    given, error = said_to(small_server, data)
    assert given == status and message in error


@pytest.mark.parametrize("form", ["length", "chunks"])
def test_a_client_that_sends_too_much_sees_the_refusal_and_not_a_broken_connection(small_server, form):
    body = b" " * (33 * 1024 * 1024)
    if form == "length":
        data = b"Content-Length: %d\r\n\r\n" % len(body) + body
    else:
        data = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    said = said_to(small_server, POST + b"Connection: close\r\n" + data)
    assert said == (413, "Request body is larger than 33554432 bytes")


def test_a_body_of_many_small_chunks_does_not_hold_others_up(small_server, http):
    host, port = small_server.split("/")[2].split(":")
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in json.dumps({"instances": ["a" * 200_000]}).encode())
    data = POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    with socket.create_connection((host, int(port))) as connection:
        sending = threading.Thread(target=connection.sendall, args=(data,))
        sending.start()
        longest = 0.0
        while sending.is_alive():
            started = time.perf_counter()
            assert http.get(small_server.partition("/v1/")[0] + "/healthz").status_code == 200
            longest = max(longest, time.perf_counter() - started)
        assert connection.recv(12) == b"HTTP/1.1 200"
    assert longest < 2


def test_what_a_request_names_is_cut_in_errors(small_server, http):
    long = "x" * 5000
    for answer in (
        http.post(f"{small_server}:predict", json={"signature_name": long, "instances": ["a"]}),
        http.post(f"{small_server}:predict", json={"instances": [{long: 1}]}),
        http.post(f"{small_server}:{long}", json={}),
        http.get(f"{small_server}/labels/{long}"),
    ):
        assert 1000 < len(answer.json()["error"]) < 1100


def test_what_a_saved_model_does_when_it_is_loaded_is_no_signature(small_server, http):
    known = http.get(f"{small_server}/metadata").json()["metadata"]["signature_def"]["signature_def"]
    assert "__saved_model_init_op" not in known and "serving_default" in known
    answer = http.post(f"{small_server}:predict", json={"signature_name": "__saved_model_init_op", "inputs": {}})
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        'Serving signature name: "__saved_model_init_op" not found in signature def',
    )


def test_a_truncated_request_does_not_disturb_the_next(small_server, http):
    host, port = small_server.split("/")[2].split(":")
    for data in (b"POST /v1/models/small:predict HTTP/1.1\r\nContent-Length: 50\r\n\r\n{", b"\xff\x00\r\n\r\n", b""):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(data)
    assert http.get(small_server).status_code == 200


def test_answers_on_a_kept_connection_do_not_wait_for_acknowledgements(small_server, http):
    seconds = []
    for _ in range(15):
        started = time.perf_counter()
        http.get(small_server)
        seconds.append(time.perf_counter() - started)
    assert statistics.median(seconds) < 0.035


def test_requests_at_the_same_time_get_their_own_answers(small_server):
    texts = [["x" * (i % 17), "yy"] for i in range(200)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda text: predict(small_server, text), texts))
    assert [[row["length"] for row in answer] for answer in answers] == [[i % 17, 2] for i in range(200)]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just({"b64": "YQ=="}),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
_REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "instances": _JSON | st.lists(st.fixed_dictionaries({"token_ids": _JSON, "segment_ids": _JSON}), max_size=3),
        "inputs": _JSON | st.fixed_dictionaries({"x": _JSON}),
        "signature_name": st.sampled_from(["serving_default", "pairs", "decimals", ""]) | _JSON,
    },
)
_BODIES = _REQUESTS.map(lambda value: json.dumps(value).encode()) | _JSON.map(json.dumps).map(str.encode)
_BODIES |= st.binary(max_size=200) | st.builds(lambda body, size: body[:size], _BODIES, st.integers(0, 100))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=_BODIES)
def test_no_body_brings_out_a_traceback_or_a_path(small_server, http, body):
    answer = http.post(f"{small_server}:predict", content=body)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 400:
        assert answer.json().keys() == {"error"}
        error = answer.json()["error"]
        assert "Traceback" not in error and "site-packages" not in error and str(Path.cwd()) not in error


def test_the_client_returns_predictions_and_the_servers_words(small_server):
    assert predict(small_server, ["abcd"])[0]["length"] == 4
    with pytest.raises(ServingError, match="not found in signature def") as error:
        predict(small_server, ["a"], signature_name="q")
    assert error.value.status == 400


def test_the_client_names_an_address_that_nobody_answers(small_server):
    with pytest.raises(InputError, match="`url` must have the form"):
        predict("localhost:8501", ["a"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(InputError, match="`url` must be the address of a running server"):
        predict(f"http://127.0.0.1:{port}/v1/models/small", ["a"])


@pytest.fixture
def reloading(small_export, tmp_path):
    """An export of which version 3 is served, and the server's lines."""
    shutil.copytree(small_export / "3", tmp_path / "export" / "3")
    lines: list[str] = []
    with LocalServer(tmp_path / "export", model_name="small", poll_seconds=0.05, say=lines.append) as server:
        yield tmp_path / "export", server, lines


def test_a_new_version_is_loaded_under_requests_and_a_broken_one_is_not(reloading, http):
    export, server, lines = reloading
    whole = export / "3"
    broken = {
        "cut": ("variables/variables.data-00000-of-00001", lambda data: data[: len(data) // 2]),
        "unreadable": ("saved_model.pb", lambda data: b"not a saved model"),
        "empty": ("saved_model.pb", lambda data: b""),
        "without": ("variables/variables.index", lambda data: None),
    }
    done = threading.Event()

    def ask():
        answers = 0
        while not done.is_set():
            assert predict(server.url, ["héy", "a"])[1] == {
                "length": 1, "long": False, "raw_bytes": {"b64": "YQ=="}, "scaled": 0.2, "upper": "A"
            }  # fmt: skip
            answers += 1
        return answers

    with ThreadPoolExecutor(4) as pool:
        askers = [pool.submit(ask) for _ in range(4)]
        try:
            for number, (file, change) in enumerate(broken.values(), start=4):
                made = shutil.copytree(whole, export / "in the making")
                content = change((whole / file).read_bytes())
                (made / file).unlink()
                if content is not None:
                    (made / file).write_bytes(content)
                made.rename(export / str(number))
                wait_until(lambda number=number: len(lines) == number - 3)
                status = http.get(f"{server.url}/versions/{number}").json()["model_version_status"][0]
                assert status["state"] == "END" and status["status"]["error_code"] != "OK"
                message = status["status"]["error_message"]
                assert message.startswith("The SavedModel cannot be loaded: ") and str(export) not in message
            shutil.copytree(whole, export / "10")
            wait_until(lambda: lines[-1] == "Version 10 of small is served in place of version 3.")
        finally:
            done.set()
        assert all(asker.result() > 0 for asker in askers)
    states = {known["version"]: known["state"] for known in http.get(server.url).json()["model_version_status"]}
    assert states == {"10": "AVAILABLE", **dict.fromkeys(("7", "6", "5", "4", "3"), "END")}


def test_the_highest_version_with_content_is_served(small_export):
    assert latest_version(small_export).name == "3"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_name": "a/b"}, "`model_name` must be a word without / and :. Received: model_name='a/b'"),
        ({"rest_port": 65536}, "`rest_port` must be at least 0 and at most 65535. Received: rest_port=65536"),
        (
            {"host": "no.such.host.invalid"},
            "`host` must be an address of this machine; .*: host='no.such.host.invalid'",
        ),
        ({"host": "198.51.100.7"}, "`host` must be an address of this machine; .* Received: host='198.51.100.7'"),
    ],
)
def test_each_wrong_option_has_its_sentence(small_export, options, message):
    with pytest.raises(InputError, match=message):
        serve(small_export, **options)


def test_several_models_are_served_by_their_names(small_export, http):
    with LocalServer({"one": small_export, "two": small_export}) as server:
        assert server.url == f"{server.root_url}/v1/models/one"
        for name in ("one", "two"):
            url = f"{server.root_url}/v1/models/{name}"
            assert predict(url, ["abcd"])[0]["length"] == 4
            assert http.get(f"{url}/metadata").json()["model_spec"]["name"] == name
        assert http.get(f"{server.root_url}/v1/models/small").status_code == 404
        with pytest.raises(InputError, match="`grpc_port` must be given for a gRPC target"):
            server.grpc_target  # noqa: B018


def test_the_json_log_has_what_happens_while_loading_and_every_request(small_export, tmp_path, capfd):
    shutil.copytree(small_export / "3", tmp_path / "3")
    (tmp_path / "4").mkdir()
    (tmp_path / "4" / "saved_model.pb").write_bytes(b"not a saved model")
    with LocalServer(tmp_path, json_log=True) as server:
        predict(server.url, ["a secret", "b"])
        try:
            raise ValueError("a fault\nof two lines")
        except ValueError:
            logging.getLogger("keras_bert_impl.anything").exception("It failed")
    text = capfd.readouterr().err
    event, request, fault = map(json.loads, text.splitlines())
    assert (fault["level"], fault["logger"], fault["event"]) == ("ERROR", "keras_bert_impl.anything", "It failed")
    assert fault["traceback"].endswith("ValueError: a fault\nof two lines")
    assert event["event"].startswith("Version 4 of bert is not served. The SavedModel in ")
    assert (request["version"], request["rows"], request["code"]) == (3, 2, "OK")
    assert "secret" not in text


def test_no_model_is_refused():
    with pytest.raises(InputError, match=r"`export_dir` must name a model. Received: none"):
        LocalServer({})


def test_both_protocols_can_be_served_or_either(small_export):
    with LocalServer(small_export, rest_port=None, grpc_port=0) as server:
        host, port = server.grpc_target.split(":")
        assert host == "127.0.0.1"
        socket.create_connection((host, int(port))).close()
        with pytest.raises(InputError, match="`rest_port` must be given for a URL"):
            server.url  # noqa: B018


def test_a_directory_without_versions_is_refused(small_export, tmp_path):
    with pytest.raises(InputError, match=r"`export_dir` must hold numbered version directories.*Received: '"):
        serve(tmp_path)
    with pytest.raises(InputError, match="is a version directory itself: give the one above"):
        serve(small_export / "3")
    with pytest.raises(InputError, match="`export_dir` must be a directory that `export` wrote"):
        serve(tmp_path / "absent")


def test_a_broken_saved_model_is_refused(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"not a saved model")
    with pytest.raises(InputError, match=r"The SavedModel in .*1' cannot be loaded: "):
        serve(tmp_path, rest_port=0)


def test_a_port_in_use_is_refused(small_export):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for settings in ({"rest_port": port}, {"rest_port": 0, "grpc_port": port}):
            name = [*settings][-1]
            with pytest.raises(InputError, match=f"`{name}` .*; Address already in use. Received: {name}={port}"):
                serve(small_export, **settings)


def test_the_missing_extra_is_named(small_export, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    message = r"needs the extra `serving`: pip install 'keras-bert-impl\[serving\]'. Missing: uvicorn"
    with pytest.raises(InputError, match=message):
        LocalServer(small_export).__enter__()


def test_naming_the_server_opens_neither_tensorflow_nor_the_http_stack():
    code = (
        "import sys; sys.modules['keras_bert_console'] = sys; import keras_bert_impl.serving.local_server;"
        "print([m for m in ('tensorflow', 'keras', 'starlette', 'uvicorn') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


_SERVE = (
    "import sys; sys.modules['keras_bert_console'] = sys\n"
    "from keras_bert_impl.serving.local_server import serve\n"
    "serve(sys.argv[1], rest_port=0, grpc_port=None, model_name='small', max_request_rows=20_000,\n"
    "      say=lambda line: print(line, flush=True))\n"
    "assert 'keras_bert_impl.models' not in sys.modules\n"
)


def test_a_signal_while_loading_ends_the_server_in_good_order(small_export, monkeypatch):
    def load(name, directory):
        signal.raise_signal(signal.SIGTERM)
        return FakeServable(name, 3)

    monkeypatch.setattr("keras_bert_impl.serving.server.replay.load_and_replay", load)
    lines = []
    serve({"a": small_export, "b": small_export}, rest_port=0, grpc_port=0, say=lines.append)
    assert lines == ["Stopped."]


def test_the_command_serves_without_kernels_that_remember_every_shape(small_export, monkeypatch):
    """oneDNN's made memory grow by 8 % over 3,000 requests of as many shapes."""
    seen = []
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    monkeypatch.setattr(
        "keras_bert_impl.serving.local_server.serve",
        lambda *models, **settings: seen.append(os.environ["TF_ENABLE_ONEDNN_OPTS"]),
    )
    assert main(["serve", str(small_export)]) == 0
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "1")  # whoever wants them has them
    assert main(["serve", str(small_export)]) == 0
    assert seen == ["0", "1"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_good_order(small_export, number):
    command = [sys.executable, "-c", _SERVE, str(small_export)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        ready = process.stdout.readline()
        assert ready.startswith("Ready: version 3 at http://127.0.0.1:")
        url = ready.split()[4]
        assert predict(url, ["abcd"])[0]["length"] == 4
        with ThreadPoolExecutor(2) as pool:
            pending = [pool.submit(predict, url, ["x" * 1000] * 20_000) for _ in range(2)]
            wait(pending, return_when=FIRST_COMPLETED)
            process.send_signal(number)
            assert all(len(future.result()) == 20_000 for future in pending)
        rest, errors = process.communicate(timeout=60)
        assert (process.returncode, rest.splitlines()[-1:]) == (0, ["Stopped."])
        assert "Traceback" not in errors
