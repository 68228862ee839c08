import unicodedata

import numpy as np
import pytest

from keras_bert_impl.tokenization.make_unicode_tables import main, make_tables
from keras_bert_impl.tokenization.unicode_tables import (
    CJK,
    DROPPED,
    MARK,
    PUNCTUATION,
    SPACE,
    TABLES_FILE,
    UNICODE_VERSION,
    unicode_tables,
)

same_unicode = pytest.mark.skipif(
    unicodedata.unidata_version != UNICODE_VERSION, reason="needs a Python with the frozen Unicode version"
)


@pytest.mark.parametrize(
    "char, flags",
    [
        ("a", 0), ("\t", SPACE), ("\u00a0", SPACE), ("\u2028", SPACE), ("\x00", DROPPED), ("\x85", DROPPED),
        ("\u200d", DROPPED), ("\ufeff", DROPPED), ("\ufffd", DROPPED), ("中", CJK), ("\U0002f800", CJK), ("한", 0),
        ("ひ", 0), ("$", PUNCTUATION), ("。", PUNCTUATION), ("€", 0), ("\u0301", MARK), ("\u302e", 0), ("\ue000", 0),
        ("\U000e0041", DROPPED), ("\U00011f00", 0),
    ],
)  # fmt: skip
def test_flags_of_known_characters(char, flags):
    assert unicode_tables().flags[ord(char)] & (SPACE | DROPPED | CJK | PUNCTUATION | MARK) == flags


def test_mappings_of_known_characters():
    tables = unicode_tables()
    assert tables.lower[ord("İ")] == (ord("i"), 0x307)
    assert tables.lower[ord("Σ")] == (ord("σ"),)
    assert tables.decompose(ord("ǭ")) == (ord("o"), 0x328, 0x304)
    assert tables.decompose(ord("한")) == (0x1112, 0x1161, 0x11AB)
    assert tables.decompose(ord("가")) == (0x1100, 0x1161)
    assert tables.decompose(ord("x")) == (ord("x"),)
    assert tables.combining_class[0x323] == 220


@same_unicode
@pytest.mark.slow
def test_committed_tables_are_what_the_script_makes():
    made = make_tables()
    with np.load(TABLES_FILE, allow_pickle=False) as committed:
        assert set(committed.files) == set(made)
        for name in made:
            np.testing.assert_array_equal(committed[name], made[name])


@same_unicode
@pytest.mark.slow
def test_decomposition_of_every_code_point_is_canonical():
    decompose = unicode_tables().decompose
    for code_point in [*range(0xD800), *range(0xE000, 0x110000)]:
        assert "".join(map(chr, decompose(code_point))) == unicodedata.normalize("NFD", chr(code_point))


def test_script_refuses_another_unicode_version(monkeypatch, tmp_path):
    monkeypatch.setattr(unicodedata, "unidata_version", "15.1.0")
    with pytest.raises(SystemExit, match=r"needs Unicode 14.0.0 \(Python 3.11\). This is 15.1.0"):
        main(tmp_path / "tables.npz")
    assert not (tmp_path / "tables.npz").exists()
