"""Fixtures that every room's tests share."""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # as the command line has it
os.environ.pop("PYTHONWARNINGS", None)  # tests read the warnings of the processes they start

import pytest


@pytest.fixture(autouse=True)
def own_environment():
    """The command line sets variables for the processes that it starts; no later test inherits them."""
    os.environ.pop("PYTHONWARNINGS", None)  # from a fixture of the module that called it
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data and weights; the test is skipped where it is absent."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("KERAS_BERT_SHARED", root.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"needs the shared data folder; {folder} has none (set KERAS_BERT_SHARED)")
    return folder
