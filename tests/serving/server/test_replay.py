"""A version has answered its warm-up requests and examples before it is served."""

import json

import numpy as np
import pytest
from fake_servables import FakeServable, texts

from keras_bert_impl.serving import warm_up
from keras_bert_impl.serving.server.models.load_error import LoadError
from keras_bert_impl.serving.server.replay import replay


@pytest.fixture
def version(tmp_path):
    """A version directory whose description has an example for each of two signatures."""
    extra = tmp_path / "1" / "assets.extra"
    extra.mkdir(parents=True)
    examples = {
        "serving_default": {"instances": ["an example"]},
        "total": {"signature_name": "total", "inputs": {"x": [1.0]}},
    }
    described = {"signatures": {name: {"example": {"request": request}} for name, request in examples.items()}}
    (extra / "signature.json").write_text(json.dumps(described))
    return tmp_path / "1"


def test_the_examples_are_run(version):
    servable = FakeServable()
    replay(servable, version)
    assert servable.runs == [{"text": [b"an example"]}, {"x": [1.0]}]


def test_warm_up_requests_take_the_place_of_their_signatures_example(version):
    ids = np.ones((2, 3), np.int32)
    requests = [
        warm_up.Request("serving_default", texts("one", "two"), ("length",)),
        warm_up.Request("serving_default", texts("three")),
        warm_up.Request("sums", {"token_ids": ids, "segment_ids": ids}),
    ]
    warm_up.write(version, "m", requests)
    servable = FakeServable()
    replay(servable, version)
    assert servable.runs[:2] == [{"text": [b"one", b"two"]}, {"text": [b"three"]}]
    assert servable.runs[2].keys() == {"token_ids", "segment_ids"}
    assert servable.runs[3:] == [{"x": [1.0]}]


def test_a_version_without_either_is_loaded_as_it_is(tmp_path):
    servable = FakeServable()
    replay(servable, tmp_path)
    assert servable.runs == []


@pytest.mark.parametrize(
    "request_",
    [
        warm_up.Request("nope", texts("a")),
        warm_up.Request("serving_default", texts("bad")),
        warm_up.Request("serving_default", {"texts": texts("a")["text"]}),
    ],
)
def test_a_version_that_does_not_answer_its_warm_up_requests_is_not_loaded(version, request_):
    warm_up.write(version, "m", [request_])
    with pytest.raises(LoadError, match=r"`export_dir` must hold a whole export; export it anew. Received: ") as error:
        replay(FakeServable(), version)
    assert error.value.code == "FAILED_PRECONDITION"
    reason = "The export is not whole: it has a tf_serving_warmup_requests whose requests it does not answer"
    assert error.value.reason == reason


def test_a_damaged_warm_up_file_is_told(version):
    (version / warm_up.FILE).write_bytes(b"not a record")
    with pytest.raises(LoadError, match="tf_serving_warmup_requests', whose requests it does not answer"):
        replay(FakeServable(), version)


@pytest.mark.parametrize("request_", [{"instances": ["bad"]}, {"instances": [1]}, {}])
def test_a_version_that_does_not_answer_its_examples_is_not_loaded(version, request_):
    described = {"signatures": {"serving_default": {"example": {"request": request_}}}}
    (version / "assets.extra" / "signature.json").write_text(json.dumps(described))
    with pytest.raises(LoadError, match=r"signature.json', which does not describe its signatures"):
        replay(FakeServable(), version)
