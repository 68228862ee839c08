"""The arrows between the rooms: who may open whom."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NO_TENSORFLOW = [
    "keras_bert_impl/config.py",
    "keras_bert_impl/presets.py",
    "keras_bert_impl/errors.py",
    "keras_bert_impl/atomic.py",
    "keras_bert_impl/inspection.py",
    "keras_bert_impl/demo.py",
    "keras_bert_impl/tasks/examples.py",
    "keras_bert_impl/tasks/settings.py",
    "keras_bert_impl/tokenization/wordpiece.py",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "training" / "configs").glob("*.py"))),
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "training" / "finetuning" / "data").glob("*.py"))),
]


def imported(path: Path) -> set[str]:
    """Returns the full names of all modules that a file imports, anywhere in it."""
    package = list(path.relative_to(ROOT).parent.parts)
    if package[0] in ("training", "serving"):
        package = ["keras_bert_impl", *package]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def opens(path: Path, *rooms: str) -> set[str]:
    return {name for name in imported(path) if any(name == r or name.startswith(r + ".") for r in rooms)}


def test_the_library_opens_neither_training_nor_serving():
    front_door = {ROOT / "keras_bert_impl" / "cli.py", *files("keras_bert_impl/commands")}
    for path in files("keras_bert_impl"):
        if path not in front_door:
            assert not opens(path, "keras_bert_impl.training", "keras_bert_impl.serving"), path


@pytest.mark.parametrize("room,other", [("training", "serving"), ("serving", "training")])
def test_training_and_serving_do_not_open_one_another(room, other):
    for path in files(room):
        assert not opens(path, f"keras_bert_impl.{other}", other), path


@pytest.mark.parametrize("room", ["keras_bert_impl", "training", "serving", "benchmarks"])
def test_nobody_opens_a_room_by_its_bare_name(room):
    """`import training` would make a second identity of every class."""
    for path in files(room):
        assert not opens(path, "training", "serving"), path


@pytest.mark.parametrize("room", ["layers", "models"])
def test_layers_and_models_use_no_tensorflow(room):
    for path in files(f"keras_bert_impl/{room}"):
        assert not opens(path, "tensorflow", "tensorflow_text"), path


def test_layers_know_no_model():
    for path in files("keras_bert_impl/layers"):
        assert not opens(path, "keras_bert_impl.models", "keras_bert_impl.checkpoints"), path


@pytest.mark.parametrize("path", NO_TENSORFLOW)
def test_settings_and_plain_files_import_no_tensorflow(path):
    top_level = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    names = [alias.name for node in top_level if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in top_level if isinstance(node, ast.ImportFrom)]
    assert not [name for name in names if name.split(".")[0] in ("tensorflow", "keras", "keras_hub")]


def test_a_checkout_exposes_just_the_two_rooms():
    script = (
        "import keras_bert_console, importlib.util as u\n"
        "import keras_bert_impl.training, keras_bert_impl.serving\n"
        "for name in ('tests', 'docs', 'benchmarks', 'keras_bert_impl', 'setup'):\n"
        "    assert u.find_spec(f'keras_bert_impl.{name}') is None, name\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT.parent)


def test_a_bare_import_is_enough_to_load_a_saved_model(tmp_path):
    path = tmp_path / "model.keras"
    make = (
        "import keras_bert_impl as k\n"
        "config = k.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,"
        " intermediate_size=16, max_position_embeddings=16)\n"
        f"k.BertPretrainer(config).save({str(path)!r})\n"
    )
    load = f"import keras_bert_impl, keras\nprint(type(keras.models.load_model({str(path)!r})).__name__)\n"
    for script in (make, load):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["BertPretrainer"]


def test_no_two_test_helpers_share_a_name_with_a_room():
    assert not {path.stem for path in (ROOT / "tests").glob("*.py")} & {"training", "serving", "keras_bert_impl"}
