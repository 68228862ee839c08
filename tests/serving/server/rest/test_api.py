"""What goes over HTTP beside the protocol's values: versions, limits, codes, health and metrics; and how it ends."""

import contextlib
import http.client
import json
import socket
import threading

import anyio
import httpx
import pytest
from fake_servables import FakeVersions, wait_until

from keras_bert_impl.serving.server.batching import Batching
from keras_bert_impl.serving.server.models.store import ModelStore
from keras_bert_impl.serving.server.monitoring import Monitor
from keras_bert_impl.serving.server.predictor import Predictor
from keras_bert_impl.serving.server.request_error import RequestError
from keras_bert_impl.serving.server.rest.api import RestApi
from keras_bert_impl.serving.server.rest.http_server import HttpServer


class Server:
    """Everything but TensorFlow and the command line, in a thread."""

    def __init__(self, folder, seconds_to_finish=20, **options):
        self.versions = FakeVersions(folder / "model")
        self.versions.add(2)
        self.versions.add(5)
        self.versions.add(6, "torn")
        self.versions.before_run = self.before_run
        self.hold = None
        self.in_run = threading.Semaphore(0)
        self.records = []
        self.store = ModelStore({"m": self.versions.directory}, load=self.versions.load, poll_seconds=0.01)
        self.store.start()
        monitor = Monitor(self.store)
        self.batching = Batching(on_run=monitor.ran)
        predictor = Predictor(self.store, self.batching, monitor, log=self.records.append, max_request_rows=3)
        self.api = RestApi(
            predictor, self.store, monitor=monitor, max_body_bytes=1000, pages={"/page": page}, **options
        )
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self.http = HttpServer(self.api, listener, seconds_to_finish=seconds_to_finish)
        self.http.start()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False, timeout=20)

    def before_run(self, inputs):
        self.in_run.release()
        if self.hold is not None:
            assert self.hold.wait(20)

    def get(self, path):
        return self.client.get(path)

    def ask(self, *texts, path="/v1/models/m"):
        return self.client.post(f"{path}:predict", json={"instances": list(texts)})

    def close(self):
        self.client.close()
        self.http.stop()
        self.batching.close()
        self.store.close()


async def page(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with contextlib.closing(Server(tmp_path_factory.mktemp("rest"))) as server:
        yield server


def test_the_status_has_all_versions_the_highest_first(server):
    torn = {
        "version": "6",
        "state": "END",
        "status": {"error_code": "DATA_LOSS", "error_message": "It is torn"},
    }
    served = {"version": "5", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert server.get("/v1/models/m").json() == {"model_version_status": [torn, served]}
    assert server.get("/v1/models/m/versions/6").json() == {"model_version_status": [torn]}


def test_the_version_that_is_served_answers_by_its_number_too(server):
    for path in ("/v1/models/m", "/v1/models/m/versions/5", f"/v1/models/m/versions/{'0' * 30}5"):
        assert server.ask("a", path=path).json()["predictions"] == [{"length": 1, "upper": "A", "version": 5}]
    for path, wanted in (("m/versions/2", "Specific(m, 2)"), ("m/versions/6", "Specific(m, 6)"), ("zz", "Latest(zz)")):
        answer = server.ask("a", path=f"/v1/models/{path}")
        assert (answer.status_code, answer.json()) == (404, {"error": f"Servable not found for request: {wanted}"})


def test_metadata_names_the_version_that_is_served(server):
    assert server.get("/v1/models/m/metadata").json()["model_spec"]["version"] == "5"
    assert server.get("/v1/models/m/versions/5/metadata").status_code == 200
    assert server.get("/v1/models/m/labels/stable").json() == {"error": "Unrecognized servable version label: stable"}


def test_limits_have_their_status_and_text(server):
    answer = server.ask(*"abcd")
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "Task size 4 is larger than maximum input batch size 3",
    )
    answer = server.ask("x" * 1000)
    assert (answer.status_code, answer.json()["error"]) == (413, "Request body is larger than 1000 bytes")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("INVALID_ARGUMENT", 400),
        ("FAILED_PRECONDITION", 400),
        ("OUT_OF_RANGE", 400),
        ("NOT_FOUND", 404),
        ("RESOURCE_EXHAUSTED", 429),
        ("UNIMPLEMENTED", 501),
        ("UNAVAILABLE", 503),
        ("DEADLINE_EXCEEDED", 504),
        ("INTERNAL", 500),
        ("DATA_LOSS", 500),
    ],
)
def test_codes_of_the_model_become_those_of_http(server, code, status):
    def refuse(inputs):
        raise RequestError("as it says", code)

    (servable,) = [servable for servable in server.versions.loaded if servable.version == 5]
    before, servable._before_run = servable._before_run, refuse
    try:
        answer = server.ask("a")
    finally:
        servable._before_run = before
    assert (answer.status_code, answer.json()) == (status, {"error": "as it says"})
    assert server.records[-1].code == code


def test_an_error_of_ours_tells_nothing_of_our_insides(server):
    (servable,) = [servable for servable in server.versions.loaded if servable.version == 5]
    before, servable._before_run = servable._before_run, lambda inputs: 1 / 0
    try:
        answer = server.ask("a")
    finally:
        servable._before_run = before
    assert (answer.status_code, answer.json()) == (500, {"error": "Internal error"})


