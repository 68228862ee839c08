"""One update for a global batch, whatever the layout: against a plain eager step with NumPy's AdamW."""

import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from exact_steps import BATCH, CLIP, Logs, as_dataset, make_batches, make_trainer, tiny_config, train, weights_of
from numpy_updates import NumpyUpdates
from packed_batches import inputs_of, packed_rows, pair_rows

from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW, BertLamb
from keras_bert_impl.training.exact_step import PretrainingTrainer
from keras_bert_impl.training.step_health import GROWTH_STEPS, StepHealth

STEPS = 20
OPTIMIZERS = {"adamw": BertAdamW, "lamb": BertLamb}


def eager_steps(adapted):
    """Weights after whole batches on one device without any graph; and the gradients' norms on the way."""
    model, norms, updates = BertPretrainer(tiny_config(), seed=11), [], None
    for step, (x, y) in enumerate(zip(*make_batches(STEPS), strict=True)):
        with tf.GradientTape() as tape:
            outputs = model({name: tf.constant(value) for name, value in x.items()}, training=True)
            log_probabilities = tf.nn.log_softmax(outputs["mlm_logits"])
            mlm = -tf.gather(log_probabilities, y["mask_labels"][..., None], batch_dims=2)[..., 0]
            mlm = tf.reduce_sum(mlm * y["mask_weights"]) / (y["mask_weights"].sum() + 1e-5)
            nsp = -tf.gather(tf.nn.log_softmax(outputs["nsp_logits"]), y["next_sentence_labels"], batch_dims=1)
            loss = mlm + tf.reduce_mean(nsp)
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        gradients = [tf.convert_to_tensor(gradient).numpy() for gradient in gradients]
        norms.append(np.sqrt(sum((gradient.astype("float64") ** 2).sum() for gradient in gradients)))
        if updates is None:
            decayed = [variable.path.split("/")[-1] not in ("bias", "gamma", "beta") for variable in variables]
            values = [variable.numpy() for variable in variables]
            updates = NumpyUpdates(values, decayed, adapted=decayed if adapted else None, clip=CLIP)
        updates.apply(gradients, 5e-3 * (step / 3 if step < 3 else 1 - step / 20))
        for variable, value in zip(variables, updates.values, strict=True):
            variable.assign(value.astype("float32"))
    return {variable.path: variable.numpy() for variable in variables}, norms


@pytest.fixture(scope="module", params=list(OPTIMIZERS))
def reference(request):
    return OPTIMIZERS[request.param], *eager_steps(adapted=request.param == "lamb")


def test_clipping_is_active_in_the_reference(reference):
    _, _, norms = reference
    assert min(norms) > 2 * CLIP


