"""Counts of the server in Prometheus' text form, by TensorFlow Serving's names where it has them."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, exposition
from prometheus_client.core import GaugeMetricFamily, Metric

from .models.store import ModelStore
from .request_record import RequestRecord

# 10 microseconds to 5 minutes, as fine as a factor of 1.8.
_MICROSECONDS = [10 * 1.8**i for i in range(30)]
_ROWS = [2**i for i in range(13)]
_REQUESTS = ":tensorflow:serving:request_count"


class Monitor:
    """Counts requests and batches of one server.

    Args:
        store: whose models are counted by name, and whose versions are told of.
    """

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self, store: ModelStore) -> None:
        self._models = frozenset(store.names)
        self._registry = CollectorRegistry()
        self._requests = Counter(_REQUESTS, "Requests.", ["model_name", "status"], registry=None)
        self._latency = Histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from the first to the last step of a request.",
            ["model_name", "API", "entrypoint"],
            buckets=_MICROSECONDS,
            registry=None,
        )
        self._batch_rows = Histogram("keras_bert_batch_rows", "Rows of a run.", buckets=_ROWS, registry=None)
        self._batch_requests = Histogram(
            "keras_bert_batch_requests", "Requests that were run together.", buckets=_ROWS, registry=None
        )
        for counted in (self._requests, self._latency, self._batch_rows, self._batch_requests):
            self._registry.register(_AsTheRealServer(counted))
        self._registry.register(_Versions(store))

    def answered(self, record: RequestRecord) -> None:
        """Counts a request. Names of models that are not there are counted as one, lest anybody fill the memory."""
        model = record.model if record.model in self._models else ""
        self._requests.labels(model, record.code).inc()
        if record.code == "OK":
            self._latency.labels(model, record.method, record.protocol).observe(record.seconds * 1e6)

    def ran(self, rows: int, requests: int) -> None:
        """Counts a run of the model."""
        self._batch_rows.observe(rows)
        self._batch_requests.observe(requests)

    def text(self) -> bytes:
        """Returns all counts."""
        text = exposition.generate_latest(self._registry)
        # By its type the library would end the counter's name in `_total`; the real server's has no such end.
        return text.replace(f"# TYPE {_REQUESTS} untyped".encode(), f"# TYPE {_REQUESTS} counter".encode())


class _AsTheRealServer:
    """Names as TensorFlow Serving has them: the library would end a counter's name in `_total`."""

    def __init__(self, counted: Counter | Histogram) -> None:
        self._counted = counted

    def collect(self) -> Iterator[Metric]:
        for metric in self._counted.collect():
            counts = metric.type == "counter"
            shown = Metric(metric.name, metric.documentation, "unknown" if counts else metric.type)
            for sample in metric.samples:
                if not sample.name.endswith("_created"):
                    name = metric.name if counts else sample.name
                    shown.add_sample(name, sample.labels, sample.value)
            yield shown


class _Versions:
    def __init__(self, store: ModelStore) -> None:
        self._store = store

    def collect(self) -> Iterable[Metric]:
        versions = GaugeMetricFamily(
            "keras_bert_version_state",
            "1 for the state that a version is in.",
            labels=["model_name", "version", "state"],
        )
        for name in self._store.names:
            for known in self._store.known(name):
                versions.add_metric([name, str(known.version), known.state], 1)
        return [versions]
