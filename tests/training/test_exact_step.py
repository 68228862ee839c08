"""One update for a global batch, whatever the layout: against a plain eager step with NumPy's AdamW."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from packed_batches import inputs_of, packed_rows, pair_rows

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
):
    with make_strategy(replicas).scope():
        model = BertPretrainer(config or tiny_config(dropout), seed=11)
        trainer = PretrainingTrainer(model, seed=seed, micro_batches=micro_batches, packed=packed)
        optimizer = BertAdamW(LinearWarmupDecay(learning_rate, 3, 20), global_clipnorm=CLIP)
        optimizer.build(model.trainable_variables)
        trainer.compile(optimizer, steps_per_execution=steps_per_execution, jit_compile=False)
    return trainer


def train(trainer, inputs, targets, callbacks=()):
    trainer.fit(as_dataset(inputs, targets), shuffle=False, verbose=0, callbacks=list(callbacks))
    return weights_of(trainer)


def weights_of(trainer):
    return {variable.path: np.array(variable.value.numpy()) for variable in trainer.pretrainer.weights}


class NumpyAdamW:
    """The original's optimizer, written out: no bias correction, decoupled decay, linear warm-up and decay."""

    def __init__(self, peak, warmup_steps, total_steps):
        self.peak, self.warmup_steps, self.total_steps = peak, warmup_steps, total_steps
        self.moments, self.step = {}, 0

    def rate(self):
        if self.step < self.warmup_steps:
            return self.peak * self.step / self.warmup_steps
        return self.peak * (1 - self.step / self.total_steps)

    def update(self, weights, gradients):
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in gradients.values()))
        scale = CLIP / max(norm, CLIP)
        for path, gradient in gradients.items():
            gradient = gradient * scale
            mean, square = self.moments.get(path, (0, 0))
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            self.moments[path] = mean, square
            step = mean / (np.sqrt(square) + 1e-6)
            if path.split("/")[-1] not in ("bias", "gamma", "beta"):
                step = step + 0.01 * weights[path]
            weights[path] = weights[path] - self.rate() * step
        self.step += 1
        return norm


@pytest.fixture(scope="module")
def reference():
    """Weights after ten steps of one device, eager, on whole batches; and the gradients' norms on the way."""
    model = BertPretrainer(tiny_config(), seed=11)
    optimizer = NumpyAdamW(5e-3, 3, 20)
    norms = []
    for x, y in zip(*make_batches(), strict=True):
        with tf.GradientTape() as tape:
            outputs = model({name: tf.constant(value) for name, value in x.items()}, training=True)
            log_probabilities = tf.nn.log_softmax(outputs["mlm_logits"])
            mlm = -tf.gather(log_probabilities, y["mask_labels"][..., None], batch_dims=2)[..., 0]
            mlm = tf.reduce_sum(mlm * y["mask_weights"]) / (y["mask_weights"].sum() + 1e-5)
            nsp = -tf.gather(tf.nn.log_softmax(outputs["nsp_logits"]), y["next_sentence_labels"], batch_dims=1)
            loss = mlm + tf.reduce_mean(nsp)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        dense = {v.path: tf.convert_to_tensor(g).numpy() for v, g in zip(variables, gradients, strict=True)}
        weights = {variable.path: variable.numpy() for variable in variables}
        norms.append(optimizer.update(weights, dense))
        for variable in variables:
            variable.assign(weights[variable.path])
    return weights, norms


def test_clipping_is_active_in_the_reference(reference):
    assert min(reference[1]) > 2 * CLIP


@pytest.mark.parametrize(
    "layout",
    [
        {"replicas": 1},
        {"replicas": 2},
        {"micro_batches": 4},
        {"replicas": 2, "micro_batches": 2, "steps_per_execution": 4},
    ],
    ids=str,
)
def test_weights_after_ten_steps_do_not_depend_on_the_layout(reference, layout):
    weights = train(make_trainer(**layout), *make_batches())
    assert weights.keys() == reference[0].keys()
    for path, expected in reference[0].items():
        np.testing.assert_allclose(weights[path], expected, atol=1e-5, rtol=0, err_msg=path)


SIZES = [4, 16, 7, 9, 11, 5, 12, 12, 3, 5, 6, 9, 24, 8, 10]
PAIRS_IN_ROWS = [2, 2, 2, 2, 1, 3, 1, 2]


def pairs_of_step(step, packed):
    """Inputs and targets of the same fifteen pairs, each in a row of its own or in eight packed ones."""
    rows = pair_rows(SIZES, length=24, vocab_size=30, seed=step)
    if packed:
        rows = packed_rows(rows, PAIRS_IN_ROWS, pairs=3, predictions=9)
    return inputs_of(rows), {name: rows[name] for name in rows if name.split("_")[-1] in ("labels", "weights")}


def train_on_pairs(packed, steps=4, **layout):
    """Trains in packed rows or not; returns the trainer, the logs of every step and the weights at the end."""
    config, logs = tiny_config(positions=24), Logs()
    trainer = make_trainer(config=config, packed=packed, **layout)
    inputs, targets = zip(*(pairs_of_step(step, packed) for step in range(steps)), strict=True)
    batch_size = len(PAIRS_IN_ROWS if packed else SIZES)
    trainer.fit(as_dataset(inputs, targets, batch_size), shuffle=False, verbose=0, callbacks=[logs])
    return trainer, logs.lines, weights_of(trainer)


