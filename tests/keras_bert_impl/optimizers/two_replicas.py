"""Steps on two replicas against one; run by test_two_replicas.py."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.optimizers import BertAdamW, BertLamb
from keras_bert_impl.schedules import LinearWarmupDecay


def trained(strategy, make, mode):
    """Weights after five steps, the third not taken; each replica has half of each gradient's terms."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=(6, 3)).astype("float32")
    with strategy.scope():
        kernel = keras.Variable(start, name="kernel")
        bias = keras.Variable(start[0], name="bias")
        optimizer = make(LinearWarmupDecay(0.05, 2, 10), bias_correction=True, global_clipnorm=1.0)
        optimizer.build([kernel, bias])
    replicas = strategy.num_replicas_in_sync

    @tf.function
    def step(terms, bias_terms, taken):
        def of_replica(terms, bias_terms):
            grads = [tf.reduce_sum(terms, 0), tf.reduce_sum(bias_terms, 0)]
            if mode == "apply":
                optimizer.apply(grads, [kernel, bias])
            else:
                replica = tf.distribute.get_replica_context()
                grads = list(replica.all_reduce(tf.distribute.ReduceOp.SUM, grads))
                scale = 1 / tf.maximum(tf.linalg.global_norm(grads), 1.0)
                scale = tf.where(taken, scale, 0.0)
                grads = [tf.where(taken, gradient, float("nan")) for gradient in grads]
                optimizer.apply_reduced(grads, [kernel, bias], scale=scale)

        strategy.run(of_replica, args=(terms, bias_terms))

    for number in range(5):
        # Parts of very different size: clipping each replica's own would not cancel out.
        parts = (rng.normal(size=(4, 6, 3)) * [[[0.01]], [[0.02]], [[5.0]], [[7.0]]]).astype("float32")

        def halves(context, array):
            size = 4 // replicas
            return array[context.replica_id_in_sync_group * size :][:size]

        step(
            strategy.experimental_distribute_values_from_function(lambda c, a=parts: tf.constant(halves(c, a))),
            strategy.experimental_distribute_values_from_function(lambda c, a=parts[:, 0]: tf.constant(halves(c, a))),
            tf.constant(mode == "apply" or number != 2),
        )
    assert int(optimizer.iterations.value.numpy()) == 5
    assert int(optimizer.skipped.value.numpy()) == (0 if mode == "apply" else 1)
    for variable in (kernel, bias):
        copies = [copy.numpy() for copy in strategy.experimental_local_results(variable.value)]
        assert all(np.array_equal(copy, copies[0]) for copy in copies)
    return np.concatenate([kernel.numpy().ravel(), bias.numpy()])


def main():
    """Compares both ways of applying on two replicas with one."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    one = tf.distribute.get_strategy()
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice())
    for make in (BertAdamW, BertLamb):
        for mode in ("apply", "apply_reduced"):
            np.testing.assert_allclose(
                trained(two, make, mode), trained(one, make, mode), rtol=0, atol=1e-6, err_msg=f"{make} {mode}"
            )


if __name__ == "__main__":
    main()
