from pathlib import Path

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.exclusion import NO_FILE, Exclusion
from keras_bert_impl.training.corpus.readers import Reading, find_files

LONG = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
CHINESE = "白日依山尽黄河入海流欲穷千里目更上一层楼"


def exclusion(folder: Path, *texts: str, words: int = 13) -> Exclusion:
    names = []
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text, encoding="utf-8")
        names.append(str(folder / f"{number}.txt"))
    return Exclusion(find_files(names, argument="exclude"), words, Reading())


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        f"Before. {LONG.upper()}! After.",
        "x y " + LONG.replace(" ", ", "),
        LONG.removeprefix("one two "),
        LONG.removesuffix(" fourteen fifteen"),
    ],
)
def test_a_shared_run_of_words_excludes(tmp_path: Path, text: str):
    assert exclusion(tmp_path, f"Something else.\n{LONG}").owner(text) == 0


@pytest.mark.parametrize(
    "text", ["", "one", LONG.replace("seven", "7"), " ".join(LONG.split()[:12]), " ".join(LONG.split()[3:])]
)
def test_a_shorter_run_does_not(tmp_path: Path, text: str):
    assert exclusion(tmp_path, LONG).owner(text) == NO_FILE


def test_the_length_of_a_run_can_be_chosen(tmp_path: Path):
    assert exclusion(tmp_path, LONG, words=5).owner("see: three four five six seven.") == 0
    assert exclusion(tmp_path, LONG, words=6).owner("see: three four five six seven.") == NO_FILE


def test_a_short_document_is_excluded_where_it_is_a_line_or_a_document(tmp_path: Path):
    excluded = exclusion(tmp_path, "What is it?\nIt is a test.\n\nAnother\none.")
    assert [excluded.owner(text) for text in ("what is it", "It is a test!", "Another one.")] == [0] * 3
    assert excluded.owner("What is") == NO_FILE
    assert excluded.owner("So: what is it? It is") == NO_FILE


def test_a_chinese_character_is_a_word(tmp_path: Path):
    excluded = exclusion(tmp_path, CHINESE)
    assert excluded.owner("诗：" + CHINESE[3:16] + "。") == 0
    assert excluded.owner("诗：" + CHINESE[3:15] + "。") == NO_FILE


def test_each_document_counts_for_the_first_file_that_has_it(tmp_path: Path):
    excluded = exclusion(tmp_path, "other text", LONG, f"again {LONG}", "never")
    owners = [excluded.owner(text) for text in (LONG, "new", f"again {LONG}", "Other text.")]
    assert owners == [1, NO_FILE, 1, 0]
    assert [file.documents for file in excluded.files] == [1, 1, 1, 1]


def test_files_without_text_exclude_nothing(tmp_path: Path):
    assert exclusion(tmp_path, "", "...").owner(LONG) == NO_FILE


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"`exclude` must be UTF-8 text\. Received: '.*a\.txt'"):
        Exclusion(find_files([str(tmp_path / "a.txt")]), 13, Reading())
