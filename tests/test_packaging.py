"""The wheel, in an environment of its own, outside the checkout."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from check_types import check_types

ROOT = Path(__file__).resolve().parent.parent


def copy_of_the_checkout(target: Path) -> Path:
    """Copies what git tracks or would track; a build there leaves nothing in the checkout."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    source = copy_of_the_checkout(tmp_path_factory.mktemp("source"))
    dist = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(source)],
        check=True,
        capture_output=True,
    )
    (path,) = dist.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` of a fresh environment: the wheel by pip, its dependencies seen through a path line.

    A path line adds no `.pth` file of the outer environment, so the editable checkout stays out of sight.
    """
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", wheel], check=True, capture_output=True)
    return home / "bin"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, arguments)), cwd=cwd, capture_output=True, text=True, check=False)


def test_the_wheel_holds_the_rooms_under_one_name(wheel):
    names = run(sys.executable, "-m", "zipfile", "-l", wheel, cwd=ROOT).stdout
    assert "keras_bert_impl/training/pretrain.py" in names
    assert "keras_bert_impl/serving/saved_model.py" in names
    assert "keras_bert_impl/py.typed" in names
    assert "unicode" in names, "the frozen Unicode tables travel with the wheel"
    assert "\ntests/" not in names and "\ntraining/" not in names and "\nserving/" not in names


def test_the_installed_command_runs_outside_the_checkout(installed, tmp_path):
    where = run(installed / "python", "-c", "import keras_bert_console as c; print(c.__file__)", cwd=tmp_path)
    assert str(ROOT) not in where.stdout
    assert run(installed / "keras-bert", "--version", cwd=tmp_path).stdout.startswith("keras-bert 0.")
    text = "The cat sat on the mat.\nIt slept there all day.\n\nA dog ran by.\nIt barked at the cat.\n"
    (tmp_path / "text.txt").write_text(text * 5)
    done = run(installed / "keras-bert", "vocab", "text.txt", "--output", "vocab.txt", "--size", 40, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "vocab.txt").read_text().splitlines()
    assert lines[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.mark.slow
def test_the_wheel_asks_for_all_that_it_needs(wheel, tmp_path):
    """Installed with its own requirements only, the core goes from text to a trained model."""
    venv.create(tmp_path / "core", with_pip=True)
    bin_ = tmp_path / "core" / "bin"
    constraint = ["--constraint", ROOT / "constraints.txt"]
    done = run(bin_ / "python", "-m", "pip", "install", "-q", *constraint, wheel, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = "\n\n".join(f"The cat number {i} sat.\nIt slept on mat {i}.\nThen it ran away." for i in range(40))
    (tmp_path / "text.txt").write_text(text)
    phases = '[{"length": 16, "share": 1}]'
    for command in (
        ["vocab", "text.txt", "--output", "vocab.txt", "--size", 90],
        ["prepare", "text.txt", "--vocab", "vocab.txt", "--output", "data", "--lengths", 16],
        ["pretrain", "--data", "data", "--run", "run", "--steps", 2, "--batch-size", 4, "--phases", phases],
        ["fill-mask", "run", "The [MASK] sat."],
        ["export", "run", "export"],
    ):
        done = run(bin_ / "keras-bert", *command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_checkout_takes_its_own_rooms_where_another_is_installed(tmp_path):
    source = copy_of_the_checkout(tmp_path)
    script = (
        "import keras_bert_console, keras_bert_impl.training as training, keras_bert_impl.serving as serving\n"
        "print(training.__file__, serving.__file__)"
    )
    done = run(sys.executable, "-c", script, cwd=source)
    assert done.stdout.split() == [str(source / room / "__init__.py") for room in ("training", "serving")], done.stderr


@pytest.mark.slow
def test_the_type_checker_sees_the_rooms(tmp_path, capfd):
    """A planted error in each room is found; without it the package is clean."""
    source = copy_of_the_checkout(tmp_path)
    assert check_types(source) == 0, capfd.readouterr().out
    for room in ("training", "serving"):
        with (source / room / "__init__.py").open("a") as file:
            file.write("\nplanted: int = 'not a number'\n")
    assert check_types(source) == 1
    found = capfd.readouterr().out
    assert "training/__init__.py" in found and "serving/__init__.py" in found
