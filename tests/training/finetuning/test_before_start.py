"""What is said of a fine-tuning before TensorFlow's start, and what the command line makes of it."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from finetuning_runs import write_toy_files

from keras_bert_impl import cli
from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning import before_start


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_toy_files(tmp_path_factory.mktemp("toy"), train=4, dev=4)


def finetune(capsys, folder, *more, **changes):
    options = {"task": "classification", "model": folder / "model", "train": folder / "train.tsv"}
    options |= {"output": folder / "out"} | changes
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    return cli.main(["finetune", *words, *more]), capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": "nothing.tsv"}, "`train` must be files of labelled examples. Received: 'nothing.tsv', which is not"),
        ({"model": "nothing"}, "Received: 'nothing', which is not there; nothing is downloaded"),
        ({"metric": "bleu"}, "`metric` must be accuracy, f1, f1_macro, f1_micro or matthews."),
        (
            {"learning_rates": 1},
            "unrecognized arguments: --learning-rates 1. Did you mean --learning-rate? Known settings: batch_size, ",
        ),
    ],
)
def test_what_is_wrong_with_the_settings_is_said_in_a_sentence(capsys, folder, monkeypatch, changes, message):
    def started(verbose):
        raise AssertionError("TensorFlow was started")

    monkeypatch.setattr("keras_bert_impl.commands.finetune.import_tensorflow", started)
    code, error = finetune(capsys, folder, **changes)
    assert code == 2 and message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["finetune", "--max_length", "5"], "Did you mean --max-length? "),
        (["predict", "m", "--inputt", "a", "--modell", "b"], "Did you mean --input? "),
        (
            ["finetune", "--config", "c.yaml"],
            "`max_lenght` is not a setting of `finetune`. Did you mean `max_length`? ",
        ),
        (["finetune", "--zzzz", "5"], "unrecognized arguments: --zzzz 5. Known settings: "),
    ],
)
def test_the_setting_that_was_meant_is_named(words, meant, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("max_lenght: 3\n")
    required = ["--task", "qa", "--model", "m", "--train", "a", "--output", "o"] if words[0] == "finetune" else []
    assert cli.main([words[0], *required, *words[1:]]) == 2 and meant in capsys.readouterr().err


def test_names_of_columns_are_asked_for_by_their_options(capsys):
    cli._complain("`text_pair_column` must name the column of the second text; 'a.tsv' has the columns 'label_column'")
    assert "`--text-pair-column` must name" in (error := capsys.readouterr().err) and "'label_column'" in error


def test_an_output_with_content_is_refused_before_the_start(capsys, folder, monkeypatch):
    monkeypatch.setattr("keras_bert_impl.commands.finetune.import_tensorflow", None)
    code, error = finetune(capsys, folder, output=folder)
    assert code == 2 and "`output` must be a new or empty directory." in error and "which has content" in error


def test_a_grid_without_its_package_names_the_extra(capsys, folder, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "optuna" else find(name))
    code, error = finetune(capsys, folder, grid='{"learning_rate": [0.001]}')
    assert code == 2 and "`grid` needs the extra `tuner`: pip install 'keras-bert-impl[tuner]'." in error


def test_settings_may_come_from_a_file_and_options_override_it(capsys, folder, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr("keras_bert_impl.commands.finetune.import_tensorflow", lambda verbose: None)
    monkeypatch.setattr(
        "keras_bert_impl.training.finetuning.finetune.finetune", lambda config, say: seen.append(config)
    )
    file = tmp_path / "settings.yaml"
    file.write_text("learning_rate: 0.001\nepochs: 7\nseeds: [4, 5]\ngrid: {original: true}\n", encoding="utf-8")
    code, error = finetune(capsys, folder, "--config", str(file), "--epochs", "2")
    assert (code, error) == (0, "")
    assert (seen[0].learning_rate, seen[0].epochs, seen[0].seeds) == (0.001, 2, (4, 5))
    assert seen[0].grid["batch_size"] == [16, 32]


def test_a_directory_of_examples_and_a_model_without_vocabulary_are_refused(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model", ignore=shutil.ignore_patterns("vocab.txt"))
    (tmp_path / "empty").mkdir()
    for changes, message in (
        ({"dev": (str(folder),)}, r"`dev` must be files of labelled examples\. Received: '.*', a directory"),
        ({"model": str(tmp_path / "model")}, r"`model` must have its vocabulary beside its weights\. Received: '"),
        ({"model": str(tmp_path / "empty")}, r"`model` must be a model directory .*, which has no config\.json"),
    ):
        settings = {"task": "classification", "model": str(folder / "model"), "train": (str(folder / "train.tsv"),)}
        with pytest.raises(InputError, match=message):
            before_start.check_settings(FinetuneConfig(**{**settings, "output": "out", **changes}))


@pytest.mark.slow
def test_checks_open_no_tensorflow():
    script = (
        "import keras_bert_console, sys\n"
        f"import {before_start.__name__}\n"
        "assert not {'tensorflow', 'keras', 'optuna', 'sklearn'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