@pytest.fixture(scope="module")
def unpacked():
    return train_on_pairs(False)


@pytest.mark.parametrize(
    "layout",
    [
        {"replicas": 2, "micro_batches": 2},
        *(pytest.param(layout, marks=pytest.mark.slow) for layout in ({}, {"replicas": 2}, {"micro_batches": 4})),
    ],
    ids=str,
)
def test_packed_rows_give_the_losses_and_the_weights_of_the_same_pairs_unpacked(unpacked, layout):
    _, expected_lines, expected = unpacked
    _, lines, weights = train_on_pairs(True, **layout)
    for line, expected_line in zip(lines, expected_lines, strict=True):
        assert line == pytest.approx(expected_line, abs=1e-5)
    for path, values in expected.items():
        np.testing.assert_allclose(weights[path], values, atol=1e-5, rtol=0, err_msg=path)


def test_a_trainer_for_packed_rows_evaluates_unpacked_ones():
    trainer = make_trainer(config=tiny_config(positions=24), packed=True)
    values = [
        trainer.evaluate(as_dataset(*([part] for part in pairs_of_step(0, packed)), size), verbose=0, return_dict=True)
        for packed, size in ((False, len(SIZES)), (True, len(PAIRS_IN_ROWS)))
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


@pytest.mark.parametrize("replicas", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_without_next_sentence_labels_the_loss_is_that_of_the_masked_tokens(replicas):
    inputs, targets = make_batches(3)
    for target in targets:
        target["next_sentence_weights"] = np.zeros(BATCH, "float32")
    trainer, logs = make_trainer(replicas), Logs()
    before = weights_of(trainer)
    after = train(trainer, inputs, targets, [logs])
    assert trainer.health.non_finite_steps() == 0
    assert all(line["loss"] == line["mlm_loss"] and np.isfinite(line["loss"]) for line in logs.lines)
    assert np.isnan(logs.lines[0]["nsp_loss"])
    assert all(np.isfinite(values).all() for values in after.values())
    changed = {path for path in after if not np.array_equal(after[path], before[path])}
    assert any("token_embedding" in path for path in changed) and not any("nsp_head/bias" in path for path in changed)
    values = trainer.evaluate(as_dataset(inputs, targets), verbose=0, return_dict=True)
    assert values["loss"] == values["mlm_loss"]


class Logs(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.lines = []

    def on_train_batch_end(self, batch, logs=None):
        self.lines.append(logs)


def test_step_logs_are_those_of_the_global_batch():
    logs_of_one, logs_of_two = Logs(), Logs()
    train(make_trainer(1), *make_batches(), [logs_of_one])
    train(make_trainer(2), *make_batches(), [logs_of_two])
    for one, two in zip(logs_of_one.lines, logs_of_two.lines, strict=True):
        assert one.keys() == {"loss", "mlm_loss", "mlm_accuracy", "nsp_loss", "nsp_accuracy"}
        assert one == pytest.approx(two, abs=1e-4)


def test_weights_under_dropout_are_the_same_for_the_same_seed_and_no_other():
    first, second, other = (train(make_trainer(2, dropout=0.3, seed=seed), *make_batches(3)) for seed in (1, 1, 2))
    for path in first:
        np.testing.assert_array_equal(first[path], second[path], err_msg=path)
    assert any(not np.array_equal(first[path], other[path]) for path in first)


def test_evaluation_counts_tokens_not_batches_and_ignores_weight_0():
    inputs, targets = make_batches(3)
    for name in ("mask_weights", "next_sentence_weights"):
        targets[-1][name][2:] = 0
    values = {}
    for replicas in (1, 2):
        trainer = make_trainer(replicas)
        values[replicas] = trainer.evaluate(as_dataset(inputs, targets), verbose=0, return_dict=True)
    assert values[1] == pytest.approx(values[2], rel=1e-6)

    model = make_trainer().pretrainer
    losses = weights = right = 0.0
    for x, y in zip(inputs, targets, strict=True):
        logits = model(x)["mlm_logits"].numpy()
        log_probabilities = tf.nn.log_softmax(logits).numpy()
        picked = np.take_along_axis(log_probabilities, y["mask_labels"][..., None], -1)[..., 0]
        losses -= (picked * y["mask_weights"]).sum()
        right += ((logits.argmax(-1) == y["mask_labels"]) * y["mask_weights"]).sum()
        weights += y["mask_weights"].sum()
    assert values[1]["mlm_loss"] == pytest.approx(losses / weights, rel=1e-5)
    assert values[1]["mlm_accuracy"] == pytest.approx(right / weights, rel=1e-6)


@pytest.mark.parametrize("replicas", [1, 2])
def test_steps_with_a_loss_that_is_not_finite_are_counted(replicas):
    trainer = make_trainer(replicas)
    train(trainer, *make_batches(5, poison_at=2))
    assert trainer.health.non_finite_steps() == 3
