"""Where a run computes: one device, or replicas under MirroredStrategy."""

import functools

import tensorflow as tf

from keras_bert_impl.errors import InputError


def resolve_replicas(replicas: int | None) -> int:
    """Returns the number of replicas: as asked, else every GPU, else one.

    Raises:
        InputError: if there are GPUs, but fewer than `replicas`.
    """
    gpus = len(tf.config.list_physical_devices("GPU"))
    if replicas is None:
        return max(1, gpus)
    if 0 < gpus < replicas:
        raise InputError(f"`replicas` must be at most the number of GPUs, {gpus}. Received: replicas={replicas}")
    return replicas


def make_strategy(replicas: int | None = None) -> tf.distribute.Strategy:
    """Returns the strategy that `replicas` replicas compute under.

    One replica needs none, so it gets TensorFlow's default strategy. More than one compute under
    MirroredStrategy, on GPUs where there are any, else on logical CPU devices that are made here.

    Args:
        replicas: int, or None for every GPU, else one.

    Raises:
        InputError: if there are fewer GPUs than `replicas`, or if logical CPU devices are needed and
            TensorFlow already runs with fewer.
    """
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