LAYOUTS = [
    {"replicas": 1},
    {"replicas": 2, "micro_batches": 2, "steps_per_execution": 5, "skip_padding": True},
    *(
        pytest.param(layout, marks=pytest.mark.slow)
        for layout in (
            {"replicas": 4, "micro_batches": 2},
            {"replicas": 2},
            {"replicas": 2, "micro_batches": 2, "steps_per_execution": 5},
            {"skip_padding": True},
            {"replicas": 4, "steps_per_execution": 5},
            {"micro_batches": 4, "steps_per_execution": 5},
            {"micro_batches": 4},
            {"replicas": 2, "micro_batches": 4},
            {"xla": True},
            {"replicas": 2, "micro_batches": 2, "xla": True},
        )
    ),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_weights_after_twenty_steps_do_not_depend_on_the_layout(reference, layout):
    optimizer, expected, _ = reference
    weights = train(make_trainer(**layout, optimizer=optimizer), *make_batches(STEPS))
    assert weights.keys() == expected.keys()
    for path, values in expected.items():
        np.testing.assert_allclose(weights[path], values, atol=1e-5, rtol=0, err_msg=path)


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
        {"replicas": 2, "micro_batches": 2, "skip_padding": True},
        *(
            pytest.param(layout, marks=pytest.mark.slow)
            for layout in ({}, {"replicas": 2}, {"micro_batches": 4}, {"skip_padding": True}, {"xla": True})
        ),
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


@pytest.mark.slow
def test_the_step_works_where_operations_must_be_deterministic():
    script = (
        "import tensorflow as tf; tf.config.experimental.enable_op_determinism(); import exact_steps as steps; "
        "trainer = steps.make_trainer(dropout=0.1, skip_padding=True); "
        "print(sum(values.sum() for values in steps.train(trainer, *steps.make_batches(3)).values()))"
    )
    results = set()
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", f"import keras_bert_impl.config, sys; sys.path.append('tests'); {script}"],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        results.add(done.stdout)
    assert len(results) == 1


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


@pytest.mark.parametrize("layout", [{}, {"replicas": 2, "micro_batches": 2}], ids=str)
def test_a_step_that_is_not_finite_changes_nothing_but_the_counts(layout):
    trainer = make_trainer(**layout)
    batches = make_batches(6, poison_at=2)
    before = None

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            nonlocal before
            if batch == 1:
                before = weights_of(trainer), means_of(trainer)
            if batch == 2:
                for old, new in zip(before, (weights_of(trainer), means_of(trainer)), strict=True):
                    for path in old:
                        np.testing.assert_array_equal(old[path], new[path], err_msg=path)

    logs = Logs()
    train(trainer, *batches, [Look(), logs])
    assert [bool(np.isfinite(line["loss"])) for line in logs.lines] == [True, True, False, True, True, True]
    assert trainer.health.non_finite_steps() == 1 and trainer.health.first_and_last_non_finite_step() == (3, 3)
    assert int(trainer.optimizer.iterations.value.numpy()) == 6 and int(trainer.optimizer.skipped.value.numpy()) == 1
    assert all(np.isfinite(values).all() for values in weights_of(trainer).values())
    assert np.isfinite(float(trainer.sums.result()["loss"]))


def means_of(trainer):
    variables = trainer.optimizer.variables
    return {v.path: np.array(v.value.numpy()) for v in variables if v.name not in ("iteration", "skipped")}


def test_the_parts_of_a_batch_need_not_be_of_one_size():
    def weights(micro_batches):
        trainer = make_trainer(micro_batches=micro_batches)
        inputs, targets = make_batches(4)
        options = as_dataset(inputs, targets)
        trainer.fit(options.unbatch().batch(7), shuffle=False, verbose=0)  # the last one has 4 rows
        return weights_of(trainer)

    whole, in_parts = weights(1), weights(3)
    for path, values in whole.items():
        np.testing.assert_allclose(in_parts[path], values, atol=1e-5, rtol=0, err_msg=path)


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("mixed_bfloat16", 0.05), pytest.param("mixed_float16", 0.01, marks=pytest.mark.slow)]
)
def test_half_precision_learns_what_float32_does(dtype, tolerance):
    logs, half_logs = Logs(), Logs()
    train(make_trainer(), *make_batches(), [logs])
    trainer = make_trainer(dtype=dtype)
    train(trainer, *make_batches(), [half_logs])
    for line, half in zip(logs.lines, half_logs.lines, strict=True):
        assert half["loss"] == pytest.approx(line["loss"], abs=tolerance)
    assert trainer.health.loss_scale() == (2**15 if dtype == "mixed_float16" else None)


@pytest.mark.slow
def test_a_gradient_that_overflows_float16_halves_the_scale_and_is_not_a_mistake():
    trainer = make_trainer(dtype="mixed_float16")
    trainer.health.variable.assign([40, 0, 0, 0, 0])
    train(trainer, *make_batches(20))
    scale = trainer.health.loss_scale()
    assert 2**10 < scale < 2**40
    assert int(trainer.optimizer.skipped.value.numpy()) == 40 - np.log2(scale)
    assert trainer.health.non_finite_steps() == 0


def test_the_scale_grows_after_many_finite_steps():
    health = StepHealth(loss_scaling=True)
    health.variable.assign([15, GROWTH_STEPS - 1, 0, 0, 0])
    health.update(tf.constant(True), tf.constant(7, tf.int64))
    assert health.loss_scale() == 2**16
    health.update(tf.constant(False), tf.constant(8, tf.int64))
    assert health.loss_scale() == 2**15 and health.non_finite_steps() == 0


