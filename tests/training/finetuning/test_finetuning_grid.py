"""Grids: every combination once, in one order, and what becomes of those that go wrong."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from finetuning_runs import toy_settings

from keras_bert_impl.training.finetuning import grid
from keras_bert_impl.training.finetuning.grid import run_grid, tell_grid
from keras_bert_impl.training.finetuning.one_run import DivergedError
from keras_bert_impl.training.finetuning.seeds import SeedResults

GRID = {"learning_rate": [1e-3, 1e-4, 1e-3], "batch_size": [8, 16], "epochs": [2]}


@pytest.fixture
def try_out(monkeypatch, tmp_path):
    """Goes through the grid with scores by learning rate and batch size; None goes wrong."""

    def run(scores, seeds=(1,)):
        seen, said = [], []

        def fake(bench, config, folder, prefix, title):
            seen.append((config.learning_rate, config.batch_size))
            score = scores[seen[-1]]
            if score is None:
                raise DivergedError("`learning_rate` or the data made the loss infinite")
            results = tuple(
                {"seed": seed, "metrics": {"accuracy": score + seed / 100}, "best_epoch": 1, "warnings": []}
                for seed in config.seeds
            )
            folders = tuple(folder / f"{prefix}seed-{seed}" for seed in config.seeds)
            for place in folders:
                (place / "model").mkdir(parents=True)
            return SeedResults(config, results, folders)

        monkeypatch.setattr(grid, "run_seeds", fake)
        config = toy_settings(Path("toy"), Path("out"), grid=GRID, seeds=seeds)
        return seen, said, lambda: run_grid(SimpleNamespace(say=said.append), config, tmp_path)

    return run


SCORES = {(1e-3, 8): 0.6, (1e-3, 16): 0.8, (1e-4, 8): 0.8, (1e-4, 16): 0.7}


def test_every_combination_is_tried_once_and_only_the_model_of_the_best_is_kept(try_out, tmp_path):
    seen, said, run = try_out(SCORES, seeds=(1, 3))
    best, points = run()
    assert [tuple(point["values"].values())[:2] for point in points] == seen
    assert seen == [(1e-3, 8), (1e-3, 16), (1e-4, 8), (1e-4, 16)]  # as listed
    first = (1e-3, 16)
    assert (best.config.learning_rate, best.config.batch_size) == first
    assert best.mean == pytest.approx(0.82)
    assert {place.parent for place in tmp_path.glob("*/model")} == set(best.folders)
    assert said[0].startswith("Point 1 of 4: learning rate ")
    table = tell_grid(points, "accuracy")
    assert table[0].split() == "learning rate batch size epochs accuracy deviation".split()
    assert [float(line.split()[-2]) for line in table[1:]] == [0.82, 0.82, 0.72, 0.62]


def test_the_order_is_always_the_same(try_out):
    first, _, run = try_out(SCORES)
    run()
    again = try_out(SCORES)
    # The directories are there already.
    with pytest.raises(FileExistsError):
        again[2]()
    assert again[0][0] == first[0]


def test_a_point_that_diverges_is_given_up_and_told(try_out):
    _, said, run = try_out({**SCORES, (1e-3, 16): None})
    best, points = run()
    assert (best.config.learning_rate, best.config.batch_size) == (1e-4, 8)
    assert [point["mean"] for point in points].count(None) == 1
    assert [line for line in said if "is given up. `learning_rate` or the data made the loss infinite." in line]
    assert tell_grid(points, "accuracy")[-1].split()[:3] == ["0.001", "16", "2"]


def test_if_every_point_diverges_that_is_the_error(try_out):
    _, _, run = try_out(dict.fromkeys(SCORES))
    with pytest.raises(DivergedError, match="`learning_rate` or the data made the loss infinite"):
        run()
