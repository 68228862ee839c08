import pytest

from keras_bert_impl.training.configs import LANGUAGES
from keras_bert_impl.training.corpus.documents import Document
from keras_bert_impl.training.corpus.sentences import SentenceSplitter, is_wrapped

WRAPPED = (
    "It is a truth universally acknowledged, that a single man in possession",
    "of a good fortune, must be in want of a wife. However little known the",
    "feelings or views of such a man may be, this truth is well fixed.",
)


def split(lines: tuple[str, ...], mode: str = "auto", language: str = "en") -> tuple[list[str], str]:
    return SentenceSplitter(mode, language).split(Document(lines))


def without_space(sentences: list[str]) -> str:
    return "".join("".join(sentences).split())


def test_lines_that_are_sentences_stay_as_they_are():
    lines = ("The first one.", "He said: no. 5 is it.", "A heading", "The last one!")
    assert split(lines) == (list(lines), "lines")


def test_paragraphs_on_lines_are_split():
    sentences, layout = split(("Dr. Smith went out. He came back at 3.5 p.m. today.", "It rained. Nobody cared."))
    assert layout == "paragraphs"
    assert sentences == ["Dr. Smith went out.", "He came back at 3.5 p.m. today.", "It rained.", "Nobody cared."]


def test_wrapped_text_is_joined_before_it_is_split():
    sentences, layout = split(WRAPPED)
    assert layout == "wrapped"
    assert sentences == [
        "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want "
        "of a wife.",
        "However little known the feelings or views of such a man may be, this truth is well fixed.",
    ]


def test_headings_and_lists_are_not_wrapped_text():
    assert not is_wrapped(("Installation", "Open the window", "Close it again.", "then go", "Further reading"))


def test_a_single_line_is_not_wrapped():
    assert not is_wrapped(("only one line",))


def test_lines_mode_believes_the_lines():
    lines = ("One. Two.", "three")
    assert split(lines, "lines") == (list(lines), "lines")


def test_split_mode_splits_even_the_odd_line():
    lines = ("One sentence.", "Another one.", "A third.", "A fourth.", "Two here. And there.")
    assert split(lines, "split")[0] == [*lines[:4], "Two here.", "And there."]
    assert split(lines, "auto")[0] == list(lines)


def test_chinese_is_split_at_its_own_marks():
    assert split(("你好。再见！好的",), language="zh")[0] == ["你好。", "再见！", "好的"]


@pytest.mark.parametrize("text", ["", " ", "\x00", "…", "a" * 100_000, "word. " * 1000, "🙂👍🏽. ‮abc"])
def test_odd_texts_lose_nothing_but_white_space(text: str):
    sentences, _ = split((text,), "split")
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_known_language_is_split(language: str):
    assert len(split(("你好。再见！ Hello there! Who are you?",), "split", language)[0]) >= 2


@pytest.mark.parametrize(
    ("text", "language", "sentences"),
    [
        ('He said: "I am here." She left.', "en", ['He said: "I am here."', "She left."]),
        ("“Is it you?” she asked. ‘Yes.’ He left.", "en", ["“Is it you?” she asked.", "‘Yes.’", "He left."]),
        ("他说：“你好。”她走了。“真的吗？”我问。", "zh", None),
        ("「行くよ。」と言った。雨だった。", "ja", None),
        ("他说“OK. Let's go!”然后走了。It rained。", "zh", None),
        ('An "unclosed quote. Another sentence. And “a third. Done.', "en", None),
    ],
)
def test_mixed_quotes_lose_nothing(text: str, language: str, sentences: list[str] | None):
    found = split((text,), "split", language)[0]
    assert without_space(found) == without_space([text])
    assert sentences is None or found == sentences


@pytest.mark.parametrize("mode", ["lines", "split", "auto"])
@pytest.mark.parametrize("text", ["word " * 5000, "字" * 25_000, "a" * 25_000 + ". Next one."])
def test_no_sentence_is_longer_than_stated(mode: str, text: str):
    splitter = SentenceSplitter(mode, "en", longest=1000)
    sentences, _ = splitter.split(Document((text.strip(), "A short one.")))
    assert max(map(len, sentences)) <= 1000
    assert without_space(sentences) == without_space([text, "A short one."])
    assert splitter.long_sentences == 1
