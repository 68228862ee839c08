"""A whole fine-tuning: what it says, what it leaves, and what it refuses."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from finetuning_runs import ToyTask, toy_settings, toy_texts, write_toy_files

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier
from keras_bert_impl.tasks import TextClassification
from keras_bert_impl.tasks.examples import TextExample
from keras_bert_impl.training.finetuning.finetune import Examples, _say_plan, finetune
from keras_bert_impl.training.finetuning.one_run import as_score
from keras_bert_impl.training.finetuning.seeds import SeedResults, seed_warnings, tell_seeds
from keras_bert_impl.training.finetuning.task import Evaluation


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_toy_files(tmp_path_factory.mktemp("toy"))


class ScriptedTask(ToyTask):
    """Has the accuracies that it is told, evaluation by evaluation."""

    accuracies = (0.5, 0.8, 0.8, 0.6, 0.7, 0.9)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.weights = []

    def evaluate(self, model, examples):
        self.weights.append(np.array(model.trainable_variables[0].numpy()))
        place = min(len(self.weights), len(self.accuracies)) - 1
        return Evaluation({"accuracy": self.accuracies[place]}, [{"text": example.text} for example in examples])


@pytest.fixture(scope="module")
def done(folder):
    """A fine-tuning of five epochs, of which the second is the best, with patience for two evaluations."""
    said, tasks = [], []

    def make(*arguments):
        tasks.append(ScriptedTask(*arguments))
        return tasks[0]

    config = toy_settings(folder, folder / "done", epochs=5, patience=2)
    metrics = finetune(config, said.append, task_type=make)
    return config, metrics, said, tasks[0]


def test_the_first_of_the_best_evaluations_is_kept_and_patience_ends_the_run(folder, done):
    _, metrics, said, task = done
    assert metrics["best_step"] == 16 and metrics["best_epoch"] == 2 and metrics["metrics"] == {"accuracy": 0.8}
    assert metrics["seeds"][0]["steps"] == 32
    assert "Ends after step 32: 2 evaluations without a better one." in said
    kept = BertClassifier.from_pretrained(folder / "done").trainable_variables[0].numpy()
    np.testing.assert_array_equal(kept, task.weights[1])


def test_what_is_said(folder, done):
    _, _, said, _ = done
    output = folder / "done"
    # The bar goes to the error stream.
    assert said[1] == "60 rows in 8 steps of 8, 5 times: 40 steps, 4 steps of them warm-up to a learning rate of 0.003."
    assert re.fullmatch(r"Epoch 1 of 5, step 8 of 40: loss 0\.\d{4}, dev accuracy 0\.5000, \d+ examples/s", said[2])
    assert said[3].endswith(" (best so far)") and not said[4].endswith(")")
    assert said[-4:] == [
        f"Report: {output}/finetuning/report.html",
        "Accuracy 0.8000 on 20 dev examples.",
        f"The model is in {output}.",
        f"Next: keras-bert predict {output} --input FILE",
    ]


def test_what_is_left(folder, done):
    _, metrics, _, _ = done
    output = folder / "done"
    names = ["config.json", "model.safetensors", "task.json", "tokenizer_config.json", "vocab.txt"]
    assert sorted(path.name for path in output.iterdir()) == [*names[:1], "finetuning", *names[1:]]
    inner = output / "finetuning"
    assert sorted(path.name for path in inner.iterdir()) == [
        "config.json",
        "dev_predictions.jsonl",
        "metrics.json",
        "metrics.jsonl",
        "report.html",
    ]
    assert json.loads((inner / "metrics.json").read_text()) == metrics
    assert json.loads((inner / "config.json").read_text())["learning_rate"] == 3e-3
    assert len((inner / "dev_predictions.jsonl").read_text().splitlines()) == 20
    lines = [json.loads(line) for line in (inner / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], line["epoch"], line["dev_accuracy"]) for line in lines] == [
        (8, 1, 0.5),
        (16, 2, 0.8),
        (24, 3, 0.8),
        (32, 4, 0.6),
    ]
    assert all(line["loss"] > 0 and line["examples"] == 60 and line["skipped_steps"] == 0 for line in lines)
    assert not (folder / ".done.unfinished").exists()


def test_the_model_can_be_asked_and_saved(folder, done, tmp_path):
    asked = TextClassification(folder / "done")
    assert asked.settings.task == "classification" and asked.labels == ("bad", "good")
    asked.save(tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir())[-3:] == [
        "task.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]


def test_the_same_again_says_that_it_is_finished(folder, done):
    config, metrics, _, _ = done
    said = []
    assert finetune(config, said.append, task_type=ToyTask) == metrics
    assert said[0] == f"{folder / 'done'} is finished already, by the same settings."
    assert said[-1].startswith("Next: keras-bert predict ")


def test_an_output_of_another_command_is_refused(folder, done):
    config, _, _, _ = done
    with pytest.raises(
        InputError,
        match=r"`output` must be a new or empty directory; name another one, .*\. "
        r"Received: '.*done', which holds the model of another "
        r"command, where learning_rate was 0\.003",
    ):
        finetune(dataclasses.replace(config, learning_rate=1e-3), task_type=ToyTask)
    other = Examples([TextExample(text, label=label) for label, text in toy_texts(9)])
    with pytest.raises(InputError, match=r"which holds the model of another command, where examples had another"):
        finetune(config, examples=other, task_type=ToyTask)
    (folder / "full").mkdir()
    (folder / "full" / "file").touch()
    with pytest.raises(InputError, match=r"`output` must be a new or empty directory\. .*, which has content"):
        finetune(dataclasses.replace(config, output=str(folder / "full")), task_type=ToyTask)


def test_what_is_wrong_with_examples_leaves_nothing(folder, tmp_path):
    bad = tmp_path / "bad.tsv"
    bad.write_text("ugly\ta film\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"`train` must have the labels bad and good"):
        finetune(toy_settings(folder, tmp_path / "out", train=(str(bad),)), task_type=ToyTask)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.tsv"]


@pytest.mark.slow
def test_dev_examples_that_are_trained_on_are_counted_and_said(folder, tmp_path):
    class StoppedTask(ToyTask):
        def prepare(self, train, dev):
            raise InputError("`train` is read.")

    said = []
    config = toy_settings(folder, tmp_path / "output", dev=(str(folder / "train.tsv"), str(folder / "dev.tsv")))
    with pytest.raises(InputError, match="`train` is read"):
        finetune(config, said.append, task_type=StoppedTask)
    assert said == [
        "75% of the dev examples (60 of 80) are trained on, too; on new texts the model does worse than on these."
    ]


def test_of_three_rows_all_are_trained_on_and_the_last_epoch_is_kept(folder, tmp_path):
    (tmp_path / "three.tsv").write_text("good\ta fine film\nbad\ta dull film\ngood\ta nice song\n", encoding="utf-8")
    said = []
    settings = {"train": (str(tmp_path / "three.tsv"),), "dev": (), "patience": 1, "seeds": (4, 5)}
    metrics = finetune(toy_settings(folder, tmp_path / "out", **settings), said.append, task_type=ToyTask)
    assert said[0] == (
        "No dev examples were given, and 10% of 3 examples would be fewer than 4: all are trained on, nothing is "
        "measured, and the model of the last epoch is kept."
    )
    assert metrics["metrics"] == {} and metrics["best_step"] == 2 and metrics["best_seed"] == 4
    assert "Without dev examples no seed is better than another; the model of seed 4 is kept." in said
    assert said[-2] == f"The model is in {tmp_path / 'out'}."
    with pytest.raises(InputError, match=r"`dev` must be given with a grid where there are few examples"):
        grid = {"learning_rate": [1e-3]}
        finetune(toy_settings(folder, tmp_path / "grid", **settings, grid=grid), task_type=ToyTask)
    assert not (tmp_path / ".grid.unfinished").exists()


@pytest.mark.slow
def test_without_dev_examples_a_share_is_held_out_and_said(folder, tmp_path):
    said = []
    settings = toy_settings(folder, tmp_path / "out", dev=(), dev_share=0.2)
    metrics = finetune(settings, said.append, task_type=ToyTask)
    assert said[0] == (
        "No dev examples were given: 12 of 60 (20%), chosen by their texts, are not trained on, and the best model is "
        "chosen by them."
    )
    assert (metrics["train_examples"], metrics["dev_examples"], metrics["dev_from_train"]) == (48, 12, True)


@pytest.mark.slow
def test_several_seeds_give_a_table_and_the_best_is_kept(folder, tmp_path):
    said = []
    settings = toy_settings(folder, tmp_path / "out", seeds=(1, 2, 3), epochs=12, learning_rate=1e-2)
    metrics = finetune(settings, said.append, task_type=ToyTask)
    scores = [result["metrics"]["accuracy"] for result in metrics["seeds"]]
    assert len(set(scores)) > 1
    assert metrics["best_seed"] == (1, 2, 3)[scores.index(max(scores))]
    assert metrics["mean"] == pytest.approx(np.mean(scores))
    assert metrics["deviation"] == pytest.approx(np.std(scores, ddof=1))
    assert said[-3] == (
        f"Accuracy {np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f} over 3 seeds; the best, seed "
        f"{metrics['best_seed']}, {max(scores):.4f} on 20 dev examples."
    )
    table = said[said.index("  seed    accuracy  best epoch") :]
    assert table[1].split()[:2] == ["1", f"{scores[0]:.4f}"] and table[4].split()[0] == "mean"
    lines = (tmp_path / "out" / "finetuning" / "metrics.jsonl").read_text().splitlines()
    assert {json.loads(line)["seed"] for line in lines} == {1, 2, 3}
    alone = finetune(
        dataclasses.replace(settings, seeds=(metrics["best_seed"],), output=str(tmp_path / "alone")), task_type=ToyTask
    )
    assert alone["metrics"] == metrics["metrics"]
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "alone")]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_every_point_of_a_grid_is_tried_and_the_best_is_kept(folder, tmp_path):
    said = []
    grid = {"learning_rate": [1e-2, 1e-5, 1e-2], "batch_size": [8, 20]}
    settings = toy_settings(folder, tmp_path / "out", epochs=6, grid=grid)
    metrics = finetune(settings, said.append, task_type=ToyTask)
    points = [tuple(point["values"].values()) for point in metrics["grid"]]
    assert sorted(points) == [(1e-5, 8), (1e-5, 20), (1e-2, 8), (1e-2, 20)]
    means = [point["mean"] for point in metrics["grid"]]
    best = metrics["grid"][means.index(max(means))]["values"]
    assert metrics["chosen"] == best and best["learning_rate"] == 1e-2
    assert metrics["metrics"]["accuracy"] == max(means)
    assert next(line for line in said if line.startswith("Point ")).startswith("Point 1 of 4: learning rate ")
    header = next(i for i, line in enumerate(said) if line.split() == "learning rate batch size accuracy".split())
    assert said[header + 1].split()[0] == "0.01"
    alone = dataclasses.replace(settings, grid=None, output=str(tmp_path / "alone"), **best)
    finetune(alone, task_type=ToyTask)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "alone")]
    assert weights[0] == weights[1]


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_run_with_a_sentence(folder, tmp_path):
    class Endless(ToyTask):
        def loss_sums(self, outputs, targets):
            loss_sum, weight = super().loss_sums(outputs, targets)
            return loss_sum / 0.0, weight

    with pytest.raises(
        InputError,
        match=r"`learning_rate` or the data made the loss or its gradient infinite or not a number in more than 10 "
        r"steps, so the training stopped; no skipped step changed a weight\. Received: 16 such steps, the first 1 and "
        r"the last 16, at learning_rate=",
    ):
        finetune(toy_settings(folder, tmp_path / "out", evaluations=1), task_type=Endless)
    assert list(tmp_path.iterdir()) == []


def results(*scores, warnings=()):
    config = toy_settings_without_files(seeds=tuple(range(len(scores))))
    found = tuple(
        {
            "seed": seed,
            "metrics": {"accuracy": score},
            "best_epoch": 1.0,
            "warnings": list(warnings) if seed == 0 else [],
        }
        for seed, score in enumerate(scores)
    )
    return SeedResults(config, found, ())


def toy_settings_without_files(**changes):
    return toy_settings(Path("toy"), Path("out"), **changes)


def test_seeds_that_differ_much_or_are_odd_are_warned_of():
    assert seed_warnings(results(0.8, 0.82, 0.81)) == []
    assert seed_warnings(results(0.5, 0.9, 0.7)) == [
        "The seeds differ much: accuracy from 0.5000 to 0.9000. Which is the best is more luck than merit; more "
        "examples or epochs help."
    ]
    assert seed_warnings(results(0.8, 0.82, warnings=["Gives one class alone."])) == [
        "1 seed of 2 ended with a model that is odd: 0. More epochs, another learning "
        "rate (small models often need 1e-4 or 3e-4) or a longer warm-up may help."
    ]


def test_a_metric_that_is_not_defined_is_the_worst():
    found = results(None, 0.1, 0.1)
    assert found.best == 1 and found.deviation is None and found.summary()["mean"] is None
    assert tell_seeds(found, ["dev"])[1].split()[:3] == ["0", "not", "defined"]
    assert as_score(float("nan")) == as_score(None) == -float("inf")


def test_a_directory_of_another_kind_in_the_place_of_the_unfinished_is_left_alone(folder, tmp_path):
    (tmp_path / ".out.unfinished").mkdir()
    (tmp_path / ".out.unfinished" / "mine").touch()
    with pytest.raises(InputError, match=r"`output` must leave '.*\.out\.unfinished' to what is unfinished of it"):
        finetune(toy_settings(folder, tmp_path / "out"), task_type=ToyTask)
    shutil.rmtree(tmp_path / ".out.unfinished")


@pytest.mark.slow
def test_two_replicas_and_micro_batches_give_the_model_of_one(tmp_path):
    """With the real task, whose evaluation is compiled; 60 rows are seven batches of 8 and one of 4."""
    still = write_toy_files(tmp_path, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    metrics, weights = [], []
    for name, layout in (("one", {"replicas": 1}), ("two", {"replicas": 2, "micro_batches": 2})):
        columns = {"text_column": "2", "label_column": "1", "header": "no"}
        metrics.append(finetune(toy_settings(still, tmp_path / name, **layout, **columns)))
        weights.append({w.path: w.numpy() for w in BertClassifier.from_pretrained(tmp_path / name).weights})
    assert metrics[0]["metrics"]["accuracy"] == metrics[1]["metrics"]["accuracy"]
    for path, values in weights[0].items():
        # No output depends on the bias of keys: its gradient is rounding alone, which Adam makes a step of.
        if not path.endswith("key/bias"):
            np.testing.assert_allclose(weights[1][path], values, atol=1e-5, rtol=0, err_msg=path)


@pytest.mark.slow
def test_what_is_chosen_on_the_dev_examples_is_of_one_seed_and_measured(folder, tmp_path):
    class ChoosingTask(ToyTask):
        seen: list = []  # noqa: RUF012

        def evaluate(self, model, examples):
            self.seen.append(self.settings.label_threshold)
            return dataclasses.replace(super().evaluate(model, examples), metrics={"accuracy": 0.5})

        def finish(self, model, dev):
            self.settings = dataclasses.replace(self.settings, label_threshold=0.7)

    finetune(toy_settings(folder, tmp_path / "out", seeds=(1, 2), epochs=1), task_type=ChoosingTask)
    assert ChoosingTask.seen == [0.5, 0.7, 0.5, 0.7]
    assert json.loads((tmp_path / "out" / "task.json").read_text())["label_threshold"] == 0.7


@pytest.mark.parametrize(
    ("epochs", "warmup_share", "sentence"),
    [
        (1, 0.0, "60 rows in 8 steps of 8, once: 8 steps, without warm-up, from a learning rate of 0.001."),
        (1, 0.1, "60 rows in 8 steps of 8, once: 8 steps, 1 step of them warm-up to a learning rate of 0.001."),
        (
            2.5,
            0.1,
            "60 rows in 8 steps of 8, 2.5 times: 20 steps, 2 steps of them warm-up to a learning rate of 0.001.",
        ),
    ],
)
def test_the_plan_is_told_in_words(epochs, warmup_share, sentence):
    config = toy_settings(Path("toy"), Path("out"), epochs=epochs, warmup_share=warmup_share)
    said = []
    _say_plan(dataclasses.replace(config, batch_size=8, learning_rate=1e-3), 60, said.append)
    assert said == [sentence]
