from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_data import columns, written

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.finetuning.data import read_tagged_sentences

Sentences = list[tuple[tuple[str, ...], tuple[str, ...] | None]]


class Reader:
    """Reads files of a folder and keeps what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def __call__(self, content: str | bytes, name: str = "a.conll", labelled: bool = True, **given: Any) -> Sentences:
        path = written(self.folder, name, content)
        config = columns("tagging", **given)
        found = read_tagged_sentences([path], config, argument="train", labelled=labelled, say=self.said.append)
        self.places = [sentence.place.removeprefix(f"{path}:") for sentence in found]
        return [(sentence.words, sentence.tags) for sentence in found]

    def says(self, words: str) -> bool:
        return any(words in line for line in self.said)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


TWO = [(("EU", "rejects"), ("B-ORG", "O")), (("Bonn",), ("B-LOC",))]


@pytest.mark.parametrize(
    "content",
    [
        "EU\tB-ORG\nrejects\tO\n\nBonn\tB-LOC\n",
        "EU B-ORG\nrejects O\n\nBonn B-LOC",
        "EU  B-ORG \nrejects O\n  \nBonn B-LOC\n\n\n",
        "EU\tB-ORG\r\nrejects\tO\r\n\r\nBonn\tB-LOC\r\n",
        "\ufeffEU\tB-ORG\t\nrejects\tO\n \t\nBonn\tB-LOC\n",
        "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nBonn NNP B-NP B-LOC\n",
        "\n\nEU B-ORG\nrejects O\n\n\n\nBonn B-LOC\n",
        "word\ttag\nEU\tB-ORG\nrejects\tO\n\nBonn\tB-LOC\n",
    ],
)
@pytest.mark.parametrize("name", ["a.conll", "a.txt", "a.tsv", "a.bio", "a"])
def test_words_and_tags_come_from_the_first_and_last_column(content: str, name: str, read: Reader):
    assert read(content, name) == TWO


def test_what_was_read_is_said(read: Reader):
    read("EU\tB-ORG\nrejects\tO\n\nBonn\tB-LOC\n")
    path = read.folder / "a.conll"
    assert read.said == [
        f"{path}: CoNLL, words in column 1, tags in column 2.",
        f"{path}: 2 sentences of 3 words.",
        "Tags of `train`: IOB2, 2 spans.",
    ]
    assert read.places == ["1", "4"]


def test_beginnings_of_documents_are_passed_over_and_counted(read: Reader):
    content = (
        "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n-DOCSTART- -X- -X- O\nBonn NNP B-NP B-LOC\n"
    )
    assert read(content) == TWO
    assert read.says("passed over 2 lines -DOCSTART-.")
    assert read("-DOCSTART- O\n-DOCSTART-x O\n") == [(("-DOCSTART-x",), ("O",))]


def test_comments_are_passed_over_but_words_are_none(read: Reader):
    content = (
        "# newdoc\n# text = EU rejects\n# sent_id = 7\nEU\tB-ORG\nrejects\tO\n\n# id 17-a domain=en\nBonn\tB-LOC\n"
    )
    assert read(content) == TWO
    assert read.says("passed over 4 comment lines.")
    assert read("# O\n#EU B-ORG\n\n# O\n= O\n") == [(("#", "#EU"), ("O", "B-ORG")), (("#", "="), ("O", "O"))]


def test_universal_dependencies_are_read_by_the_number_of_columns(read: Reader):
    row = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n"
    content = "# text = vámonos ya\n1-2\tvámonos" + "\t_" * 8 + "\n" + row.format(1, "vamos", "VERB")
    content += row.format(2, "nos", "PRON") + row.format("2.1", "x", "X") + row.format(3, "ya", "ADV")
    assert read(content, text_column="2", label_column="4") == [(("vamos", "nos", "ya"), ("VERB", "PRON", "ADV"))]
    assert read.says("passed over 2 lines of several words or none (CoNLL-U).")
    assert read.says("they mark no spans")


def test_columns_may_be_chosen(read: Reader):
    content = "1 EU NNP B-ORG x\n2 rejects VBZ O x\n\n1 Bonn NNP B-LOC x\n"
    assert read(content, text_column="2", label_column="4") == TWO
    head = "number form pos ner extra\n"
    assert read(head + content, text_column="form", label_column="ner") == TWO
    assert read(head + content, header="yes", text_column="2", label_column="4") == TWO
    with pytest.raises(InputError, match=r"`label_column` must name a column\. Received: '9'; '.*' has the columns"):
        read(content, label_column="9")


def test_words_may_be_read_without_tags(read: Reader):
    assert read("EU\nrejects\n\nBonn\n", labelled=False) == [(("EU", "rejects"), None), (("Bonn",), None)]
    assert read("EU\tB-ORG\n", labelled=False) == [(("EU",), None)]


def test_blanks_may_be_part_of_words_between_tabs(read: Reader):
    assert read("New York\tB-LOC\n \tO\n\u3000\tO\n") == [(("New York", " ", "\u3000"), ("B-LOC", "O", "O"))]


def test_quotation_marks_and_digits_behind_characters_are_text(read: Reader):
    assert read('"\tO\n口0\tB-LOC\n') == [(('"', "口0"), ("O", "B-LOC"))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "EU B-ORG\nrejects\n",
            r"`train` must have 2 columns on every line, as on the first\. Received: '.*', line 2,",
        ),
        ("EU B-ORG\nrejects VBZ O\n", r"must have 2 columns on every line, as on the first\. .* line 2, which has 3$"),
        ("EU\nrejects\n", r"`train` must have a word and a tag on each line\. Received: '.*', line 1, with 1 column$"),
        (
            "EU\tB-ORG\n\tO\n",
            r"`train` must have a word on each line, and its tag\. Received: no word in '.*', line 2$",
        ),
        ("EU\tB\tB-ORG\nEU\tB\t \n", r"must have a word on each line, and its tag\. Received: no tag in '.*', line 2$"),
        ("", r"`train` must have sentences\. Received: '.*a\.conll', which has none$"),
        (
            "EU B-ORG\n\nBonn LOC\nx B-LOC\n",
            r"must have tags such as B-PER, I-PER and O .* 'LOC' in the sentence of .*:3",
        ),
    ],
)
def test_a_faulty_line_is_named(content: str, message: str, read: Reader):
    with pytest.raises(InputError, match=message):
        read(content)


def test_tags_of_other_schemes_become_iob2_and_it_is_said(read: Reader):
    assert read("吴\tB-NAME\n重\tM-NAME\n阳\tE-NAME\n，\tO\n")[0][1] == ("B-NAME", "I-NAME", "I-NAME", "O")
    assert read.said[-1] == "Tags of `train`: BMES, converted to IOB2, 1 span."
    assert read("a B-X\nb O\n")[0][1] == ("B-X", "O")
    assert read("a B-X\nb O\nc S-X\n")[0][1] == ("B-X", "O", "B-X")
    assert (
        read.said[-1]
        == "Tags of `train`: BIOES, converted to IOB2, 2 spans; 1 tag against its rules, read as they stand."
    )


def test_a_sequence_that_starts_with_i_is_mended_and_said(read: Reader):
    assert read("a I-X\nb I-X\n\nc B-X\nd O\n\ne B-X\n")[0][1] == ("B-X", "I-X")
    assert read.said[-1] == "Tags of `train`: IOB2, 3 spans; 1 span that started with I now starts with B."


def test_the_scheme_is_that_of_all_files_together(tmp_path: Path):
    files = [written(tmp_path, "a.conll", "a I-X\n"), written(tmp_path, "b.conll", "a B-X\nb I-X\n\nc B-X\n")]
    said: list[str] = []
    found = read_tagged_sentences(files, columns("tagging"), argument="train", say=said.append)
    assert [sentence.tags for sentence in found] == [("B-X",), ("B-X", "I-X"), ("B-X",)]
    assert said[-1].startswith("Tags of `train`: IOB2, 3 spans; 1 span")


word = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters="\ufeff"), min_size=1
)


@settings(deadline=None, max_examples=25)
@given(
    sentences=st.lists(
        st.lists(st.tuples(word, st.sampled_from(["N", "V", "O"])), min_size=1, max_size=4), min_size=1, max_size=4
    ),
    separator=st.sampled_from(["\t", " "]),
    end=st.sampled_from(["\n", "\r\n"]),
    blank=st.sampled_from(["", " ", "\t"]),
)
def test_what_was_written_is_read(sentences, separator, end, blank, tmp_path_factory):
    read = Reader(tmp_path_factory.getbasetemp())
    lines = [line for sentence in sentences for line in (*(f"{w}{separator}{t}" for w, t in sentence), blank)]
    found = read(end.join(lines), "round.conll", header="no")
    assert found == [(tuple(w for w, _ in s), tuple(t for _, t in s)) for s in sentences]


@pytest.mark.parametrize(
    ("content", "received"),
    [
        ("text\tlabel\na fine film\tgood\n", r"columns text, label in '.*a\.tsv'"),
        ("ID\tsentence\tlabel\n1\ta fine film\tgood\n", r"columns ID, sentence, label in "),
        ("a fine film\tgood\ndull\tbad\na bad play\tbad\n", r"'a fine film' as a word in '.*a\.tsv', line 1"),
    ],
)
def test_a_table_of_texts_is_not_taken_for_words(content: str, received: str, read: Reader):
    with pytest.raises(InputError, match=rf"looks like a table of texts, .*\. Received: {received}"):
        read(content, "a.tsv")


def test_words_with_blanks_among_others_are_words(read: Reader):
    assert read("10 000\tO\nfilms\tO\n\n1 000\tO\n2 000\tO\n", "a.tsv")[0] == (("10 000", "films"), ("O", "O"))


def test_a_long_file_without_a_blank_line_is_told(read: Reader):
    read("a\tO\n" * 300)
    assert read.says("has no blank line between its 300 words, so they are taken as one sentence")
    read("a\tO\n" * 300 + "\na\tO\n", "b.conll")
    assert not any("b.conll has no blank line" in line for line in read.said)
