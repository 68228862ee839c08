"""Every recipe can be run, says where it is from, and gives the published steps and learning rates."""

import re

import keras
import numpy as np
import pytest
import yaml

from keras_bert_impl.cli import main
from keras_bert_impl.errors import InputError
from keras_bert_impl.optimizers import BertAdamW, BertLamb
from keras_bert_impl.training import recipes
from keras_bert_impl.training.configs import PretrainConfig
from keras_bert_impl.training.optimization import make_optimizer, make_schedule, with_learning_rates
from keras_bert_impl.training.phases import plan_phases


def config_of(name):
    values = yaml.safe_load(recipes.path(name).read_text(encoding="utf-8"))
    return with_learning_rates(PretrainConfig.from_dict({**values, "data": "DATA", "run": "RUN"}))


def planned(name):
    return [(phase.length, phase.batch_size, phase.last_step) for phase in plan_phases(config_of(name))]


def rates(name, *steps):
    return keras.ops.convert_to_numpy(make_schedule(config_of(name))(np.array(steps)))


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_begins_with_source_command_cost_and_expected_result(name):
    comments = []
    for line in recipes.path(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        comments.append(line)
    heads = [match[1] for match in (re.match(r"# (\w[\w ]*?):", line) for line in comments) if match]
    assert heads == ["Source", "Command", "Cost", "Expected result"]
    assert all(line.startswith(("#   ", "# ")) and len(line) <= 120 for line in comments)
    assert f"keras-bert pretrain --recipe {name} " in "\n".join(comments)


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_gives_a_schedule_and_an_optimizer(name):
    config = config_of(name)
    schedule = make_schedule(config)
    assert float(schedule(0)) == 0
    assert float(schedule(config.total_steps)) == pytest.approx(config.end_learning_rate)
    make_optimizer(config, schedule)


def test_bert_base_has_the_published_figures():
    assert planned("bert-base") == [(128, 256, 900_000), (512, 256, 1_000_000)]
    expected = [0.5e-4, 0.99e-4, 0.5e-4, 0.1e-4]
    np.testing.assert_allclose(rates("bert-base", 5_000, 10_000, 500_000, 900_000), expected, rtol=1e-4)
    optimizer = make_optimizer(config_of("bert-base"), make_schedule(config_of("bert-base"))).get_config()
    del optimizer["learning_rate"]
    original = BertAdamW(0.1).get_config()
    assert optimizer == {name: original[name] for name in optimizer}


def test_lamb_has_nvidia_s_two_phases():
    assert planned("bert-base-lamb") == [(128, 65_536, 7038), (512, 32_768, 8601)]
    steps = [2000, 2001, 5000, 7037, 7038 + 100, 7038 + 200, 7038 + 1000]
    of_phases = [
        6e-3 * 2000 / 2001,
        6e-3 * (1 - 2001 / 7038) ** 0.5,
        6e-3 * (1 - 5000 / 7038) ** 0.5,
        6e-3 * (1 / 7038) ** 0.5,
        4e-3 * 0.5,
        4e-3 * (1 - 200 / 1563) ** 0.5,
        4e-3 * (1 - 1000 / 1563) ** 0.5,
    ]
    np.testing.assert_allclose(rates("bert-base-lamb", *steps), of_phases, rtol=1e-3)
    optimizer = make_optimizer(config_of("bert-base-lamb"), make_schedule(config_of("bert-base-lamb")))
    assert isinstance(optimizer, BertLamb)
    assert optimizer.bias_correction


def test_the_single_phase_has_roberta_s_figures():
    assert planned("bert-base-single-phase") == [(512, 2048, 125_000)]
    steps, expected = [5000, 10_000, 67_500, 125_000], [2.5e-4, 5e-4, 2.5e-4, 0]
    np.testing.assert_allclose(rates("bert-base-single-phase", *steps), expected, rtol=1e-4)
    config = config_of("bert-base-single-phase")
    assert (config.beta_2, config.epsilon, config.weight_decay, config.clip_norm) == (0.98, 1e-6, 0.01, 0)


def test_the_mosaic_recipe_masks_30_percent_and_warms_up_for_6():
    assert planned("mosaic-like") == [(128, 4096, 70_000)]
    np.testing.assert_allclose(rates("mosaic-like", 2100, 4200, 70_000), [2.5e-4, 5e-4, 1e-5], rtol=1e-4)
    config = config_of("mosaic-like")
    # Of what is left at the highest rate, a step takes away as much as in the source.
    assert (config.masked_share, config.beta_2) == (0.3, 0.98)
    assert config.weight_decay * config.learning_rate == pytest.approx(1e-5)


def test_a_recipe_is_named_on_the_command_line_and_options_override_it(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("keras_bert_impl.training.pretrain.pretrain", lambda config, say: seen.append(config))
    arguments = ["pretrain", "--recipe", "bert-base", "--data", "DATA", "--run", "RUN", "--batch-size", "128"]
    assert main(arguments) == 0
    assert (seen[0].batch_size, seen[0].warmup_steps, seen[0].phases[0].packed) == (128, 10_000, False)
    assert main(["pretrain", "--recipe=bert", "--data", "DATA", "--run", "RUN"]) == 2
    assert "`recipe` must be one of bert-base, " in capsys.readouterr().err


def test_an_unknown_recipe_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"`recipe` must be one of bert-base, .*two-hours\. Received: recipe='bert'"):
        recipes.path("bert")
