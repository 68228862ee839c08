from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.documents import Document
from keras_bert_impl.training.corpus.readers import find_files
from keras_bert_impl.training.corpus.survey import DUPLICATE, HELD_OUT, TRAIN, fates_of_documents, survey_corpus


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
