"""Questions and texts as rows: every answer that can be given is looked for once, and is a slice of the text."""

import json
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from task_models import toy_tokenizer
from unicode_texts import unicode_texts

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import Answer
from keras_bert_impl.tasks.answer_spans import found_answers
from keras_bert_impl.tasks.answer_windows import CutQuestion, QuestionCutter, window_ranges
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

TOKENIZER = toy_tokenizer()
CASED = toy_tokenizer(lowercase=False)
CUTTER = QuestionCutter(TOKENIZER, max_length=16, max_question_length=4)


def answer_at_gold_pieces(cut: CutQuestion, answer: Answer, max_answer_length: int = 30) -> str:
    """Returns what is answered when the scores are one at the right start and end and nought elsewhere."""
    span = cut.span(answer)
    outputs = []
    for window in cut.windows:
        scores = {name: np.zeros(len(window.token_ids), np.float32) for name in ("start_logits", "end_logits")}
        for name, piece in (("start_logits", span.first), ("end_logits", span.last)):
            if window.begin <= piece < window.end:
                scores[name][window.place + piece - window.begin] = 1
        outputs.append(scores)
    return found_answers(cut, outputs, max_answer_length)[0][0].text


def test_a_row_is_the_question_and_a_window_of_the_text():
    cut = CUTTER("was the film good ?", "a b c d e f g h i j k l m")
    tokens = [[TOKENIZER.vocabulary[i] for i in window.token_ids] for window in cut.windows]
    question = ["[CLS]", "was", "the", "film", "good", "[SEP]"]
    assert tokens == [[*question, *letters, "[SEP]"] for letters in ("abcdefghi", "efghijklm")]
    assert [window.segment_ids.tolist() for window in cut.windows] == [[0] * 6 + [1] * 10] * 2
    assert [window.begin for window in cut.windows] == [0, 4] and cut.windows[0].place == 6
    assert cut.truncated and not CUTTER("was the film", "a").truncated


def test_special_tokens_in_the_texts_are_text():
    cut = CUTTER("[SEP]", "a [SEP]")
    (window,) = cut.windows
    assert np.count_nonzero(window.token_ids == TOKENIZER.sep_token_id) == 2


def test_a_text_without_pieces_has_one_window_without_text():
    (window,) = CUTTER("who", " \u200b ").windows
    assert window.begin == window.end == 0 and len(window.token_ids) == window.place + 1


@pytest.mark.parametrize(
    "pieces,room,stride,ranges",
    [
        (0, 5, None, [(0, 0)]),
        (5, 5, None, [(0, 5)]),
        (9, 4, None, [(0, 4), (2, 6), (4, 8), (6, 9)]),
        (9, 4, 3, [(0, 4), (3, 7), (6, 9)]),
        (6, 4, 128, [(0, 4), (2, 6)]),  # a stride that would leave pieces out
        (3, 1, None, [(0, 1), (1, 2), (2, 3)]),
        (700, 300, None, [(0, 300), (128, 428), (256, 556), (384, 684), (512, 700)]),
    ],
)
def test_windows_begin_a_stride_after_one_another(pieces, room, stride, ranges):
    assert window_ranges(pieces, room, stride) == ranges


def test_a_question_must_leave_room_for_the_text():
    rule = r"`max_question_length` must leave room for the text: at most `max_length` - 4. Received: max_question_len"
    with pytest.raises(InputError, match=rule):
        QuestionCutter(TOKENIZER, max_length=64, max_question_length=61)
    QuestionCutter(TOKENIZER, max_length=64, max_question_length=60)


@given(st.integers(1, 40), st.integers(6, 14), st.one_of(st.none(), st.integers(1, 12)))
def test_each_answer_that_a_window_has_whole_is_looked_for_in_one(pieces, max_length, stride):
    cut = QuestionCutter(TOKENIZER, max_length=max_length, stride=stride, max_question_length=1)("a", "x " * pieces)
    looked_for = [
        (first, last)
        for window in cut.windows
        for first, least in zip(range(window.begin, window.end), window.least_ends.tolist(), strict=True)
        for last in range(max(first, least), window.end)
    ]
    whole = {
        (first, last)
        for window in cut.windows
        for first in range(window.begin, window.end)
        for last in range(first, window.end)
    }
    assert len(looked_for) == len(whole) and set(looked_for) == whole


@given(st.integers(1, 40), st.integers(6, 14))
def test_an_answer_starts_in_the_window_with_most_text_around_its_start(pieces, max_length):
    cut = QuestionCutter(TOKENIZER, max_length=max_length, max_question_length=1)("a", "x " * pieces)
    for piece in range(pieces):
        # The original's measure, and the first window of equals.
        context = [
            min(piece - w.begin, w.end - 1 - piece) + 0.01 * (w.end - w.begin) if w.begin <= piece < w.end else -1
            for w in cut.windows
        ]
        home = cut.windows[int(np.argmax(context))]
        assert home.least_ends[piece - home.begin] == piece


ODD_TEXTS = [
    ("Η Αθήνα είναι ΠΌΛΗΣ και Ω", "ΠΌΛΗΣ"),
    ("😀😀 the 👩‍🔬 film ❤️ was good", "❤️"),
    ("😀😀 the 👩‍🔬 film ❤️ was good", "film"),
    ("a cafe\u0301 near the cafe\u0301", "cafe\u0301"),
    ("a\u0301\u0302 b\u0303 good film", "b\u0303 good"),
    ("İstanbul İİ  very   good", "very   good"),
    ("İİİ İstanbul. The film", "İstanbul"),
    ("two  spaces \t and\n\nlines here", "and\n\nlines"),
    ("\ufeffa\u200bb \u00adthe soft film", "soft film"),
    ("한국어 각 good 각", "각"),
    ("北京是good城市", "good"),
    ("（好）10–12 %", "10–12 %"),
]


