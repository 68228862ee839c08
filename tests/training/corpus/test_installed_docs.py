import subprocess
import sys
from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus import installed_docs
from keras_bert_impl.training.corpus.installed_docs import source_files, unrepeated, write_installed_docs

LONG = "This paragraph has enough words to be kept as a document of its own, which takes fifteen of them."

OTHER = "The weather of the day is told here at some length, so that nobody who reads it will go out without a coat."
THIRD = "It is the third of the texts, and has in common with the first two no more than that it is a text as well."
TEXTS = {"library/b.py": LONG, "library/a.py": OTHER, "site/thing/__init__.py": OTHER, "site/thing/part/x.py": THIRD}


@pytest.fixture(autouse=True)
def few_words_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed_docs, "LEAST_WORDS", 15)


def test_a_paragraph_that_is_nearly_another_goes():
    nearly = OTHER.replace("a coat", "his coat")
    assert list(unrepeated([[OTHER], [nearly, THIRD]])) == [[OTHER], [THIRD]]


def test_a_document_may_repeat_its_own_words():
    half = OTHER.split(",")[0] + ", or so they say who have been here for longer than the two of us together."
    assert list(unrepeated([[OTHER, half]])) == [[OTHER, half]]


def test_a_paragraph_occurs_once_up_to_names_and_numbers():
    again = LONG.replace("paragraph", "paragraph np.sum 15")
    assert list(unrepeated([[LONG], [again, OTHER], [LONG, OTHER]])) == [[LONG], [OTHER]]


def test_documents_of_few_words_go():
    assert list(unrepeated([["Too short to be a document."], [LONG]])) == [[LONG]]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A standard library and a package of our own; importing either would fail."""
    broken = "raise ImportError('must not be imported')\n"
    for name, text in TEXTS.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""{text}\n"""\n{broken}', encoding="utf-8")
    for name in ("library/test/t.py", "library/test_x.py", "site/thing/x_test.py", "library/site-packages/y.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""Of a test: {LONG}"""', encoding="utf-8")
    monkeypatch.setattr(installed_docs.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path / "library")})
    monkeypatch.setattr(installed_docs, "PACKAGES", ("thing", "not_installed_anywhere"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path


def test_sources_come_in_a_fixed_order_without_tests(packages: Path):
    names = [path.relative_to(packages).as_posix() for path in source_files()]
    assert names == ["library/a.py", "library/b.py", "site/thing/__init__.py", "site/thing/part/x.py"]


def test_a_document_per_object_with_blank_lines_between(packages: Path):
    said: list[str] = []
    path = write_installed_docs(packages / "docs.txt", say=said.append)
    # Those of the library first, by name; what the package says again is not told twice.
    assert path.read_text(encoding="utf-8") == f"{OTHER}\n\n{LONG}\n\n{THIRD}\n\n"
    assert said[0].startswith("Took 3 documents, ") and said[0].endswith(f"from the installed packages: {path}")


def test_no_documentation_is_an_error_and_leaves_nothing(packages: Path):
    for path in list(source_files()):
        path.write_text("pass", encoding="utf-8")
    with pytest.raises(InputError, match="The installed Python packages carry no documentation"):
        write_installed_docs(packages / "docs.txt")
    assert not list(packages.glob("*docs.txt*"))


def test_the_size_is_a_limit(packages: Path):
    everything = write_installed_docs(packages / "docs.txt").stat().st_size
    assert write_installed_docs(packages / "docs.txt", max_bytes=everything).stat().st_size == everything
    assert write_installed_docs(packages / "docs.txt", max_bytes=everything - 1).stat().st_size < everything


def test_the_module_is_a_command_that_opens_no_tensorflow(tmp_path: Path):
    script = (
        "import sys, keras_bert_console, runpy\n"
        "sys.argv = ['x', '--output', sys.argv[1], '--max-bytes', '20000']\n"
        "runpy.run_module('keras_bert_impl.training.corpus.installed_docs', run_name='__main__')\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "docs.txt")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "from the installed packages" in done.stdout
    assert 15_000 < (tmp_path / "docs.txt").stat().st_size <= 20_000
