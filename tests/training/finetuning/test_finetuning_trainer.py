"""The step of fine-tuning: one update for a global batch, against a plain eager step with NumPy's AdamW."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from harness import small_config
from keras import ops
from numpy_updates import NumpyUpdates

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertTokenClassifier
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.schedules import WarmupDecay
from keras_bert_impl.training.distribution import make_strategy
from keras_bert_impl.training.finetuning.batches import BatchPlan, RowBatches, training_batches
from keras_bert_impl.training.finetuning.task import TrainingRows
from keras_bert_impl.training.finetuning.trainer import FinetuningTrainer

LABELS = ["a", "b", "c"]
BATCH, STEPS, CLIP, RATE = 6, 10, 0.5, 5e-3
# In an epoch of 27 rows the last batch has 3, fewer than there are parts in some layouts.
COUNT = 27


def make_rows(poisoned=False):
    """Rows with repeated tokens, of 3 to 12 tokens and uneven weights."""
    random = np.random.default_rng(3)
    lengths = random.integers(3, 13, COUNT)
    weights = np.where(np.arange(COUNT) % 3 == 0, 0.1, 1 + np.arange(COUNT) % 5).astype("float32")
    if poisoned:
        weights[7] = np.inf
    return TrainingRows(
        token_ids=[random.integers(1, 9, length).astype("int32") for length in lengths],
        segment_ids=[(np.arange(length) > length // 2).astype("int32") for length in lengths],
        targets={"label": random.integers(0, 3, COUNT), "weight": weights},
    )


ROWS = make_rows()
PLAN = BatchPlan([len(ids) for ids in ROWS.token_ids], batch_size=BATCH, seed=2)


def loss_sums(outputs, targets):
    losses = -ops.sum(ops.one_hot(targets["label"], 3) * ops.log_softmax(outputs), axis=-1)
    return ops.sum(targets["weight"] * losses), ops.sum(targets["weight"])


def make_model(dropout=0.0, dtype="float32"):
    config = small_config(
        num_hidden_layers=1,
        initializer_range=0.2,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return BertClassifier(config, labels=LABELS, seed=11, dtype=dtype)


def make_trainer(
    replicas=1, micro_batches=1, dropout=0.0, seed=5, dtype="float32", wrap=lambda model: model, loss_sums=loss_sums
):
    with make_strategy(replicas).scope():
        model = make_model(dropout, dtype)
        trainer = FinetuningTrainer(
            wrap(model), loss_sums, targets=("label", "weight"), seed=seed, micro_batches=micro_batches
        )
        optimizer = BertAdamW(WarmupDecay(RATE, 2, 20, decay_from="warmup"), global_clipnorm=CLIP, bias_correction=True)
        optimizer.build(model.trainable_variables)
        trainer.compile(optimizer)
    return trainer


def train(trainer, steps=STEPS, first=0, rows=ROWS, callbacks=()):
    batches = RowBatches(rows, per_token=(), pad_token_id=0)
    strategy = trainer.distribute_strategy
    dataset = training_batches(PLAN, batches, first_step=first, num_steps=steps, strategy=strategy)
    trainer.fit(dataset, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=list(callbacks))
    return weights_of(trainer)


def weights_of(trainer):
    return {variable.path: np.array(variable.value.numpy()) for variable in trainer.trained.weights}


@pytest.fixture(scope="module")
def reference():
    """Weights after whole batches on one device without any graph; the losses and gradients' norms on the way."""
    model, updates, losses, norms = make_model(), None, [], []
    batches = RowBatches(ROWS, per_token=(), pad_token_id=0)
    for step in range(STEPS):
        inputs, targets = batches.batch(PLAN.rows_of_step(step))
        with tf.GradientTape() as tape:
            logits = model({name: tf.constant(value) for name, value in inputs.items()}, training=True)
            picked = tf.gather(tf.nn.log_softmax(logits), targets["label"], batch_dims=1)
            loss = -tf.reduce_sum(targets["weight"] * picked) / targets["weight"].sum()
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
        losses.append(float(loss))
        norms.append(np.sqrt(sum((gradient.astype("float64") ** 2).sum() for gradient in gradients)))
        if updates is None:
            decayed = [variable.path.split("/")[-1] not in ("bias", "gamma", "beta") for variable in variables]
            updates = NumpyUpdates([variable.numpy() for variable in variables], decayed, clip=CLIP, correct=True)
        updates.apply(gradients, RATE * (step / 2 if step < 2 else 1 - (step - 2) / 18))
        for variable, value in zip(variables, updates.values, strict=True):
            variable.assign(value.astype("float32"))
    return {variable.path: variable.numpy() for variable in variables}, losses, norms


