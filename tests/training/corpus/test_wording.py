import pytest

from keras_bert_impl.training.corpus.wording import counted, percent, size_in_words


@pytest.mark.parametrize(("number", "said"), [(0, "0 examples"), (1, "1 example"), (2000, "2,000 examples")])
def test_a_noun_agrees_with_its_number(number: int, said: str):
    assert counted(number, "example") == said


def test_a_noun_can_have_a_plural_of_its_own():
    assert (counted(1, "entry", "entries"), counted(2, "entry", "entries")) == ("1 entry", "2 entries")


@pytest.mark.parametrize(
    ("share", "digits", "said"),
    [
        *((0, 0, "0%"), (0.0, 2, "0.00%"), (1, 0, "100%"), (1.0, 1, "100.0%"), (0.5, 0, "50%"), (0.9949, 0, "99%")),
        *((0.995, 0, "over 99%"), (0.99999, 1, "over 99.9%"), (0.004, 0, "under 1%"), (1e-9, 2, "under 0.01%")),
    ],
)
def test_a_share_is_none_or_all_only_if_it_is(share: float, digits: int, said: str):
    assert percent(share, digits) == said


@pytest.mark.parametrize(
    ("size", "said"),
    [
        *((0, "0 bytes"), (1, "1 byte"), (38, "38 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (49_999, "50.0 kB")),
        *((2_000_000_000, "2.0 GB"), (3 * 10**15, "3,000.0 TB")),
    ],
)
def test_a_size_is_never_said_to_be_nothing(size: int, said: str):
    assert size_in_words(size) == said
