import subprocess
import sys

import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.training import distribution
from keras_bert_impl.training.batches import BatchPart
from keras_bert_impl.training.cluster import Cluster
from keras_bert_impl.training.distribution import batches_for, make_strategy, resolve_replicas


def test_one_replica_needs_no_strategy():
    assert make_strategy(1) is tf.distribute.get_strategy()


def test_default_without_gpu_is_one_replica():
    assert make_strategy(None).num_replicas_in_sync == 1


def test_replicas_on_a_cpu_are_logical_devices():
    strategy = make_strategy(2)
    assert strategy.num_replicas_in_sync == 2
    assert [device.split("/")[-1] for device in strategy.extended.worker_devices] == ["device:CPU:0", "device:CPU:1"]


def test_a_process_has_one_strategy():
    assert make_strategy(2) is make_strategy(2)


def test_more_replicas_after_tensorflow_has_started_are_refused_with_the_reason():
    tf.constant(1)
    with pytest.raises(InputError, match=r"`replicas` on a CPU needs a process in which.*replicas=5, with 4 CPU"):
        make_strategy(5)


def test_more_replicas_than_gpus_are_refused(monkeypatch):
    monkeypatch.setattr(distribution.tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    with pytest.raises(InputError, match=r"`replicas` must be at most the number of GPUs, 1\. Received: replicas=2"):
        make_strategy(2)


def devices(monkeypatch, **counts):
    monkeypatch.setattr(distribution.tf.config, "list_physical_devices", lambda kind: range(counts.get(kind, 0)))


def test_several_machines_have_a_replica_on_each_gpu_or_cpu(monkeypatch):
    assert resolve_replicas(None, machines=3) == resolve_replicas(3, machines=3) == 3
    devices(monkeypatch, GPU=4)
    assert resolve_replicas(None, machines=2) == 8


@pytest.mark.parametrize(
    ("gpus", "there"), [(0, r"2 or left out: 2 machines with 1 CPU replica each"), (4, "8 or.*4 GPUs")]
)
def test_another_number_of_replicas_than_the_machines_have_is_refused(monkeypatch, gpus, there):
    devices(monkeypatch, GPU=gpus)
    with pytest.raises(InputError, match=rf"`replicas` must be {there}.*Received: replicas=3"):
        resolve_replicas(3, machines=2)


def test_tpus_are_not_passed_over_in_silence(monkeypatch):
    devices(monkeypatch, TPU=8)
    with pytest.raises(InputError, match=r"TPUStrategy is not supported\. Received: 8 TPU devices"):
        resolve_replicas(None)
    assert resolve_replicas(1) == 1


def test_machines_are_joined_in_a_fresh_process_only():
    tf.constant(1)
    text = r"`cluster` needs a process in which.*Received: worker 0 \(127\.0\.0\.1:1\), where it has"
    with pytest.raises(InputError, match=text):
        make_strategy(None, Cluster(("127.0.0.1:1", "127.0.0.1:2"), 0))


def test_alone_a_machine_takes_whole_batches():
    assert batches_for(tf.distribute.get_strategy(), lambda part: part) == BatchPart()


@pytest.mark.slow
def test_logical_devices_are_made_in_a_fresh_process():
    code = (
        "from keras_bert_impl.training.distribution import make_strategy; print(make_strategy(4).num_replicas_in_sync)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "4\n"
