"""How a server is set up: limits of each setting, models by their names, the command's options."""

import dataclasses

import pytest

from keras_bert_impl.cli import build_parser
from keras_bert_impl.errors import InputError
from keras_bert_impl.serving.local_server import named_exports
from keras_bert_impl.serving.server.settings import ServerSettings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_name": "a:b"}, "`model_name` must be a word without / and :. Received: model_name='a:b'"),
        ({"model_name": ""}, "`model_name` must be a word without / and :. Received: model_name=''"),
        ({"rest_port": -1}, "`rest_port` must be at least 0 and at most 65535. Received: rest_port=-1"),
        ({"grpc_port": 65536}, "`grpc_port` must be at least 0 and at most 65535. Received: grpc_port=65536"),
        (
            {"rest_port": None, "grpc_port": None},
            "`rest_port` or `grpc_port` must be given: the server would have none",
        ),
        ({"rest_port": 8500}, "`grpc_port` must not be `rest_port`. Received: 8500 for both"),
        ({"max_request_rows": 0}, "`max_request_rows` must be at least 1. Received: max_request_rows=0"),
        ({"max_batch_rows": 0}, "`max_batch_rows` must be at least 1. Received: max_batch_rows=0"),
        ({"max_waiting": 0}, "`max_waiting` must be at least 1. Received: max_waiting=0"),
        ({"max_body_mb": 0}, "`max_body_mb` must be more than 0 and at most 2,047. Received: max_body_mb=0"),
        ({"max_body_mb": 1e300}, "`max_body_mb` must be more than 0 and at most 2,047. Received: max_body_mb=1e+300"),
        ({"poll_seconds": float("nan")}, "`poll_seconds` must be more than 0 and at most 86,400. Received: poll_"),
        ({"poll_seconds": 1e300}, "`poll_seconds` must be more than 0 and at most 86,400. Received: poll_seconds=1e"),
        (
            {"batch_timeout_ms": -1},
            "`batch_timeout_ms` must be at least 0 and at most 60,000. Received: batch_timeout_ms=-1",
        ),
    ],
)
def test_each_wrong_setting_has_its_sentence(settings, message):
    with pytest.raises(InputError) as error:
        ServerSettings(**settings)
    assert str(error.value).startswith(message)


def test_free_ports_may_be_asked_for_on_both_sides():
    assert ServerSettings(rest_port=0, grpc_port=0).max_body_bytes == 32 * 1024 * 1024


def test_models_are_told_apart_by_their_names(tmp_path):
    odd = tmp_path / "a=b"
    odd.mkdir()
    assert named_exports(["dir", "films=exports/films"], "bert") == {"bert": "dir", "films": "exports/films"}
    assert named_exports([str(odd)], "bert") == {"bert": str(odd)}
    assert named_exports([f"x={odd}"], "bert") == {"x": str(odd)}
    message = "each model by a name of its own. Received: 'one' and 'two', both for 'bert'"
    with pytest.raises(InputError, match=message):
        named_exports(["one", "two"], "bert")


def test_the_command_has_an_option_for_each_setting_with_its_default():
    options = build_parser().parse_args(["serve", "dir"]).serve
    for field in dataclasses.fields(ServerSettings):
        assert options[field.name] == field.default, field.name
