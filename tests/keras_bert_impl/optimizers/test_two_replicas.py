"""Steps on two replicas against one, in a process of its own: there the CPU is cut in two before TensorFlow starts."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_two_replicas_take_the_step_of_one():
    script = Path(__file__).parent / "two_replicas.py"
    finished = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr[-2000:]
