import subprocess
import sys

import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.training import distribution
from keras_bert_impl.training.distribution import make_strategy


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


@pytest.mark.slow
def test_logical_devices_are_made_in_a_fresh_process():
    code = (
        "from keras_bert_impl.training.distribution import make_strategy; print(make_strategy(4).num_replicas_in_sync)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "4\n"