@pytest.mark.parametrize("tokenizer", [TOKENIZER, CASED], ids=["lower case", "cased"])
@pytest.mark.parametrize("context,answer", ODD_TEXTS)
def test_an_answer_after_odd_characters_is_a_slice_of_the_text(tokenizer, context, answer):
    found = Answer(answer, context.rindex(answer))
    cut = QuestionCutter(tokenizer, max_length=20, max_question_length=4)("the film", context)
    assert cut.misfit(found, 30) is None
    assert answer_at_gold_pieces(cut, found) == answer


WORDS = st.sampled_from("Ωδή ΣΑΣ İz ß naïve cafe\u0301 e\u0301\u0323 😀 👍🏽 ❤️ 각 한국 北 the film I . ( ﬁ ǅ".split())
SPACES = st.sampled_from([" ", "  ", "\u00a0", "\n", "\u3000", " \u200b "])


@settings(deadline=None)
@given(st.lists(st.tuples(WORDS, SPACES), min_size=1, max_size=12), st.data())
def test_words_between_spaces_are_answered_character_by_character(parts, data):
    context, bounds = "", []
    for word, space in parts:
        bounds.append((len(context), len(context) + len(word)))
        context += word + space
    first = data.draw(st.integers(0, len(parts) - 1))
    last = data.draw(st.integers(first, len(parts) - 1))
    start, end = bounds[first][0], bounds[last][1]
    answer = Answer(context[start:end], start)
    cut = QuestionCutter(TOKENIZER, max_length=18, max_question_length=2)("the film", context)
    most = 30
    if (why := cut.misfit(answer, most)) is None:
        assert answer_at_gold_pieces(cut, answer, most) == answer.text
    else:
        # Nothing is wrong with the characters: it has too many pieces.
        assert "longer" in why


def test_any_stretch_of_pieces_is_found_again():
    for tokenizer in (TOKENIZER, CASED):
        cutter = QuestionCutter(tokenizer, max_length=24, max_question_length=2)
        for number, context in enumerate(unicode_texts(120, seed=3)):
            cut = cutter("the film", context)
            pieces = min(len(cut.starts), 60)
            for first in range(number % 5, pieces, 5):
                last = min(first + number % 4, pieces - 1)
                start, end = int(cut.starts[first]), int(cut.ends[last])
                answer = Answer(context[start:end], start)
                assert answer.text.strip() == answer.text and cut.misfit(answer, 1000) in (None, TOO_LONG)
                if cut.misfit(answer, 1000) is None:
                    assert answer_at_gold_pieces(cut, answer, 1000) == answer.text


def test_a_mark_that_is_a_piece_of_its_own_is_no_part_of_the_one_before():
    tokenizer = WordPieceTokenizer([*TOKENIZER.vocabulary, "##\u0301"], lowercase=False)
    cut = QuestionCutter(tokenizer, max_length=16, max_question_length=4)("the", "e\u0301 e")
    assert cut.starts.tolist() == [0, 1, 3] and cut.ends.tolist() == [1, 2, 4]


TOO_LONG = "is longer than what two windows share"


@pytest.mark.parametrize(
    "answer,why",
    [
        (Answer("film", 4), None),
        (Answer(" film ", 3), None),
        (Answer("fil", 4), "begins or ends inside a piece"),
        (Answer("ilm was", 5), "begins or ends inside a piece"),
        (Answer("a b c d", 18), "is longer than 3 pieces"),
        (Answer("gone", -1), "is not there in the text"),
        (Answer("film", 5), "is not there in the text"),
        (Answer("\u200b", 32), "has nothing in it that the tokenizer reads"),
    ],
)
def test_answers_that_cannot_be_given_are_named(answer, why):
    assert CUTTER("who", "the film was very a b c d e f g \u200b").misfit(answer, 3) == why


def test_an_answer_that_no_window_has_whole_is_named():
    cut = QuestionCutter(TOKENIZER, max_length=8, max_question_length=1)("a", "a b c d e f g h")
    assert [window.end - window.begin for window in cut.windows] == [4, 4, 4]
    assert cut.misfit(Answer("c d e f", 4), 30) is None
    assert cut.misfit(Answer("b c d e", 2), 30) == TOO_LONG


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("max_length,max_question_length", [(64, 32), (384, 64)])
@pytest.mark.parametrize(
    "data,vocabulary,every,unlike",
    # Every eighth of dev v1.1's questions; all of XQuAD's.
    [("dev-v1.1", "bert-base-uncased", 8, 0.01), ("xquad.zh", "bert-base-chinese", 1, 0.015)],
)
def test_gold_spans_give_every_answer_that_fits(
    shared, data, vocabulary, every, unlike, max_length, max_question_length
):
    tokenizer = WordPieceTokenizer.from_vocab_file(shared / "data" / "vocab" / f"{vocabulary}-vocab.txt")
    cutter = QuestionCutter(tokenizer, max_length=max_length, max_question_length=max_question_length)
    with lzma.open(shared / "data" / "squad" / f"{data}.json.xz") as file:
        articles = json.load(file)["data"]
    asked = [(p["context"], entry) for article in articles for p in article["paragraphs"] for entry in p["qas"]]
    named, given = [], 0
    for context, entry in asked[::every]:
        cut = cutter(entry["question"], context)
        for text, start in {(answer["text"], answer["answer_start"]) for answer in entry["answers"]}:
            answer = Answer(text, start)
            if why := cut.misfit(answer, 30):
                named.append((entry["id"], text, why))
            else:
                given += 1
                assert answer_at_gold_pieces(cut, answer) == text.strip(), entry["id"]
    assert given > 1000 and len(named) < unlike * given, named