def test_health_metrics_and_pages(server):
    assert server.get("/healthz").json() == {"live": True}
    assert server.get("/readyz").json() == {"ready": True}
    server.ask("a")
    metrics = server.get("/monitoring/prometheus/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert ':tensorflow:serving:request_count{model_name="m",status="OK"}' in metrics.text
    assert server.get("/page/of/mine").text == "/page/of/mine"
    assert server.get("/pages").status_code == 400


def test_each_request_is_told_of(server):
    server.get("/v1/models/m")
    server.get("/v1/models/m/metadata")
    server.ask("a", "b")
    server.get("/v1/nonsense")
    told = [(r.protocol, r.method, r.model, r.version, r.rows, r.code) for r in server.records[-4:]]
    assert told == [
        ("REST", "GetModelStatus", "m", None, None, "OK"),
        ("REST", "GetModelMetadata", "m", 5, None, "OK"),
        ("REST", "Predict", "m", 5, 2, "OK"),
        ("REST", "Malformed", "", None, None, "INVALID_ARGUMENT"),
    ]


def test_a_client_that_goes_away_while_it_asks_is_told_of_as_cancelled(server):
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
    wait_until(lambda: server.records[-1].code == "CANCELLED")


def test_clients_that_stall_in_a_body_do_not_keep_the_places_of_others(tmp_path):
    head = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"
    with contextlib.closing(Server(tmp_path, max_requests=2, silent_seconds=0.5)) as server:
        stalled = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(2)]
        for connection in stalled:
            connection.sendall(head)
        wait_until(lambda: server.api.in_work == 2)
        assert server.ask("a").status_code == 503
        for connection in stalled:
            with contextlib.closing(connection):
                answer = http.client.HTTPResponse(connection, method="POST")
                answer.begin()
                assert answer.status == 408
                assert json.loads(answer.read()) == {"error": "Nothing of the request body came for 0.5 seconds"}
        wait_until(lambda: server.api.in_work == 0)
        assert server.ask("a").status_code == 200


def test_what_a_client_that_went_away_asked_for_is_not_run(tmp_path):
    body = json.dumps({"instances": ["left"]}).encode()
    head = f"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with contextlib.closing(Server(tmp_path)) as server:
        server.hold = threading.Event()
        # As many as are run at once, so that the next one waits.
        askers = [threading.Thread(target=server.ask, args=("kept",)) for _ in server.batching._threads]
        for asker in askers:
            asker.start()
            assert server.in_run.acquire(timeout=20)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head + body)
            wait_until(lambda: server.batching._waiting)
        wait_until(lambda: not server.batching._waiting[0].wanted())
        server.hold.set()
        wait_until(lambda: len(server.records) == len(askers) + 1)
        for asker in askers:
            asker.join(20)
        assert sorted(record.code for record in server.records) == ["CANCELLED", *["OK"] * len(askers)]
        (servable,) = server.versions.loaded
        assert servable.runs == [{"text": [b"kept"]}] * len(askers)


def test_without_a_version_to_serve_it_is_not_ready(tmp_path):
    with contextlib.closing(Server(tmp_path)) as server:
        server.versions.directory.rename(tmp_path / "away")
        server.versions.directory.mkdir()
        wait_until(lambda: server.get("/readyz").status_code == 503)
        assert server.get("/readyz").json() == {"ready": False}
        assert server.get("/healthz").status_code == 200
        assert server.ask("a").status_code == 404


def test_more_requests_than_can_wait_are_refused(tmp_path):
    with contextlib.closing(Server(tmp_path, max_requests=2)) as server:
        server.hold = threading.Event()
        answers = []
        askers = [threading.Thread(target=lambda: answers.append(server.ask("a").status_code)) for _ in range(2)]
        for asker in askers:
            asker.start()
        wait_until(lambda: server.api.in_work == 2)
        answer = server.ask("a")
        assert (answer.status_code, "queue to which this task was submitted is full" in answer.text) == (503, True)
        assert server.get("/healthz").status_code == 200
        server.hold.set()
        for asker in askers:
            asker.join(20)
        assert answers == [200, 200]


def test_stopping_answers_what_was_accepted_and_what_comes_on_open_connections(tmp_path):
    server = Server(tmp_path)
    body = json.dumps({"instances": ["a"]})
    connections = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=20) for _ in range(4)]
    for connection in connections:
        connection.request("POST", "/v1/models/m:predict", body)
        assert connection.getresponse().read()
        server.in_run.acquire()
    server.hold = threading.Event()
    for connection in connections[:2]:
        connection.request("POST", "/v1/models/m:predict", body)
    assert server.in_run.acquire(timeout=20)
    closer = threading.Thread(target=server.close)
    closer.start()
    wait_until(lambda: server.api.draining)
    connections[2].request("POST", "/v1/models/m:predict", body)
    wait_until(lambda: server.api.in_work == 3)
    server.hold.set()
    for connection in connections[:3]:
        response = connection.getresponse()
        assert (response.status, response.headers["connection"]) == (200, "close")
        assert json.loads(response.read())["predictions"][0]["length"] == 1
    closer.join(20)
    assert not closer.is_alive()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port))


def test_a_request_that_takes_longer_than_a_stopping_server_waits_may_be_asked_of_another(tmp_path):
    server = Server(tmp_path, seconds_to_finish=1)
    server.hold = threading.Event()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", "/v1/models/m:predict", json.dumps({"instances": ["a"]}))
    assert server.in_run.acquire(timeout=20)
    closer = threading.Thread(target=server.http.stop)
    closer.start()
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())) == (503, {"error": "The server is stopping"})
    server.hold.set()
    closer.join(20)
    assert not closer.is_alive() and [record.code for record in server.records] == ["UNAVAILABLE"]
    server.close()


def test_other_things_than_http_are_left_alone(server):
    async def never(*message):
        raise AssertionError

    anyio.run(server.api, {"type": "websocket"}, never, never)
