import random
from pathlib import Path

import numpy as np
import pytest
from texts import toy_documents

from keras_bert_impl.training.corpus import near_duplicates
from keras_bert_impl.training.corpus.near_duplicates import (
    RUN,
    SHORTEST,
    NearDuplicateFinder,
    signature_key,
    signatures,
)
from keras_bert_impl.training.corpus.readers import find_files, read_documents
from keras_bert_impl.training.examples.hashing import hash_of

KEY = hash_of(1)


def words(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghijklmnop", k=rng.randrange(3, 9))) for _ in range(count)]


def changed(text: list[str], count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    text = list(text)
    for place in rng.sample(range(len(text)), count):
        text[place] = "new" + str(rng.random())[2:6]
    return text


def runs(text: str) -> set[str]:
    return {text[start : start + RUN] for start in range(len(text) - RUN + 1)}


def jaccard(one: set[str], other: set[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def similarity(one: str, other: str) -> float:
    return jaccard(runs(one), runs(other))


def families(
    texts: list[str],
    among: np.ndarray | None = None,
    seed: int = 1,
    *,
    batch: int = 50,
    places: np.ndarray | None = None,
) -> list[int]:
    """Returns the families; `places` says where each text stands among those that are handed over."""
    finder = NearDuplicateFinder()
    came = texts if places is None else [texts[number] for number in np.argsort(places)]
    for start in range(0, len(came), batch):
        part = came[start : start + batch]
        finder.add(signatures(part, signature_key(seed)), np.array([len(text) for text in part]))
    found = finder.families(np.ones(len(texts), bool) if among is None else among, places).tolist()
    finder.close()
    return found


@pytest.mark.parametrize("count", [40, 400, 10_000])
@pytest.mark.parametrize("share", [0, 0.01, 0.05, 0.2, 0.8])
def test_equal_minima_estimate_the_similarity(count: int, share: float):
    errors = []
    for seed in range(8):
        one = words(count, seed)
        other = " ".join(changed(one, int(share * count), seed))
        minima = signatures([" ".join(one), other], KEY)
        errors.append((minima[0] == minima[1]).mean() - similarity(" ".join(one), other))
    assert abs(np.mean(errors)) < 0.06
    assert max(map(abs, errors)) < 0.2


def test_documents_with_few_changes_are_a_family():
    texts = []
    for number in range(50):
        text = words(300, number)
        texts += [" ".join(text), " ".join(changed(text, 4, number)).upper(), " ".join(changed(text, 200, number))]
    assert families(texts) == [first for number in range(50) for first in (3 * number, 3 * number, 3 * number + 2)]


def test_chinese_documents_are_compared_too():
    rng = random.Random(1)
    text = "".join(chr(rng.randrange(0x4E00, 0x5000)) for _ in range(300))
    other = "".join(chr(rng.randrange(0x4E00, 0x5000)) for _ in range(300))
    assert families([text, other, text[:100] + "新" + text[100:]]) == [0, 1, 0]


@pytest.mark.parametrize(
    "texts", [[""], ["a", "b", "", "a b"], ["short", "shorx"], [f"some text {n}" for n in range(99)]]
)
def test_short_documents_are_not_taken_for_one_another(texts: list[str]):
    assert families(texts) == list(range(len(texts)))


def test_the_toy_corpus_has_none():
    assert families([" ".join(text) for text in toy_documents(150)]) == list(range(150))


def test_documents_that_repeat_themselves_are_told_apart():
    texts = [10_000 * letter for letter in "abcdefgh"] + [2000 * f"say {letter} " for letter in "abcdefgh"]
    assert families([*texts, *texts]) == 2 * list(range(16))


def test_a_family_reaches_from_neighbour_to_neighbour():
    text = words(200, 1)
    texts = []
    for number in range(6):
        texts.append(" ".join(text))
        text = changed(text, 6, number)
    assert similarity(texts[0], texts[-1]) < 0.75
    assert families(texts) == [0] * 6


def test_only_those_asked_for_belong_to_a_family():
    text = " ".join(words(100, 1))
    assert families([text, text, "else", text], np.array([False, True, True, True])) == [0, 1, 2, 1]


def test_families_do_not_depend_on_batches_or_order_or_on_where_the_minima_lie(monkeypatch: pytest.MonkeyPatch):
    texts = [" ".join(changed(words(80, number % 40), number // 40, number)) for number in range(120)]
    whole = families(texts)
    assert len(set(whole)) < 60
    assert families(texts, batch=7) == whole
    assert families(texts, places=np.random.default_rng(1).permutation(len(texts))) == whole
    monkeypatch.setattr(near_duplicates, "_MOST_BYTES", 1000)
    assert families(texts) == whole


def test_the_same_seed_gives_the_same_minima_and_another_one_others():
    text = [" ".join(words(100, 1))]
    assert (signatures(text, hash_of(1)) == signatures(text, hash_of(1))).all()
    assert (signatures(text, hash_of(1)) == signatures(text, hash_of(2))).mean() < 0.1


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", ["en_libreoffice_help", "zh_libreoffice_help"])
def test_similar_documents_of_a_real_corpus_are_found_and_no_others(shared: Path, name: str):
    files = find_files([str(shared / f"data/corpora/{name}.txt.xz")])
    texts = [document.text for document in read_documents(files)][:400]
    found = families(texts)
    sets = [runs(text.casefold()) for text in texts]
    for second, text in enumerate(texts):
        alike = [jaccard(sets[first], sets[second]) for first in range(second)]
        if found[second] != second:
            assert max(alike) > 0.7
        for first in np.flatnonzero(np.array(alike) >= 0.85):
            if min(len(text), len(texts[first])) >= SHORTEST:
                assert found[first] == found[second]
