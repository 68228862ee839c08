"""Where a run computes: one device, replicas under MirroredStrategy, or several machines."""

import functools
from collections.abc import Callable

import tensorflow as tf

from keras_bert_impl.errors import InputError

from .batches import BatchPart
from .cluster import Cluster


def resolve_replicas(replicas: int | None, machines: int = 1) -> int:
    """Returns the number of replicas over all machines: as asked, else every GPU, else one on each.

    Raises:
        InputError: if there are GPUs, but fewer than `replicas`; if several machines would have another number; or if
            the machine has TPUs, which nothing here computes on.
    """
    gpus = len(tf.config.list_physical_devices("GPU"))
    if replicas is None and not gpus and (tpus := len(tf.config.list_physical_devices("TPU"))):
        raise InputError(
            "`replicas` must be given on a machine with TPUs, to train on its CPU, since TPUStrategy is not supported. "
            f"Received: {tpus} TPU devices"
        )
    if machines > 1:
        there = machines * max(1, gpus)
        if replicas not in (None, there):
            raise InputError(
                f"`replicas` must be {there} or left out: {machines} machines with {max(1, gpus)} "
                f"{'GPU' if gpus else 'CPU replica'}{'s' if gpus > 1 else ''} each. Received: replicas={replicas}"
            )
        return there
    if replicas is None:
        return max(1, gpus)
    if 0 < gpus < replicas:
        raise InputError(f"`replicas` must be at most the number of GPUs, {gpus}. Received: replicas={replicas}")
    return replicas


def make_deterministic(deterministic: bool) -> None:
    """Makes operations on GPUs give the same bits in every run, for the whole process; on CPUs those used here do."""
    if deterministic and tf.config.list_physical_devices("GPU"):
        tf.config.experimental.enable_op_determinism()


def make_strategy(replicas: int | None = None, cluster: Cluster | None = None) -> tf.distribute.Strategy:
    """Returns the strategy that `replicas` replicas compute under.

    One replica needs none, so it gets TensorFlow's default strategy. More than one compute under
    MirroredStrategy, on GPUs where there are any, else on logical CPU devices that are made here. Several machines
    compute under MultiWorkerMirroredStrategy, each on all its GPUs, else on its CPU.

    Args:
        replicas: int, or None for every GPU, else one; over all machines.
        cluster: the machines, which have met; None for this one alone.

    Raises:
        InputError: if there are fewer GPUs than `replicas`, or if logical CPU devices or other machines are needed
            and TensorFlow already runs without them.
    """
    if cluster is not None:
        resolve_replicas(replicas, len(cluster.addresses))
        return _multi_worker_strategy(cluster)
    replicas = resolve_replicas(replicas)
    if replicas == 1:
        return tf.distribute.get_strategy()
    return _mirrored_strategy(replicas)


@functools.cache
def _mirrored_strategy(replicas: int) -> tf.distribute.Strategy:
    """One strategy serves the whole process: variables of one cannot be used under another."""
    if tf.config.list_physical_devices("GPU"):
        return tf.distribute.MirroredStrategy([f"GPU:{index}" for index in range(replicas)])
    _make_logical_cpus(replicas)
    return tf.distribute.MirroredStrategy(
        [f"CPU:{index}" for index in range(replicas)],
        # The default's collectives fail now and then on CPU devices; summing on one device does not.
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def replicas_on_one_cpu(strategy: tf.distribute.Strategy) -> int:
    """Returns how many replicas of this machine compute on its CPU, whose cores they share."""
    return sum("CPU" in device for device in local_devices(strategy))


def local_devices(strategy: tf.distribute.Strategy) -> list[str]:
    """Returns the devices of this machine that replicas compute on, such as `"GPU:0"`."""
    if strategy.num_replicas_in_sync == 1:  # TensorFlow's default strategy does not know its own
        return ["GPU:0" if tf.config.list_logical_devices("GPU") else "CPU:0"]
    return [":".join(device.upper().split(":")[-2:]) for device in strategy.extended.worker_devices]


@functools.cache
def _multi_worker_strategy(cluster: Cluster) -> tf.distribute.Strategy:
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": list(cluster.addresses)}),
        task_type="worker",
        task_id=cluster.number,
        num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},
        rpc_layer="grpc",
    )
    try:
        return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    except RuntimeError as error:
        raise InputError(
            "`cluster` needs a process in which TensorFlow has not computed anything yet, because machines are joined "
            f"at its start. Received: {cluster.name(cluster.number)}, where it has"
        ) from error


def batches_for(
    strategy: tf.distribute.Strategy, make: Callable[[BatchPart], tf.data.Dataset]
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Returns what `fit` and `evaluate` take under a strategy: on each of several machines only its own rows.

    Args:
        strategy: the strategy.
        make: returns the part of the batches that it is asked for.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return make(BatchPart())
    resolver = strategy.cluster_resolver
    machines = resolver.cluster_spec().num_tasks("worker")
    part = BatchPart(resolver.task_id, machines, strategy.num_replicas_in_sync // machines)
    return strategy.distribute_datasets_from_function(lambda context: make(part))


def _make_logical_cpus(count: int) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    present = len(tf.config.get_logical_device_configuration(cpu) or [None])
    if present >= count:
        return
    try:
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    except RuntimeError as error:
        raise InputError(
            "`replicas` on a CPU needs a process in which TensorFlow has not computed anything yet, because logical "
            f"devices are made at its start. Received: replicas={count}, with {present} CPU device already in use"
        ) from error
