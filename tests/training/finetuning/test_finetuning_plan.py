"""How many steps, evaluations and rates of learning the settings make."""

import pytest

from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.plan import make_optimizer, make_plan, make_schedule


def config(**settings):
    return FinetuneConfig(
        **{"task": "classification", "model": "model", "train": ("a.tsv",), "output": "out", "batch_size": 8} | settings
    )


@pytest.mark.parametrize(
    ("settings", "rows", "steps", "evaluations"),
    [
        ({"epochs": 3}, 16, 6, (2, 4, 6)),
        ({"epochs": 3}, 17, 9, (3, 6, 9)),
        ({"epochs": 2.5}, 17, 8, (3, 6, 8)),
        ({"epochs": 0.1}, 16, 1, (1,)),
        ({"epochs": 1.1}, 80, 11, (10, 11)),
        ({"epochs": 3}, 3, 3, (1, 2, 3)),
        ({"epochs": 3, "evaluations": 2}, 17, 9, (5, 9)),
        ({"epochs": 1, "evaluations": 50}, 16, 2, (1, 2)),
    ],
)
def test_steps_and_evaluations(settings, rows, steps, evaluations):
    plan = make_plan(config(**settings), rows)
    assert (plan.steps, plan.evaluations) == (steps, evaluations)
    assert plan.next_evaluation(0) == evaluations[0]


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [("linear", [0, 0.5, 1, 0.875, 0.5, 0]), ("constant", [0, 0.5, 1, 1, 1, 1]), ("cosine", [0, 0.5, 1, None, 0.5, 0])],
)
def test_the_rate_rises_in_the_share_of_the_steps_and_falls_from_its_highest(schedule, rates):
    rate = make_schedule(config(schedule=schedule, warmup_share=0.2, learning_rate=1e-3), 10)
    for step, expected in zip((0, 1, 2, 3, 6, 10), rates, strict=True):
        if expected is not None:
            assert float(rate(step)) == pytest.approx(expected * 1e-3, abs=1e-9)


def test_the_optimizer_has_what_the_settings_say():
    settings = config(weight_decay=0.02, beta_2=0.98, epsilon=1e-8, layer_decay=0.9, clip_norm=0, bias_correction=False)
    optimizer = make_optimizer(settings, make_schedule(settings, 10))
    found = optimizer.get_config()
    expected = {"weight_decay": 0.02, "beta_2": 0.98, "epsilon": 1e-8, "layer_decay": 0.9, "bias_correction": False}
    assert expected.items() <= found.items() and found["global_clipnorm"] is None
    usual = make_optimizer(config(), make_schedule(config(), 10)).get_config()
    assert usual["bias_correction"] is True and usual["global_clipnorm"] == 1.0
