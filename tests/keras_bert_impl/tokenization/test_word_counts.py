import subprocess
import sys
from collections import Counter

import pytest

from keras_bert_impl.tokenization import word_counts
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.word_counts import count_words

# Prints the peak of a whole process.
MANY_WORDS = """
import keras_bert_console
from keras_bert_impl.tokenization.text_normalizer import TextNormalizer
from keras_bert_impl.tokenization.word_counts import count_words

lines = (" ".join(f"often w{number + k}x" for k in range(50)) for number in range(0, int(NUMBER), 50))
counts = count_words(lines, TextNormalizer(lowercase=True, strip_accents=True, split_cjk=True))
assert counts["often"] == int(NUMBER)
# Not getrusage, whose peak a new process has from the one that started it.
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


@pytest.fixture
def normalizer():
    return TextNormalizer(lowercase=True, strip_accents=True, split_cjk=True)


def test_counts_words_as_the_tokenizer_sees_them(normalizer):
    counts = count_words(["The the. naïve 中文", "THE", "x" * 100, "y" * 101], normalizer)
    assert counts == {"the": 3, ".": 1, "naive": 1, "中": 1, "文": 1, "x" * 100: 1}


def test_counts_are_exact_up_to_the_bound(normalizer):
    lines = [f"often w{number % 99}" for number in range(1000)]
    said = []
    assert count_words(lines, normalizer, most_words=100, say=said.append) == Counter(" ".join(lines).split())
    assert said == []


def test_beyond_the_bound_the_rarest_are_forgotten_and_it_says_so(normalizer, monkeypatch):
    monkeypatch.setattr(word_counts, "_MOST_STRETCHES", 10)
    lines = [f"often w{number} w{number} often{number % 20}" for number in range(1000)]
    exact = Counter(" ".join(lines).split())
    said = []
    counts = count_words(lines, normalizer, most_words=50, say=said.append)
    assert len(counts) <= 50
    assert said[0].startswith("more than 50 different words: the rarest were forgotten on the way (")
    shortfall = int(said[0].rsplit(" ", 1)[1])
    assert all(exact[word] - shortfall <= count <= exact[word] for word, count in counts.items())
    assert max(counts, key=counts.__getitem__) == "often"
    assert counts == count_words(lines, normalizer, most_words=50)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_different_words():
    def peak(number):
        code = MANY_WORDS.replace("NUMBER", number)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return int(done.stdout) / 1024  # megabytes

    two_million, six_million = peak("2e6"), peak("6e6")
    assert six_million < 1.1 * two_million
    assert six_million < 300