def test_what_would_be_ignored_or_wrong_is_refused():
    trainer = PretrainingTrainer(BertPretrainer(tiny_config(), seed=11))
    for options, message in (
        (
            {"optimizer": "adam"},
            r"`optimizer` must be one of keras_bert_impl\.optimizers; .* Received: optimizer='adam'",
        ),
        ({"loss": "mse"}, r"`loss` must be left out: the losses are the trainer's own\. Received: loss='mse'"),
        ({"metrics": ["accuracy"]}, r"`metrics` must be left out"),
        ({"jit_compile": True}, r"`jit_compile` must be left out: it fails under replicas; .*xla=True"),
        ({"steps_per_execution": "auto"}, r"`steps_per_execution` must be a whole number from 1 on\. .*'auto'"),
        ({"speed": 3}, r"`compile` does not know `speed`"),
    ):
        with pytest.raises(InputError, match=message):
            trainer.compile(**{"optimizer": BertAdamW(1e-3), **options})
    trainer.compile()
    with pytest.raises(InputError, match=r"`compile` must be given an `optimizer` before `fit`"):
        trainer.fit(as_dataset(*make_batches(1)), verbose=0)
    trainer.compile(BertAdamW(1e-3))
    with pytest.raises(InputError, match=r"`x` must be a dataset of pairs of inputs and targets, .* tuple of 3"):
        trainer.fit(as_dataset(*make_batches(1)).map(lambda x, y: (x, y, tf.ones(BATCH))), verbose=0)
    with pytest.raises(InputError, match=r"`x` must have targets with mask_labels, .* Received: no mask_weights"):
        trainer.fit(
            as_dataset(*make_batches(1)).map(lambda x, y: (x, {name: y[name] for name in y if name != "mask_weights"})),
            verbose=0,
        )
    for options, message in (
        ({"micro_batches": 0}, r"`micro_batches` must be a whole number from 1 on\. Received: micro_batches=0"),
        ({"micro_batches": 2.5}, r"`micro_batches` must be a whole number from 1 on\. Received: micro_batches=2\.5"),
        ({"seed": -1}, r"`seed` must be a whole number"),
    ):
        with pytest.raises(InputError, match=message):
            PretrainingTrainer(BertPretrainer(tiny_config(), seed=11), **options)
    with pytest.raises(InputError, match=r"`skip_padding` must be False with `xla`"):
        PretrainingTrainer(BertPretrainer(tiny_config(), seed=11), xla=True, skip_padding=True)


def test_waiting_for_input_is_timed():
    trainer = make_trainer(steps_per_execution=2)

    def late(*batch):
        return tf.py_function(lambda *values: (time.sleep(0.05), *values)[1:], batch, [value.dtype for value in batch])

    def slowly(x, y):
        flat = late(*tf.nest.flatten((x, y)))
        for value, given in zip(flat, tf.nest.flatten((x, y)), strict=True):
            value.set_shape(given.shape)
        return tf.nest.pack_sequence_as((x, y), flat)

    trainer.fit(as_dataset(*make_batches(6)).map(slowly), shuffle=False, verbose=0)
    assert 0.2 < trainer.input_clock.seconds() < 5
    trainer.input_clock.reset()
    assert trainer.input_clock.seconds() == 0


def test_a_batch_without_a_masked_token_is_learnt_from_all_the_same():
    trainer, logs = make_trainer(), Logs()
    inputs, targets = make_batches(2)
    for target in targets:
        target["mask_weights"] = np.zeros_like(target["mask_weights"])
    before = weights_of(trainer)
    after = train(trainer, inputs, targets, [logs])
    assert trainer.health.non_finite_steps() == 0
    assert all(line["loss"] == line["nsp_loss"] and np.isnan(line["mlm_loss"]) for line in logs.lines)
    assert any(not np.array_equal(before[path], after[path]) for path in after if "nsp_head" in path)


def test_keras_own_checkpoint_callback_saves_a_trainer_that_goes_on(tmp_path):
    trainer = make_trainer(packed=True, skip_padding=None)
    inputs, targets = make_batches(6)
    save = keras.callbacks.ModelCheckpoint(tmp_path / "trainer.keras", monitor="loss")
    train(trainer, inputs[:3], targets[:3], [save])
    loaded = keras.saving.load_model(tmp_path / "trainer.keras")
    assert loaded.get_config() == trainer.get_config()
    expected = train(trainer, inputs[3:], targets[3:])
    for path, values in train(loaded, inputs[3:], targets[3:]).items():
        np.testing.assert_array_equal(values, expected[path], err_msg=path)


def test_without_a_graph_and_by_single_batches_a_trainer_learns_the_same():
    inputs, targets = make_batches(3)
    expected = train(make_trainer(), inputs, targets)
    eager, single = make_trainer(), make_trainer()
    eager.compile(eager.optimizer, run_eagerly=True)
    for x, y in zip(inputs, targets, strict=True):
        single.train_on_batch(x, y)
    for weights in (train(eager, inputs, targets), weights_of(single)):
        for path, values in expected.items():
            np.testing.assert_allclose(weights[path], values, atol=1e-6, rtol=0, err_msg=path)
