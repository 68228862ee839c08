from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.documents import Document
from keras_bert_impl.training.corpus.exclusion import Exclusion
from keras_bert_impl.training.corpus.readers import Reading, find_files
from keras_bert_impl.training.corpus.survey import (
    DUPLICATE,
    EXCLUDED,
    HELD_OUT,
    NEAR_DUPLICATE,
    TRAIN,
    fates_of_documents,
    first_ones,
    survey_corpus,
)


def digests(count: int) -> np.ndarray:
    return np.array([Document((f"text {number}",)).digest for number in range(count)], np.uint64)


def test_the_first_of_equal_documents_is_kept():
    fates = fates_of_documents(np.array([5, 7, 5, 9, 7, 5], np.uint64), seed=1, held_out_share=0)
    assert fates.tolist() == [TRAIN, TRAIN, DUPLICATE, TRAIN, DUPLICATE, DUPLICATE]


def test_documents_that_differ_in_white_space_alone_are_equal():
    assert Document(("one  two", "three")).digest == Document(("one two three",)).digest
    assert Document(("one two",)).digest != Document(("onetwo",)).digest


def test_the_held_out_share_is_kept():
    fates = fates_of_documents(digests(20_000), seed=1, held_out_share=0.05)
    assert abs((fates == HELD_OUT).mean() - 0.05) < 0.005


def test_a_document_stays_in_its_part_when_others_come():
    few, many = digests(1000), digests(3000)
    assert (fates_of_documents(few, 1, 0.1) == fates_of_documents(many, 1, 0.1)[:1000]).all()


def test_another_seed_holds_out_others():
    assert (fates_of_documents(digests(1000), 1, 0.1) != fates_of_documents(digests(1000), 2, 0.1)).any()


