"""What an extra brings is asked for by the extra's name, without importing it."""

import sys

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra, missing_packages


def test_what_is_missing_is_named_with_the_command_that_installs_it():
    with pytest.raises(
        InputError, match=r"^`x` needs the extra `y`: pip install 'keras-bert-impl\[y\]'\. Missing: a_ and b_$"
    ):
        check_extra("`x`", "y", ["numpy", "a_", "b_"])


def test_nothing_is_said_and_nothing_imported_where_all_is_there(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    check_extra("`x`", "y", ["this"])
    assert missing_packages(["this", "numpy"]) == [] and "this" not in sys.modules
