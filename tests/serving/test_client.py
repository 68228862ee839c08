"""The client answers the same over both transports, in time, and says in one way what went wrong."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from fake_serving import (
    VERSION,
    GrpcServer,
    RestServer,
    drip,
    hang_up,
    not_http,
    predict,
    refuse,
    rest_server,
    say,
)

from keras_bert_impl.errors import InputError
from keras_bert_impl.serving import client as client_module
from keras_bert_impl.serving.client import (
    Client,
    DataLoss,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    Metadata,
    NotFound,
    ResourceExhausted,
    ServingError,
    TensorSpec,
    Unavailable,
    VersionStatus,
)

TEXTS = ["", "a", "héllo", "今天", "💥💥", "x" * 40]


@pytest.fixture
def rest() -> Iterator[RestServer]:
    with rest_server() as server:
        yield server


@pytest.fixture(scope="module")
def grpc_server() -> Iterator[GrpcServer]:
    with GrpcServer() as server:
        yield server


@pytest.fixture
def grpc(grpc_server: GrpcServer) -> GrpcServer:
    grpc_server.failures.clear()
    grpc_server.requests.clear()
    return grpc_server


@pytest.fixture(params=["rest", "grpc"])
def server(request) -> RestServer | GrpcServer:
    return request.getfixturevalue(request.param)


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(client_module, "_FIRST_WAIT", 0.001)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_rows_are_the_same_over_both_transports(rest, grpc):
    with Client(rest.address) as one, Client(grpc.address) as other:
        rows, others = one.predict(TEXTS), other.predict(TEXTS)
    assert repr(rows) == repr(others)
    assert rows[2] == {
        "upper": "HÉLLO",
        "letters": ["h", "é", "l", "l", "o", *[""] * 35],
        "raw_bytes": "héllo".encode(),
        "length": 5,
        "tenths": [0.5, rows[2]["tenths"][1]],
        "exact": 5 / 3,
        "long": True,
    }
    assert [type(rows[1][name]) for name in ("length", "exact", "long")] == [int, float, bool]
    assert rows[1]["tenths"][0] == 0.10000000149011612


def test_a_single_output_has_its_name_and_inputs_have_their_types(server):
    row = {"token_ids": [1, 2, 3], "weights": [0.5, 1, 2], "kept": [True, True, False]}
    with Client(server.address) as client:
        assert client.predict([row, row], signature_name="ids") == [{"sum": 2.5}, {"sum": 2.5}]


def test_bytes_that_are_no_text_are_sent_as_they_are(server):
    with Client(server.address) as client:
        assert client.predict([b"\xff\x00", {"text": "a"}])[0]["raw_bytes"] == b"\xff\x00"


def test_long_lists_are_sent_in_parts_and_answered_in_order(server):
    with Client(server.address, max_batch=8) as client:
        answers = client.predict(str(i) * (i % 5) for i in range(50))
    assert [answer["upper"] for answer in answers] == [str(i) * (i % 5) for i in range(50)]
    assert len(server.requests) == 7


def test_no_rows_need_no_request(server):
    with Client(server.address) as client:
        assert client.predict([]) == []
    assert not server.requests


def test_threads_share_a_client(server):
    with Client(server.address) as client, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: client.predict(["x" * (i % 17)] * 3), range(100)))
    assert [[row["length"] for row in answer] for answer in answers] == [[i % 17] * 3 for i in range(100)]


def test_metadata_and_status_are_the_same_over_both_transports(rest, grpc):
    with Client(rest.address) as one, Client(grpc.address, version=VERSION) as other:
        assert one.metadata() == other.metadata()
        assert one.status() == other.status() == [VersionStatus(VERSION, "AVAILABLE", "OK", "")]
        assert isinstance(one.metadata(), Metadata) and one.metadata().version == VERSION
        assert one.metadata().signatures["ids"].inputs["weights"] == TensorSpec("float32", (None, None))


def test_a_version_that_is_not_there_is_not_found(server):
    with (
        Client(server.address, version=9) as client,
        pytest.raises(NotFound, match="Could not find version 9") as found,
    ):
        client.status()
    assert found.value.code == "NOT_FOUND"


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_again(rest, status):
    rest.behaviours = [refuse(status), hang_up, refuse(status)]
    with Client(rest.address) as client:
        assert client.predict(["abc"])[0]["length"] == 3
    assert len(rest.requests) == 4


def test_an_unavailable_server_is_asked_again_over_grpc(grpc):
    grpc.failures = [("UNAVAILABLE", "busy")] * 3
    with Client(grpc.address) as client:
        assert client.predict(["abc"])[0]["length"] == 3
    assert len(grpc.requests) == 4


def test_retries_have_an_end(rest, grpc):
    rest.behaviours = [refuse(503, "queue full")] * 9
    grpc.failures = [("UNAVAILABLE", "queue full")] * 9
    for server in (rest, grpc):
        with Client(server.address, retries=2) as client, pytest.raises(Unavailable, match=r"^queue full$") as error:
            client.predict(["a"])
        assert (error.value.code, len(server.requests)) == ("UNAVAILABLE", 3)
    assert error.value.status is None


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, InvalidArgument, "INVALID_ARGUMENT"),
        (404, NotFound, "NOT_FOUND"),
        (413, ResourceExhausted, "RESOURCE_EXHAUSTED"),
        (500, Internal, "INTERNAL"),
        (418, ServingError, "UNKNOWN"),
        (302, ServingError, "UNKNOWN"),
    ],
)
def test_other_refusals_are_not_asked_again(rest, status, kind, code):
    rest.behaviours = [refuse(status, "these words")]
    with Client(rest.address) as client, pytest.raises(ServingError, match=r"^these words$") as error:
        client.predict(["a"])
    assert (type(error.value), error.value.code, error.value.status) == (kind, code, status)
    assert len(rest.requests) == 1


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INVALID_ARGUMENT", InvalidArgument),
        ("NOT_FOUND", NotFound),
        ("RESOURCE_EXHAUSTED", ResourceExhausted),
        ("INTERNAL", Internal),
        ("OUT_OF_RANGE", ServingError),
    ],
)
def test_other_refusals_are_not_asked_again_over_grpc(grpc, code, kind):
    grpc.failures = [(code, "these words")]
    with Client(grpc.address) as client, pytest.raises(ServingError, match=r"^these words$") as error:
        client.predict(["a"])
    assert (type(error.value), error.value.code, error.value.status) == (kind, code, None)
    assert len(grpc.requests) == 1


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        (say(b'{"outputs": {"up', length=100), "The answer of 127.0.0.1:.* was cut off"),
        (say(b"<html>hello</html>"), "What answers is not TensorFlow Serving: "),
        (say(b"[1]"), "its answer is no JSON object"),
        (say(b'{"predictions": [1]}'), "What answers is not TensorFlow Serving: KeyError: 'outputs'"),
        (say(b'{"outputs": {"upper": ["A"]}}'), "KeyError: 'exact'"),
        (say(b"[" * 100_000), "What answers is not TensorFlow Serving: "),
        (not_http, "What answers at 127.0.0.1:.* is no HTTP server"),
    ],
)
def test_answers_that_are_none_are_data_loss(rest, behaviour, message):
    rest.behaviours = [behaviour]
    with Client(rest.address) as client, pytest.raises(DataLoss, match=message):
        client.predict(["a"])
    assert len(rest.requests) == 1


@pytest.mark.parametrize(
    "change", [{"length": [1, 2]}, {"length": ["1"]}, {"length": 1}, {"raw_bytes": [{"b64": "%"}]}]
)
def test_outputs_of_another_size_or_type_are_data_loss(rest, change):
    whole = {
        "upper": ["A"],
        "letters": [["a"]],
        "raw_bytes": [{"b64": "YQ=="}],
        "length": [1],
        "tenths": [[0.1, 0]],
        "exact": [1],
        "long": [False],
    }
    rest.behaviours = [
        say(json.dumps({"outputs": whole}).encode()),
        say(json.dumps({"outputs": whole | change}).encode()),
    ]
    with Client(rest.address) as client:
        assert client.predict(["a"])[0]["raw_bytes"] == b"a"
        with pytest.raises(DataLoss):
            client.predict(["a"])


@pytest.mark.parametrize("behaviour", [drip, lambda handler: time.sleep(1)])
def test_the_deadline_holds_for_the_whole_answer(rest, behaviour):
    rest.behaviours = [behaviour]
    begin = time.monotonic()
    with Client(rest.address) as client, pytest.raises(DeadlineExceeded, match=r"No whole answer within 0.2 seconds"):
        client.predict(["a"], timeout=0.2)
    assert time.monotonic() - begin < 0.6


def test_the_deadline_holds_over_grpc(grpc):
    grpc.failures = [("DEADLINE_EXCEEDED", "slow")]
    with Client(grpc.address, timeout=0.3) as client:
        client.metadata()
        begin = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"No whole answer within 0.3 seconds"):
            client.predict(["a"])
    assert time.monotonic() - begin < 0.8


def test_the_deadline_holds_for_retries_and_parts(rest, monkeypatch):
    monkeypatch.setattr(client_module, "_FIRST_WAIT", 0.05)
    rest.behaviours = [refuse(503)] * 1000
    begin = time.monotonic()
    with Client(rest.address, retries=1000, timeout=0.3) as client, pytest.raises(ServingError):
        client.predict(["a"])
    slow = [lambda handler: (time.sleep(0.1), predict(handler))] * 20
    rest.behaviours = list(slow)
    with Client(rest.address, max_batch=1, timeout=0.3) as client, pytest.raises(DeadlineExceeded):
        client.predict(["a"] * 20)
    assert time.monotonic() - begin < 1.5


def test_a_server_that_comes_back_is_found(monkeypatch):
    monkeypatch.setattr(client_module, "_FIRST_WAIT", 0.05)
    port = closed_port()
    is_answered = threading.Event()

    def come_back() -> None:
        time.sleep(0.1)
        with rest_server(port):
            is_answered.wait(10)

    thread = threading.Thread(target=come_back)
    thread.start()
    with Client(f"http://127.0.0.1:{port}", retries=20) as client:
        assert client.predict(["abc"])[0]["length"] == 3
    is_answered.set()
    thread.join()


def test_a_connection_that_the_server_closed_is_opened_anew(rest):
    def answer_and_close(handler):
        predict(handler)
        handler.close_connection = True

    rest.behaviours = [answer_and_close] * 3
    with Client(rest.address, retries=0) as client:
        assert [client.predict(["abc"])[0]["length"] for _ in range(4)] == [3] * 4


@pytest.fixture
def certificate(tmp_path):
    """A certificate of 127.0.0.1, and the file of its key."""
    if not (openssl := shutil.which("openssl")):
        pytest.skip("needs openssl")
    file, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    options = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    made = [openssl, "req", "-x509", *options, *names, "-keyout", str(key), "-out", str(file)]
    subprocess.run(made, check=True, capture_output=True)
    return file, key


def test_https_is_rest_over_tls(certificate, monkeypatch):
    file, key = certificate
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(file, key)
    with rest_server(tls=tls) as server:
        with Client(server.address) as client, pytest.raises(ServingError) as refused:
            client.predict(["abc"])
        assert str(refused.value).startswith(f"The certificate of {server.address[8:]} cannot be trusted: self")
        assert refused.value.code == "UNAUTHENTICATED"
        assert not server.requests
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with Client(server.address, max_batch=2) as client:
            assert [row["length"] for row in client.predict(["abc", "", "x" * 3_000_000])] == [3, 0, 3_000_000]
            assert client.status() == [VersionStatus(VERSION, "AVAILABLE", "OK", "")]
            server.behaviours = [drip]
            begin = time.monotonic()
            with pytest.raises(DeadlineExceeded, match=r"No whole answer within 0.3 seconds"):
                client.predict(["a"], timeout=0.3)
            assert time.monotonic() - begin < 0.8


def test_nobody_at_an_address_is_unavailable():
    for address, message in (
        (f"http://127.0.0.1:{closed_port()}", r"^No server answers at 127.0.0.1:\d+: Connection refused$"),
        (f"grpc://127.0.0.1:{closed_port()}", "Connection refused"),
        ("http://no.such.host.invalid", r"^No server answers at no.such.host.invalid:8501: "),
    ):
        with Client(address, retries=1) as client, pytest.raises(Unavailable, match=message):
            client.status()


def test_a_refusal_that_comes_before_the_body_is_read_is_heard():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse_at_once() -> None:
            for answer in (
                _metadata_answer(),
                b"HTTP/1.1 413 Too Large\r\nContent-Length: 15\r\n\r\n" + b'{"error":"big"}',
            ):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1000)
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                    time.sleep(0.2)

        thread = threading.Thread(target=refuse_at_once)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(address, retries=0) as client, pytest.raises(ResourceExhausted, match=r"^big$"):
            client.predict(["x" * 8_000_000])
        thread.join()


def _metadata_answer() -> bytes:
    tensor = {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": "-1"}], "unknown_rank": False}}
    signatures = {"serving_default": {"inputs": {"text": tensor}, "outputs": {"text": tensor}}}
    document = {
        "model_spec": {"version": "1"},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def test_signatures_are_asked_for_once_and_again_after_a_refusal(rest, monkeypatch):
    with Client(rest.address) as client:
        asked = []
        monkeypatch.setattr(client, "metadata", lambda **o: asked.append(1) or Client.metadata(client, **o))
        client.predict(["a"])
        client.predict(["a"])
        assert len(asked) == 1
        rest.behaviours = [refuse(400)]
        with pytest.raises(InvalidArgument):
            client.predict(["a"])
        client.predict(["a"])
        assert len(asked) == 2


@pytest.mark.parametrize(
    ("rows", "signature_name", "message"),
    [
        ("text", "serving_default", "`rows` must be a list of rows, not a single one. Received: 'text'"),
        ({"text": "a"}, "serving_default", "`rows` must be a list of rows, not a single one. Received: {'text'"),
        (["a"], "q", "`signature_name` must be one of ids, serving_default. Received: signature_name='q'"),
        (["a"], "__saved_model_init_op", "`signature_name` must be one of ids, serving_default. Received: "),
        ([5], "serving_default", "`rows` must have texts or bytes for text. Received: 5 in row 0"),
        (["a", None], "serving_default", "`rows` must have texts or bytes for text. Received: None in row 1"),
        (["a"] * 40 + [None], "serving_default", "for text. Received: None in row 40"),
        ([["a", "b"]], "serving_default", "`rows` must have single values for text. Received: lists of values"),
        ([{"texts": "a"}], "serving_default", "signature's inputs: text. Received: texts in row 0"),
        (["a\ud800"], "serving_default", "`rows` must have texts of whole characters for text. Received: 'a\\\\ud800'"),
        (["a", "\ud800"], "serving_default", "whole characters for text. Received: '.*', with half of one, in row 1"),
        (["a"], "ids", "`rows` must be dictionaries, since the signature has the inputs kept, token_ids, weights. Rec"),
        ([{"token_ids": [1]}], "ids", "exactly the signature's inputs: kept, token_ids, weights. Received: token_ids"),
        (
            [([1, 2], [1, 1]), ([1], [1])],
            "ids",
            "`rows` must have lists of one length for kept, since they are sent together; nothing is filled up here",
        ),
        ([([1.5], [1])], "ids", "`rows` must have whole numbers for token_ids. Received: "),
        ([(["1"], [1])], "ids", "`rows` must have whole numbers for token_ids. Received: "),
        ([([1], [1]), (["1"], [1])], "ids", r"whole numbers for token_ids. Received: \['1'\] in row 1"),
        ([([1], [1]), ([2**40], [1])], "ids", "for token_ids. Received: 1 to 1099511627776, the first in row 1"),
        ([([2**40], [1])], "ids", "numbers from -2147483648 to 2147483647 for token_ids. Received: 1099511627776 to"),
        ([([1], ["1"])], "ids", "`rows` must have numbers for weights. Received: "),
        ([(1, [1])], "ids", "`rows` must have lists of values for token_ids. Received: single values"),
    ],
)
def test_rows_that_do_not_fit_are_refused_before_anything_is_sent(rest, rows, signature_name, message):
    if signature_name == "ids":
        rows = [
            {"token_ids": row[0], "weights": row[1], "kept": [True] * len(row[1])} if isinstance(row, tuple) else row
            for row in rows
        ]
    with Client(rest.address) as client, pytest.raises(InputError, match=message):
        client.predict(rows, signature_name=signature_name)
    assert not rest.requests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"address": "localhost:8501"},
            "`address` must have the form http://HOST:PORT, https://HOST:PORT or grpc://HOST:PORT. Received: ",
        ),
        ({"address": "ftp://localhost"}, "`address` must have the form"),
        ({"address": "ftp://localhost:21"}, "`address` must have the form"),
        ({"address": "//localhost:8501"}, "`address` must have the form"),
        ({"address": "https://localhost/v1"}, "`address` must have the form"),
        ({"address": "http://localhost/v1/models/bert"}, "`address` must have the form"),
        ({"address": "http://localhost:port"}, "`address` must have the form"),
        ({"address": "http://me@localhost"}, "`address` must have the form"),
        ({"address": None}, "`address` must have the form"),
        ({"model": "a/b"}, "`model` must be a word without / and :. Received: model='a/b'"),
        ({"version": -1}, "`version` must be a whole number, at least 0. Received: version=-1"),
        ({"max_batch": 0}, "`max_batch` must be a whole number, at least 1. Received: max_batch=0"),
        ({"retries": True}, "`retries` must be a whole number, at least 0. Received: retries=True"),
        ({"timeout": 0}, "`timeout` must be a number of seconds above 0. Received: timeout=0"),
    ],
)
def test_each_wrong_option_has_its_sentence(options, message):
    with pytest.raises(InputError, match=message):
        Client(**{"address": "http://localhost", **options})


def test_the_missing_extra_is_named(monkeypatch):
    import importlib.util

    there = importlib.util.find_spec
    for name, message in (
        ("tenacity", r"needs the extra `serving`: pip install 'keras-bert-impl\[serving\]'. Missing: tenacity"),
        ("grpc", "An `address` that begins with grpc:// needs the extra `serving`: .*. Missing: grpc"),
    ):
        monkeypatch.setattr(importlib.util, "find_spec", lambda x, name=name: None if x == name else there(x))
        with pytest.raises(InputError, match=message):
            Client("grpc://localhost")


def test_the_client_opens_neither_tensorflow_nor_grpc_before_it_needs_them():
    code = (
        "import sys; sys.modules['keras_bert_console'] = sys\n"
        "from keras_bert_impl.serving.client import Client; Client('http://localhost')\n"
        "print([m for m in ('tensorflow', 'keras', 'grpc', 'tenacity') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_local_server_answers_the_client(small_server):
    address, _, name = small_server.partition("/v1/models/")
    with Client(address, model=name) as client:
        answers = client.predict(["héy", "abcd"])
        assert [answer["upper"] for answer in answers] == ["HéY", "ABCD"]
        assert answers[0]["raw_bytes"] == "héy".encode()
        row = {"token_ids": [1, 2], "segment_ids": [0, 1]}
        [answer] = client.predict([row], signature_name="pairs")
        assert answer["value"] == pytest.approx([0.4, 1.6])
        with pytest.raises(InvalidArgument, match=r"indices\[0,0\] = 9 is not in \[0, 4\)"):
            client.predict([{"token_ids": [9], "segment_ids": [0]}], signature_name="pairs")
        assert client.status() == [VersionStatus(3, "AVAILABLE", "OK", "")]
        with pytest.raises(InputError, match=r"must be one that answers questions, .* model='small', with text"):
            client.answer_long_context("?", "a context")
        with pytest.raises(InputError, match=r"must be one of decimals, pairs, serving_default\. Received"):
            client.predict(["a"], signature_name="none")
    with Client(address, model="zz") as client, pytest.raises(NotFound, match=r"Latest\(zz\)"):
        client.predict(["a"])