@pytest.mark.parametrize(("count", "held_out"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
@pytest.mark.parametrize("share", [1e-9, 0.01])
def test_few_documents_are_still_divided(count: int, held_out: int, share: float):
    fates = fates_of_documents(digests(count), seed=3, held_out_share=share)
    assert (fates == HELD_OUT).sum() == held_out
    assert (fates == TRAIN).sum() == count - held_out


@pytest.mark.parametrize("seed", range(30))
def test_training_always_keeps_a_document(seed: int):
    fates = fates_of_documents(digests(2), seed=seed, held_out_share=0.5)
    assert sorted(fates.tolist()) == [TRAIN, HELD_OUT]


def test_no_share_holds_out_nothing():
    assert (fates_of_documents(digests(50), seed=1, held_out_share=0) == TRAIN).all()


def survey(path: Path):
    return survey_corpus(find_files([str(path)]), seed=1, held_out_share=0.2)


def test_the_second_reading_gives_each_document_its_part(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(["same"] * 3 + [f"text {number}" for number in range(20)]), encoding="utf-8")
    found = survey(path)
    documents = list(found.documents())
    assert [document.lines[0] for _, document in documents] == ["same", *(f"text {number}" for number in range(20))]
    assert sum(split == "held_out" for split, _ in documents) == found.count(HELD_OUT) >= 2
    assert found.count(DUPLICATE) == 2


@pytest.mark.parametrize("changed", ["other\n\ntext", "longer\n\ntext\n\nthan before"])
def test_a_file_that_changes_in_between_is_refused(tmp_path: Path, changed: str):
    path = tmp_path / "a.txt"
    path.write_text("first\n\ntext", encoding="utf-8")
    found = survey(path)
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(InputError, match=r"`inputs` must not change while they are read\. Received: '.*a\.txt'"):
        list(found.documents())


@pytest.mark.parametrize("content", ["", "\n \n\t\n"])
def test_an_empty_corpus_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"`inputs` must hold text\. Received: \['.*a\.txt'\], which hold none"):
        survey(path)


def test_a_family_goes_to_one_side():
    families = np.arange(3000) // 3 * 3
    for keep in (True, False):
        fates = fates_of_documents(digests(3000), 1, 0.2, families=families, keep_near_duplicates=keep)
        sides = fates.reshape(-1, 3)
        if keep:
            assert (sides == sides[:, :1]).all()
        else:
            assert (sides[:, 1:] == NEAR_DUPLICATE).all() and not (sides[:, 0] == NEAR_DUPLICATE).any()
        assert abs((sides[:, 0] == HELD_OUT).mean() - 0.2) < 0.04


def test_a_family_larger_than_the_held_out_part_is_for_training():
    families = np.where(np.arange(1000) < 600, 0, np.arange(1000))
    for seed in range(20):
        fates = fates_of_documents(digests(1000), seed, 0.1, families=families)
        assert (fates[:600] == TRAIN).all()
        assert 0 < (fates == HELD_OUT).sum() < 100


def test_a_corpus_that_is_one_family_is_for_training():
    assert (fates_of_documents(digests(9), 1, 0.5, families=np.zeros(9, int)) == TRAIN).all()


def test_the_first_of_equal_documents_that_are_not_excluded_is_kept():
    kept = first_ones(np.array([5, 5, 5, 7], np.uint64), np.array([True, False, False, True]))
    assert kept.tolist() == [False, True, False, False]


LONG = " ".join(f"word{number} and number{number * number}" for number in range(60))


@pytest.mark.parametrize(
    ("mode", "fates"),
    [
        ("off", {TRAIN, HELD_OUT}),
        ("report", {TRAIN, HELD_OUT}),
        ("remove", {TRAIN, HELD_OUT, NEAR_DUPLICATE}),
    ],
)
def test_near_duplicates_are_counted_kept_together_or_removed(tmp_path: Path, mode: str, fates: set[int]):
    texts = [f"other text {number}" for number in range(30)] + [f"{LONG} {end}" for end in ("one", "two", "six")]
    (tmp_path / "a.txt").write_text("\n\n".join(texts), encoding="utf-8")
    found = survey_corpus(find_files([str(tmp_path / "a.txt")]), seed=1, held_out_share=0.2, near_duplicates=mode)
    assert set(found.fates.tolist()) == fates
    assert (found.families, found.near_duplicates) == ((None, 0) if mode == "off" else (1, 2))
    assert found.count(NEAR_DUPLICATE) == (2 if mode == "remove" else 0)
    if mode == "report":
        assert len(set(found.fates[-3:].tolist())) == 1
    assert [document.lines for _, document in found.documents()] == [
        (text,) for text, fate in zip(texts, found.fates, strict=True) if fate != NEAR_DUPLICATE
    ]


def test_excluded_documents_are_in_neither_part(tmp_path: Path):
    (tmp_path / "a.txt").write_text(f"one\n\n{LONG}\n\ntwo\n\n{LONG}\n\nthree", encoding="utf-8")
    (tmp_path / "test.txt").write_text(f"?\n{LONG[20:200]}", encoding="utf-8")
    exclusion = Exclusion(find_files([str(tmp_path / "test.txt")]), 13, Reading())
    found = survey_corpus(find_files([str(tmp_path / "a.txt")]), seed=1, held_out_share=0.2, exclusion=exclusion)
    assert np.flatnonzero(found.fates == EXCLUDED).tolist() == [1, 3]
    assert [file.removed for file in found.excluded] == [2]
    assert sorted(document.lines[0] for _, document in found.documents()) == ["one", "three", "two"]


def test_excluding_everything_is_refused(tmp_path: Path):
    (tmp_path / "a.txt").write_text(LONG, encoding="utf-8")
    files = find_files([str(tmp_path / "a.txt")])
    message = r"`exclude` must leave a document\. Received: \['.*a\.txt'\], which share text with all 1$"
    with pytest.raises(InputError, match=message):
        survey_corpus(files, seed=1, held_out_share=0.2, exclusion=Exclusion(files, 13, Reading()))
