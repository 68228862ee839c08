"""The README's tour does what it says: its commands are run, in order, in one folder."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from toy_data import toy_config

from keras_bert_impl import BertPretrainer
from keras_bert_impl.training.prepare import prepare

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


PLAIN_KERAS = (ROOT / "docs" / "model_directory.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def commands() -> list[str]:
    """Returns the lines that a person types; a trailing backslash goes on."""
    text = "".join(blocks("console")).replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def test_the_two_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make (\S+)", "".join(blocks("sh")), re.M)
    assert targets[:2] == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)


def test_every_file_the_readme_points_to_is_there():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def training_from_python() -> str:
    (block,) = (block for block in blocks("python") if "fit(" in block)
    return block


def test_training_from_python_takes_fewer_than_fifteen_lines():
    assert len([line for line in training_from_python().splitlines() if line.strip()]) < 15


def test_fine_tuning_from_python_takes_fewer_than_twelve_lines():
    (block,) = (block for block in blocks("python") if "finetune_texts(" in block)
    assert len([line for line in block.splitlines() if line.strip()]) < 12


@pytest.mark.slow
def test_training_from_python_runs(tmp_path, monkeypatch):
    prepare(toy_config(tmp_path, lengths=(128,)))
    monkeypatch.chdir(tmp_path)
    exec(training_from_python(), {})
    epochs = list(csv.DictReader(Path("losses.csv").read_text(encoding="utf-8").splitlines()))
    assert len(epochs) == 3
    assert float(epochs[-1]["mlm_loss"]) < float(epochs[0]["mlm_loss"])
    assert BertPretrainer.from_pretrained("my-model").load_report.complete


@pytest.mark.slow
def test_the_tour_runs(tmp_path):
    if not shutil.which("curl"):
        pytest.skip("the tour asks the server with curl, which is not installed")
    scripts = Path(sys.executable).parent
    script = "\n".join(["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", *commands()])
    for number, block in enumerate([*blocks("python"), *blocks("python", PLAIN_KERAS)]):
        (tmp_path / f"block_{number}.py").write_text(block, encoding="utf-8")
        script += f"\npython block_{number}.py"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert '"predictions"' in done.stdout
