"""Two trainings never mix in one run directory."""

import subprocess
import sys

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.run_lock import sole_trainer

HOLD = """
import sys, time
from pathlib import Path
import keras_bert_console
from keras_bert_impl.training.run_lock import sole_trainer
with sole_trainer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_trainer_is_refused_until_the_first_has_ended_however(tmp_path):
    first = subprocess.Popen([sys.executable, "-P", "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "held\n"
    with pytest.raises(InputError, match="`run` must not be in use by another process"), sole_trainer(tmp_path):
        pass
    first.kill()
    first.wait()
    with sole_trainer(tmp_path):
        pass


def test_a_failure_before_anything_was_written_leaves_no_directory(tmp_path):
    with pytest.raises(RuntimeError), sole_trainer(tmp_path / "new" / "run"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
