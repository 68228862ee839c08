import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_bert_impl.training.finetuning.data.schemes import Scheme, Span, find_scheme, marks_spans, spans, to_iob2

IOB2 = "B-PER I-PER O B-LOC B-LOC I-LOC B-PER O B-PER"
OTHERS = {
    "IOB1": "I-PER I-PER O I-LOC B-LOC I-LOC I-PER O I-PER",
    "BIOES": "B-PER E-PER O S-LOC B-LOC E-LOC S-PER O S-PER",
    "BMES": "B-PER E-PER O S-LOC B-LOC E-LOC S-PER O B-PER M-PER E-PER",
    "BMEWO": "B-PER E-PER O W-LOC B-LOC E-LOC W-PER O W-PER",
    "BILOU": "B-PER L-PER O U-LOC B-LOC L-LOC U-PER O U-PER",
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_scheme_is_recognised_and_becomes_iob2(name: str):
    tags = OTHERS[name].split()
    assert find_scheme([tags]) == Scheme(name)
    assert " ".join(to_iob2(tags, name)).startswith(IOB2)


def test_iob2_stays_as_it_is():
    assert find_scheme([IOB2.split()]) == Scheme("IOB2")
    assert to_iob2(IOB2.split(), "IOB2") == tuple(IOB2.split())


def test_tags_with_i_alone_are_spans_of_neighbouring_words():
    tags = "I-PER I-PER O I-LOC I-PER".split()
    assert find_scheme([tags]) == Scheme("IO")
    assert to_iob2(tags, "IO") == ("B-PER", "I-PER", "O", "B-LOC", "B-PER")


def test_a_sequence_that_starts_with_i_begins_with_b_and_is_counted():
    tags = ["I-PER I-PER O".split(), "B-PER I-PER O I-LOC".split(), "B-LOC I-PER".split(), "B-LOC O B-LOC".split()]
    assert find_scheme(tags) == Scheme("IOB2", 3)
    assert to_iob2(tags[0], "IOB2") == ("B-PER", "I-PER", "O")
    assert to_iob2(tags[1], "IOB2") == ("B-PER", "I-PER", "O", "B-LOC")
    assert to_iob2(tags[2], "IOB2") == ("B-LOC", "B-PER")


def test_a_scheme_is_recognised_over_all_sentences():
    assert find_scheme([["B-A", "O"], *[["I-A", "O"]] * 3]) == Scheme("IOB1", 1)
    assert find_scheme([["I-A", "O"], *[["B-A", "O"]] * 3]) == Scheme("IOB2", 1)


def test_spans_that_end_without_their_end_are_counted():
    assert find_scheme(["B-A O S-A".split()]) == Scheme("BIOES", 1)
    assert find_scheme(["B-A E-A I-A E-A".split()]) == Scheme("BIOES", 1)
    assert to_iob2("B-A E-A I-A E-A".split(), "BIOES") == ("B-A", "I-A", "B-A", "I-A")
    assert to_iob2("B-A S-A E-A M-B".split(), "BMES") == ("B-A", "B-A", "B-A", "B-B")


def test_marks_of_word_segmentation_are_spans_without_a_label():
    assert find_scheme(["B E S B M E".split()]) == Scheme("BMES")
    assert to_iob2("B E S B M E".split(), "BMES") == ("B", "I", "B", "B", "I", "I")
    assert spans(("B", "I", "B")) == [Span("", 0, 2), Span("", 2, 3)]


@pytest.mark.parametrize("tags", [["NN", "VB"], ["O", "PER"], ["O"], ["I", "S"], [], ["B-PER", "PER"], ["B-"]])
def test_tags_that_mark_no_spans_stay_as_they_are(tags: list[str]):
    assert not marks_spans(tags)
    assert find_scheme([tags]) == Scheme("none")
    assert to_iob2(tags, "none") == tuple(tags)


def test_labels_may_have_hyphens_and_points():
    assert spans("B-creative-work I-creative-work B-PER.NAM O".split()) == [
        Span("creative-work", 0, 2),
        Span("PER.NAM", 2, 3),
    ]


def test_spans_reach_the_end_of_a_sentence():
    assert spans("O B-A I-A".split()) == [Span("A", 1, 3)]
    assert spans(()) == []


@st.composite
def spans_of_sentences(draw: st.DrawFn) -> tuple[int, list[Span]]:
    position, found = 0, []
    for gap, length, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from("AB")), max_size=6)
    ):
        found.append(Span(label, position + gap, position + gap + length))
        position += gap + length
    return position + draw(st.integers(0, 2)), found


def tagged(length: int, found: list[Span], begin: str, inside: str, end: str, single: str) -> list[str]:
    tags = ["O"] * length
    for span in found:
        size = span.end - span.start
        letters = single if size == 1 else begin + inside * (size - 2) + end
        tags[span.start : span.end] = [f"{letter}-{span.label}" for letter in letters]
    return tags


@given(spans_of_sentences(), st.sampled_from(["BIIB", "BIES", "BMES", "BMEW", "BILU"]))
def test_the_same_spans_come_from_every_scheme(sentence: tuple[int, list[Span]], letters: str):
    length, found = sentence
    tags = tagged(length, found, *letters)
    scheme = find_scheme([tags])
    assert scheme.faults == 0
    assert spans(to_iob2(tags, scheme.name)) == found