class Losses(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.values = []

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(float(logs["loss"]))


LAYOUTS = [
    {"replicas": 2, "micro_batches": 4},
    *(
        pytest.param(layout, marks=pytest.mark.slow)
        for layout in (
            {"replicas": 1},
            {"micro_batches": 4},
            {"replicas": 2},
            {"replicas": 4},
            {"replicas": 4, "micro_batches": 4},
        )
    ),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_weights_after_ten_steps_do_not_depend_on_the_layout(reference, layout):
    expected, losses, norms = reference
    assert max(norms) > 2 * CLIP and len(PLAN.rows_of_step(4)) == 3
    seen, traced = Losses(), []

    def counted(outputs, targets):
        traced.append(outputs.shape)
        return loss_sums(outputs, targets)

    trainer = make_trainer(**layout, loss_sums=counted)
    weights = train(trainer, callbacks=[seen])
    for path, values in expected.items():
        np.testing.assert_allclose(weights[path], values, atol=1e-5, rtol=0, err_msg=path)
    np.testing.assert_allclose(seen.values, losses, atol=1e-5)
    counts = trainer.sums.counts()
    assert counts["examples"] == sum(len(PLAN.rows_of_step(step)) for step in range(STEPS))
    assert trainer.health.non_finite_steps() == 0
    # Once on each replica, for batches of any width and number of rows.
    assert traced == [(None, 3)] * layout.get("replicas", 1)


@pytest.mark.slow
def test_weights_under_dropout_are_the_same_for_the_same_seed_also_after_a_break_and_no_other():
    first = train(make_trainer(2, dropout=0.3), 6)
    broken, other = make_trainer(2, dropout=0.3), train(make_trainer(2, dropout=0.3, seed=6), 6)
    train(broken, 3)
    second = train(broken, 3, first=3)
    for path in first:
        np.testing.assert_array_equal(first[path], second[path], err_msg=path)
    assert any(not np.array_equal(first[path], other[path]) for path in first)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [{}, {"replicas": 2, "micro_batches": 2}], ids=str)
def test_a_step_that_is_not_finite_changes_nothing_but_the_counts(layout):
    trainer = make_trainer(**layout)
    bad = next(step for step in range(PLAN.steps_per_epoch) if 7 in PLAN.rows_of_step(step))
    poisoned = make_rows(poisoned=True)
    if bad:
        train(trainer, bad, rows=poisoned)
    before = weights_of(trainer)
    after = train(trainer, 1, first=bad, rows=poisoned)
    for path in before:
        np.testing.assert_array_equal(before[path], after[path], err_msg=path)
    assert trainer.health.non_finite_steps() == 1
    assert int(trainer.optimizer.skipped.value.numpy()) == 1 and trainer.sums.counts()["examples"] == 0


@pytest.mark.slow
def test_a_model_without_an_unpadded_form_is_trained_on_its_padded_rows(reference):
    expected, _, _ = reference
    trainer = make_trainer(wrap=lambda model: keras.Model(model.input, model.output))
    for path, values in train(trainer).items():
        np.testing.assert_allclose(values, expected[path], atol=1e-5, rtol=0, err_msg=path)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_learns_what_float32_does(reference, dtype):
    _, losses, _ = reference
    seen, trainer = Losses(), make_trainer(dtype=dtype)
    train(trainer, callbacks=[seen])
    np.testing.assert_allclose(seen.values, losses, atol=0.05)
    assert trainer.health.loss_scale() == (None if dtype == "mixed_bfloat16" else 2**15)


@pytest.mark.slow
def test_losses_of_tokens_come_in_padded_rows():
    model = BertTokenClassifier(small_config(num_hidden_layers=1), labels=LABELS, seed=1)
    seen = []

    def of_tokens(outputs, targets):
        seen.append((outputs.shape, targets["tag"].shape))
        losses = -ops.sum(ops.one_hot(targets["tag"], 3) * ops.log_softmax(outputs), axis=-1)
        return ops.sum(targets["weight"] * losses), ops.sum(targets["weight"])

    trainer = FinetuningTrainer(model, of_tokens, targets=("tag", "weight"))
    trainer.compile(BertAdamW(1e-3))
    rows = TrainingRows(
        ROWS.token_ids,
        ROWS.segment_ids,
        {name: [np.ones(len(ids), kind) for ids in ROWS.token_ids] for name, kind in (("tag", int), ("weight", float))},
    )
    batches = RowBatches(rows, per_token=("tag", "weight"), pad_token_id=0)
    dataset = training_batches(PLAN, batches, first_step=0, num_steps=4, strategy=make_strategy(1))
    trainer.fit(dataset, steps_per_epoch=4, verbose=0)
    assert seen[0] == ((None, None, 3), (None, None))
    counts = trainer.sums.counts()
    assert counts["weight"] == counts["tokens"]


def test_what_would_be_ignored_or_wrong_is_refused():
    trainer = FinetuningTrainer(make_model(), loss_sums, targets=("label", "weight"))
    for options, message in (
        (
            {"optimizer": "adam"},
            r"`optimizer` must be one of keras_bert_impl\.optimizers; .* Received: optimizer='adam'",
        ),
        ({"loss": "mse"}, r"`loss` must be left out: the losses are the trainer's own\. Received: loss='mse'"),
        ({"jit_compile": True}, r"`jit_compile` must be left out: it fails under replicas\. Received"),
    ):
        with pytest.raises(InputError, match=message):
            trainer.compile(**{"optimizer": BertAdamW(1e-3), **options})
    trainer.compile(BertAdamW(1e-3))
    inputs, targets = RowBatches(ROWS, per_token=(), pad_token_id=0).batch(np.arange(3))
    del targets["weight"]
    with pytest.raises(InputError, match=r"`x` must have targets with label, weight\. Received: no weight"):
        trainer.train_on_batch(inputs, targets)
    with pytest.raises(InputError, match=r"`micro_batches` must be a whole number from 1 on\. Received"):
        FinetuningTrainer(make_model(), loss_sums, micro_batches=0)
