import json
import socket

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.cluster import Cluster, find_cluster, own_number, place_of_run
from keras_bert_impl.training.configs import PretrainConfig
from keras_bert_impl.training.configs.addresses import split_address, split_addresses

TWO = "10.0.0.1:2222,10.0.0.2:2222"


def tf_config(cluster, **task):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def test_addresses_are_hosts_and_ports():
    assert split_addresses("a:1, [::1]:65535") == ("a:1", "[::1]:65535")
    assert split_address("[::1]:2222") == ("::1", 2222)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:1,a:1", r"`cluster` must have each address once\. Received: 'a:1' twice"),
        ("a:1", r"`cluster` must have the addresses of two machines or more.*Received: 'a:1'"),
        ("a:1,b:0", r"`cluster` must have ports from 1 to 65535\. Received: 'b:0'"),
        ("a:1,b:65536", r"ports from 1 to 65535\. Received: 'b:65536'"),
        ("a:1,b:x", r"ports from 1 to 65535\. Received: 'b:x'"),
        ("a:1,b", r"`cluster` must be a list of HOST:PORT.*Received: 'b'"),
        ("a:1,", r"list of HOST:PORT.*Received: ''"),
        ("a:1,::1:3", r"an IPv6 host in brackets\. Received: '::1:3'"),
        ("a:1,http://b:3", r"list of HOST:PORT.*Received: 'http://b:3'"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused_when_settings_are_made(text, message):
    with pytest.raises(InputError, match=message):
        PretrainConfig(data="data", run="run", cluster=text)


def test_without_settings_a_machine_is_alone():
    assert find_cluster(None, None, {}) is None


def test_a_worker_is_known_by_its_number():
    cluster = find_cluster(TWO, 1, {})
    assert cluster == Cluster(("10.0.0.1:2222", "10.0.0.2:2222"), 1)
    assert not cluster.is_chief
    assert cluster.name(0) == "worker 0 (10.0.0.1:2222)"


@pytest.mark.parametrize("worker", [-1, 2])
def test_a_number_outside_the_list_is_refused(worker):
    with pytest.raises(InputError, match=rf"`worker` must be from 0 to 1, a place in `cluster`.*worker={worker}"):
        find_cluster(TWO, worker, {})


def test_a_worker_finds_itself_by_the_only_address_of_its_own():
    # 203.0.113.0/24 is for documentation: no machine has such an address.
    assert own_number(("203.0.113.1:2222", "127.0.0.1:2222", "203.0.113.2:2222")) == 1


def test_a_port_in_use_does_not_hide_whose_address_it_is():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert own_number(("203.0.113.1:2222", f"127.0.0.1:{taken.getsockname()[1]}")) == 1


@pytest.mark.parametrize(
    ("addresses", "how_many"),
    [
        (("127.0.0.1:2221", "127.0.0.1:2222"), "2 of these addresses are its own"),
        (("203.0.113.1:2222", "203.0.113.2:2222"), "none of these addresses is its own"),
        (("a" * 64 + ".invalid:2222", "203.0.113.2:2222"), "none of these addresses is its own"),
        (("no.such.host.invalid:2222", "203.0.113.2:2222"), "none of these addresses is its own"),
    ],
)
def test_a_worker_that_cannot_tell_which_it_is_must_be_told(addresses, how_many):
    with pytest.raises(InputError, match=rf"`worker` must be given.*because {how_many}\. Received: cluster="):
        own_number(addresses)


def test_tf_config_describes_the_cluster_with_the_chief_first():
    cluster = {"worker": ["b:2", "c:3"], "chief": ["a:1"]}
    assert find_cluster(None, None, tf_config(cluster, type="worker", index=1)) == Cluster(("a:1", "b:2", "c:3"), 2)
    assert find_cluster(None, None, tf_config(cluster, type="chief", index=0)) == Cluster(("a:1", "b:2", "c:3"), 0)
    assert find_cluster(None, None, tf_config({"worker": ["a:1", "b:2"]}, type="worker", index="1")).number == 1


def test_tf_config_of_one_machine_is_none():
    assert find_cluster(None, None, tf_config({"chief": ["a:1"]}, type="chief", index=0)) is None
    assert find_cluster(None, None, {"TF_CONFIG": "{}"}) is None


def test_the_option_and_tf_config_may_both_say_the_same():
    environment = tf_config({"worker": TWO.split(",")}, type="worker", index=1)
    assert (
        find_cluster(TWO, None, environment) == find_cluster(TWO, 1, environment) == Cluster(tuple(TWO.split(",")), 1)
    )


@pytest.mark.parametrize(
    ("cluster", "worker", "message"),
    [
        ("a:1,b:2", None, r"`cluster` must be the same as TF_CONFIG.*'a:1,b:2', TF_CONFIG with '10\.0\.0\.1:2222,"),
        (TWO, 0, r"`worker` must be the same as TF_CONFIG.*Received: worker=0, TF_CONFIG with 1"),
    ],
)
def test_an_option_that_tf_config_contradicts_is_refused(cluster, worker, message):
    with pytest.raises(InputError, match=message):
        find_cluster(cluster, worker, tf_config({"worker": TWO.split(",")}, type="worker", index=1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"`TF_CONFIG` must be JSON with `cluster`.*Received: '{'"),
        ("[]", r"`TF_CONFIG` must be JSON with `cluster`"),
        ("[" * 100_000, r"`TF_CONFIG` must be JSON with `cluster`"),
        ('{"task": 5}', r"`TF_CONFIG` must be JSON with `cluster`.*a type and an index\. Received: '{\"task\": 5}'"),
        ('{"task": {"type": ["chief"]}}', r"`TF_CONFIG` must be JSON with `cluster`"),
        (
            '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": "\u00b2"}}',
            "a place in the list",
        ),
        ('{"cluster": {"worker": ["a:1", "b:2"], "ps": ["c:3"]}, "task": {"type": "worker", "index": 0}}', "'ps'"),
        ('{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "evaluator", "index": 0}}', "'evaluator'"),
        ('{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 2}}', "a place in the list.*2"),
        ('{"cluster": {"worker": ["a:1", "b:2"]}}', "a place in the list of its type.*type None"),
        ('{"cluster": {"chief": ["a:1", "b:2"]}, "task": {"type": "chief", "index": 0}}', "must have one chief"),
        ('{"cluster": {"worker": ["a:1", "b"]}, "task": {"type": "worker", "index": 0}}', "`TF_CONFIG`.*HOST:PORT"),
    ],
)
def test_a_tf_config_that_cannot_be_used_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        find_cluster(None, None, {"TF_CONFIG": text})


def test_only_the_chief_works_in_the_run_directory(tmp_path):
    addresses = tuple(TWO.split(","))
    for cluster in (None, Cluster(addresses, 0)):
        with place_of_run(str(tmp_path), cluster) as place:
            assert place == tmp_path
    with place_of_run(str(tmp_path), Cluster(addresses, 1)) as place:
        assert place != tmp_path
        assert place.is_dir()
    assert not place.exists()
