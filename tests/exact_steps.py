"""A tiny model, its batches and its trainer under any layout, for tests of the exact step."""

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.config import BertConfig
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.schedules import LinearWarmupDecay
from keras_bert_impl.training.distribution import make_strategy
from keras_bert_impl.training.exact_step import PretrainingTrainer

BATCH, LENGTH, PREDICTIONS, STEPS, CLIP = 8, 12, 4, 10, 0.3


def tiny_config(dropout=0.0, layers=1, positions=LENGTH):
    return BertConfig(
        vocab_size=30,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.2,
    )


def make_batches(steps=STEPS, poison_at=None):
    """Batches with repeated tokens; the first half of the rows has far fewer predictions than the second."""
    random = np.random.default_rng(3)
    inputs, targets = [], []
    for step in range(steps):
        weights = np.zeros((BATCH, PREDICTIONS), "float32")
        for row in range(BATCH):
            weights[row, : 1 if row < BATCH // 2 else PREDICTIONS - row % 2] = 1
        if step == poison_at:
            weights[0, 0] = np.inf
        lengths = random.integers(6, LENGTH + 1, BATCH)
        mask = (np.arange(LENGTH) < lengths[:, None]).astype("int32")
        inputs.append(
            {
                "token_ids": random.integers(1, 9, (BATCH, LENGTH)).astype("int32") * mask,
                "segment_ids": (np.arange(LENGTH) >= lengths[:, None] // 2).astype("int32") * mask,
                "padding_mask": mask,
                "mask_positions": random.integers(0, 6, (BATCH, PREDICTIONS)).astype("int32"),
            }
        )
        targets.append(
            {
                "mask_labels": random.integers(0, 30, (BATCH, PREDICTIONS)).astype("int32"),
                "mask_weights": weights,
                "next_sentence_labels": random.integers(0, 2, BATCH).astype("int32"),
                "next_sentence_weights": np.ones(BATCH, "float32"),
            }
        )
    return inputs, targets


def as_dataset(inputs, targets, batch_size=BATCH):
    def stack(rows):
        return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    dataset = tf.data.Dataset.from_tensor_slices((stack(inputs), stack(targets)))
    return dataset.batch(batch_size, drop_remainder=True).with_options(options)


def make_trainer(
    replicas=1,
    micro_batches=1,
    dropout=0.0,
    seed=5,
    steps_per_execution=1,
    learning_rate=5e-3,
    config=None,
    packed=False,
    skip_padding=False,
    dtype="float32",
    optimizer=BertAdamW,
    **options,
):
    with make_strategy(replicas).scope():
        model = BertPretrainer(config or tiny_config(dropout), seed=11, dtype=dtype)
        trainer = PretrainingTrainer(
            model, seed=seed, micro_batches=micro_batches, packed=packed, skip_padding=skip_padding, **options
        )
        made = optimizer(LinearWarmupDecay(learning_rate, 3, 20), global_clipnorm=CLIP)
        made.build(model.trainable_variables)
        trainer.compile(made, steps_per_execution=steps_per_execution)
    return trainer


def train(trainer, inputs, targets, callbacks=()):
    trainer.fit(as_dataset(inputs, targets), shuffle=False, verbose=0, callbacks=list(callbacks))
    return weights_of(trainer)


def weights_of(trainer):
    return {variable.path: np.array(variable.value.numpy()) for variable in trainer.pretrainer.weights}


class Logs(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.lines = []

    def on_train_batch_end(self, batch, logs=None):
        self.lines.append(logs)
