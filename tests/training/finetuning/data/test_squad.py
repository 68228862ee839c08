import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from labelled_data import columns, written

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks import Answer, Question
from keras_bert_impl.training.finetuning.data import read_questions, stream_questions

CONTEXT = "In 1973 the İstanbul  café 😀 opened; in 1973 Ἀθῆναι slept."


def squad(*qas: dict[str, Any], context: str = CONTEXT) -> str:
    return json.dumps(
        {"version": "1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": list(qas)}]}]}
    )


def qa(*answers: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "7",
        "question": "When?",
        "answers": [{"text": text, "answer_start": start} for text, start in answers],
        **more,
    }


class Reader:
    """Reads files of a folder and keeps what was said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def __call__(
        self, content: str | bytes, name: str = "a.json", labelled: bool = True, **given: Any
    ) -> list[Question]:
        path = written(self.folder, name, content)
        config = columns("qa", **given)
        return read_questions([path], config, argument="train", labelled=labelled, say=self.said.append)

    def says(self, words: str) -> bool:
        return any(words in line for line in self.said)


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def test_questions_of_squad_are_read(read: Reader):
    (question,) = read(squad(qa(("1973", 3), ("café 😀", 22))))
    assert question == Question(
        "When?",
        CONTEXT,
        (Answer("1973", 3), Answer("café 😀", 22)),
        False,
        "7",
        f"{read.folder / 'a.json'}:data[0].paragraphs[0].qas[0]",
    )
    assert read.said == [f"{read.folder / 'a.json'}: 1 question."]


@pytest.mark.parametrize("name", ["a.json", "a.txt", "a"])
@pytest.mark.parametrize("indent", [None, 1])
def test_squad_is_known_by_its_content(name: str, indent: int | None, read: Reader):
    content = json.dumps(json.loads(squad(qa(("1973", 3)))), indent=indent)
    assert len(read(content, name)) == 1
    assert len(read(lzma.compress(content.encode()), name + ".xz")) == 1


def test_questions_without_an_answer_are_impossible(read: Reader):
    plausible = [{"text": "1973", "answer_start": 3}]
    found = read(
        squad(
            qa(("1973", 3), ("café", 22), is_impossible=True, plausible_answers=plausible),
            qa(("1973", 3), is_impossible=False, id="8"),
            qa(id="9"),
        )
    )
    assert [(question.impossible, len(question.answers)) for question in found] == [(True, 0), (False, 1), (True, 0)]
    assert read.says("3 questions, 2 of them without an answer.")
    assert read.says("left out 2 answers of questions that `is_impossible` says have none.")


@pytest.mark.parametrize(
    ("answer", "place", "said"),
    [
        (("café", 3), 22, "1 answer with a wrong start, moved to the only place with its text."),
        (("café", -5), 22, "1 answer with a wrong start, moved to the only place with its text."),
        (("café", 10_000), 22, "1 answer with a wrong start, moved to the only place with its text."),
        (("1973", 33), 40, "1 answer with a wrong start, moved to the nearest of several places with its text."),
        (("1973", 5), 3, "1 answer with a wrong start, moved to the nearest of several places with its text."),
        (("1973", None), 3, "1 answer without a start, taken at the first of several places."),
        (("café", None), 22, ""),
        (("1973", "3"), 3, ""),
    ],
)
def test_an_answer_is_brought_to_its_place(answer: tuple[str, Any], place: int, said: str, read: Reader):
    (question,) = read(squad(qa(answer)))
    assert question.answers == (Answer(answer[0], place),)
    assert CONTEXT[place : place + len(answer[0])] == answer[0]
    assert read.says(said) and len(read.said) == 1 + bool(said)


def test_blanks_around_an_answer_are_taken_off(read: Reader):
    assert read(squad(qa((" café ", 21))))[0].answers == (Answer("café", 22),)
    assert read.says("1 answer with blanks around it, which were taken off.")
    assert read(squad(qa((" café", 3))))[0].answers == (Answer("café", 22),)


def test_a_question_whose_answer_is_absent_is_named_and_kept(read: Reader):
    found = read(squad(qa(("cafe", 22), ("1973", 3)), qa(("Bonn", 3), id="8")))
    assert found[0].answers == (Answer("cafe", -1), Answer("1973", 3))
    assert found[1].answers == (Answer("Bonn", -1),)
    assert not found[1].impossible
    assert read.says("2 questions with an answer that the context does not hold (7, 8)")
    assert read.says("1 question of which the context holds no answer (8); nothing can be learned from them.")


def test_repeated_ids_and_empty_contexts_are_said(read: Reader):
    read(squad(qa(), qa(), context=" "))
    assert read.says("1 question with the id of another one.")
    assert read.says("2 questions with an empty context.")


def test_answers_may_be_left_alone(read: Reader):
    (question,) = read(squad({"question": "When?", "id": 7}), labelled=False)
    assert question.answers == () and not question.impossible and question.id == "7"
    with pytest.raises(InputError, match=r"in which data\[0\]\.paragraphs\[0\]\.qas\[0\]\.answers is not a list$"):
        read(squad({"question": "When?", "id": 7}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [', r"`train` must be JSON\. Received: '.*a\.json', which is not \(line 1: "),
        (
            squad(qa(id="\ud800")),
            r"`train` must hold whole characters\. Received: .*qas\[0\], which has half a surrogate",
        ),
        (squad(qa(("\udfff", 0))), r"`train` must hold whole characters\. Received: .*qas\[0\], which has half a surr"),
        ('{"data": [{}]}', r"`train` must be JSON as SQuAD has it: .*, in which data\[0\]\.paragraphs is not a list$"),
        ('[{"question": "?"}]', r"must be JSON as SQuAD has it: .*, in which data is not a list$"),
        (squad({"answers": []}), r"in which data\[0\]\.paragraphs\[0\]\.qas\[0\]\.question is not text$"),
        (squad(qa(is_impossible=1)), r"in which data\[0\]\..*\.is_impossible is not true or false$"),
        (squad(qa(is_impossible=False)), r"qas\[0\]\.answers is not one or more answers, or `is_impossible`$"),
        (
            squad(qa(("1973", "x"))),
            r"`train` must have whole numbers as starts of answers\. Received: 'x' in .*qas\[0\]$",
        ),
        (squad(qa(("1973", 3.5))), r"must have whole numbers as starts of answers\. Received: 3\.5 in .*qas\[0\]$"),
        (
            squad(qa((5, 3))),
            r"`train` must have answers as text, a list of text, or text with answer_start\. Received: ",
        ),
        ('{"data": []}', r"`train` must have questions\. Received: '.*', which has none$"),
    ],
)
def test_what_is_not_as_squad_has_it_is_named(content: str, message: str, read: Reader):
    with pytest.raises(InputError, match=message):
        read(content)


def test_questions_come_from_tables(read: Reader):
    content = "id,question,context,answer,answer_start\n1,When?,In 1973 and 1973.,1973,12\n2,Who?,Nobody.,,\n"
    first, second = read(content, "a.csv")
    assert first == Question(
        "When?", "In 1973 and 1973.", (Answer("1973", 12),), False, "1", f"{read.folder / 'a.csv'}:2"
    )
    assert second.impossible and second.answers == ()
    assert read.says("columns: question 'question', context 'context', answer 'answer', start 'answer_start'.")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"answers": {"text": ["1973", "so"], "answer_start": [3, 11]}}, (Answer("1973", 3), Answer("so", 11))),
        ({"answers": {"text": [], "answer_start": []}}, ()),
        ({"answers": [{"text": "so", "answer_start": 11}]}, (Answer("so", 11),)),
        ({"answers": ["1973", "so"]}, (Answer("1973", 3), Answer("so", 11))),
        ({"answer": "so"}, (Answer("so", 11),)),
        ({"answer": "1973", "answer_start": 3}, (Answer("1973", 3),)),
        ({"answers": "1973", "answer_start": [3]}, (Answer("1973", 3),)),
        ({"answer": None}, ()),
        ({"answers": []}, ()),
        ({"answers": {"text": "so"}}, (Answer("so", 11),)),
        ({"answer": "so", "is_impossible": True}, ()),
        ({"answer": "so", "is_impossible": "false"}, (Answer("so", 11),)),
    ],
)
def test_answers_of_json_lines_have_many_forms(fields: dict[str, Any], expected: tuple[Answer, ...], read: Reader):
    row = {"question": "When?", "context": "In 1973 it so was.", **fields}
    (question,) = read(json.dumps(row), "a.jsonl")
    assert question.answers == expected
    assert question.impossible == (not expected)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"answers": {"text": ["a"], "answer_start": [1, 2]}},
            r"must have answers as text, a list of text, or text with",
        ),
        (
            {"answers": 5},
            r"must have answers as text, a list of text, or text with answer_start\. Received: 5 in .*:1$",
        ),
        ({"answer": "", "is_impossible": False}, r"`train` must have an answer for every question\. Received: none in"),
        ({"answer": "a", "is_impossible": "maybe"}, r"must have true or false as is_impossible\. Received: 'maybe' in"),
        ({}, r"`label_column` must name the column of the answer\. Received: none; '.*' has the columns 'question',"),
        ({"answer": "a", "answers": "b"}, r"the column of the answer\. Received: 'answers' or 'answer'; "),
    ],
)
def test_a_faulty_row_is_named(fields: dict[str, Any], message: str, read: Reader):
    with pytest.raises(InputError, match=message):
        read(json.dumps({"question": "q", "context": "a b", **fields}), "a.jsonl")


def test_columns_of_questions_may_be_named(read: Reader):
    content = "frage\ttext\tantwort\nWann?\tIm Jahr 1973.\t1973\n"
    (question,) = read(content, "a.tsv", text_column="frage", text_pair_column="text", label_column="antwort")
    assert question.answers == (Answer("1973", 8),)
    with pytest.raises(InputError, match=r"`text_column` must name the column of the question\. Received: none; "):
        read(content, "a.tsv")


def test_parquet_as_data_sets_write_it_is_read(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    answers = [{"text": ["1973"], "answer_start": [3]}, {"text": [], "answer_start": []}]
    table = arrow.table({"id": ["a", "b"], "question": ["q", "q"], "context": ["In 1973."] * 2, "answers": answers})
    path = str(tmp_path / "a.parquet")
    parquet.write_table(table, path)
    found = read_questions([path], columns("qa"), argument="train", say=[].append)
    assert [(question.id, question.answers, question.impossible) for question in found] == [
        ("a", (Answer("1973", 3),), False),
        ("b", (), True),
    ]


def test_conll_is_refused(read: Reader):
    with pytest.raises(InputError, match=r"`train` must be SQuAD JSON or tables of questions\. Received: '.*', CoNLL$"):
        read("a O\n", "a.conll")


def test_questions_to_be_answered_come_with_their_columns(tmp_path: Path):
    path = written(tmp_path, "a.json", squad(qa(("1973", 3))))
    rows = stream_questions(path, columns("qa"), say=[].append)
    assert (rows.names, rows.id_column, rows.has_pairs) == (("id", "question", "context"), "id", True)
    (row,) = rows
    assert row.values == {"id": "7", "question": "When?", "context": CONTEXT}
    assert row.example.answers == ()
    path = written(tmp_path, "a.csv", "note,question,context\nx,When?,In 1973.\n")
    rows = stream_questions(path, columns("qa"), say=[].append)
    assert (rows.text_column, rows.pair_column, rows.id_column) == ("question", "context", None)
    assert [row.values["note"] for row in rows] == ["x"]
    assert list(stream_questions(written(tmp_path, "b.csv", ""), columns("qa"), say=[].append)) == []
