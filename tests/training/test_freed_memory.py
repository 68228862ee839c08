"""Freed memory is kept; in a process of its own, since it cannot be undone."""

import platform
import subprocess
import sys

import pytest

from keras_bert_impl.training import freed_memory

FAULTS = """
import resource, sys
import numpy as np

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(2**24 // 4, "float32")
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
sys.path.insert(0, sys.argv[1])
from freed_memory import keep_freed_memory
assert keep_freed_memory()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_a_second_array_costs_no_page_faults():
    folder = freed_memory.__file__.rpartition("/")[0]
    found = subprocess.run([sys.executable, "-c", FAULTS, folder], capture_output=True, text=True, check=True).stdout
    before, after = map(int, found.split())
    assert before > 1000 and after < before / 10


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(freed_memory.platform, "libc_ver", lambda: ("musl", "1.2"))
    assert freed_memory.keep_freed_memory() is False
