"""What TensorFlow makes of a training step: work that must not come back unseen."""

import pytest
import tensorflow as tf
from exact_steps import make_batches, make_trainer
from tensorflow.python.eager import context


@pytest.mark.slow
def test_no_transpose_of_the_logits_and_no_second_token_table_is_in_the_step():
    trainer = make_trainer(skip_padding=True)
    x, y = ({name: tf.constant(value) for name, value in rows[0].items()} for rows in make_batches(1))
    step = tf.function(trainer.train_step)
    with context.collect_graphs(optimized=True) as graphs:
        step((x, y))
    operations = [node.op for graph in graphs for node in graph.node]
    assert operations.count("ScatterNdNonAliasingAdd") == 4  # three tables, and the labels
    assert "Transpose" not in operations
