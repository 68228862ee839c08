"""Question answering while a model is fine-tuned for it: rows, loss, threshold, evaluation."""

from pathlib import Path

import numpy as np
import pytest
from answerers import EagerAnswering, told_answerer
from keras import ops
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertEncoder, BertQuestionAnswerer
from keras_bert_impl.tasks import Answer, Question, TaskSettings
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.tasks.answer_evaluation import evaluate_questions, null_threshold
from keras_bert_impl.training.finetuning.tasks.question_answering import QuestionAnsweringTask

TOKENIZER = toy_tokenizer()
CONFIG = toy_bert_config(TOKENIZER, num_hidden_layers=1)
SETTINGS = TaskSettings(task="qa", max_length=16, max_question_length=4, max_answer_length=3, may_have_no_answer=True)


def asked(context: str, *answers: str, name: str | None = None) -> Question:
    placed = tuple(Answer(answer, context.find(answer)) for answer in answers)
    return Question("the book ?", context, placed, impossible=not answers, id=name)


TRAIN = [asked("a good film", "good"), asked("the play was bad . i i i i i i i i", "bad")]
NONE = asked("the very dull song", name="q7")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("encoder")
    BertEncoder(CONFIG, pooler=False, seed=5).save_pretrained(path, TOKENIZER)
    return path


def task_on(model: Path, train=TRAIN, dev=(), **settings) -> QuestionAnsweringTask:
    said: list[str] = []
    options = {"max_length": 13, "max_question_length": 4, "max_answer_length": 3, **settings}
    config = FinetuneConfig(task="qa", model=str(model), train=("train.json",), output="out", **options)
    task = QuestionAnsweringTask(config, TOKENIZER, said.append)
    task.said = said
    task.prepare(train, dev)
    return task


def test_settings_come_from_the_questions_and_are_said(encoder):
    task = task_on(encoder, [*TRAIN, NONE], [NONE])
    assert task.settings == TaskSettings(
        task="qa", max_length=13, max_question_length=4, max_answer_length=3, may_have_no_answer=True
    )
    assert task.labels == ()
    assert task.said == [
        "train: 3 questions, 1 without an answer.",
        "dev: 1 question, 1 without an answer.",
        "A fresh head is trained.",
    ]
    task = task_on(encoder, dev=[NONE])
    assert not task.settings.may_have_no_answer
    assert "train has no question without an answer: the model will always give one." in task.said


def test_rows_have_the_answer_where_the_window_does_and_cls_elsewhere(encoder):
    task = task_on(encoder, [*TRAIN, NONE])
    rows = task.rows([*TRAIN, NONE])
    pieces = [[TOKENIZER.vocabulary[i] for i in ids] for ids in rows.token_ids]
    question = ["[CLS]", "the", "book", "?", "[SEP]"]
    assert pieces[0] == [*question, "a", "good", "film", "[SEP]"]
    assert pieces[1] == [*question, "the", "play", "was", "bad", ".", "i", "i", "[SEP]"]
    learned = [(row[start], row[end]) for row, start, end in zip(pieces, *starts_and_ends(rows), strict=True)]
    assert learned == [("good",) * 2, ("bad",) * 2, ("bad",) * 2, ("[CLS]",) * 2, ("[CLS]",) * 2]
    assert [len(real) for real in rows.targets["real"]] == [len(ids) for ids in rows.token_ids]
    assert task.said[-1] == (
        "The texts of 1 of 3 questions are longer than a row of 13 ids and read in overlapping windows; there are "
        "5 rows."
    )


def starts_and_ends(rows) -> tuple[list[int], list[int]]:
    return rows.targets["start"], rows.targets["end"]


def test_the_first_answer_that_can_be_learned_is(encoder):
    question = Question("the book", "a good film", (Answer("gone", -1), Answer("good film", 2), Answer("a", 0)))
    assert starts_and_ends(task_on(encoder).rows([question])) == ([5], [6])


def test_what_cannot_be_learned_is_left_out_and_named(encoder):
    long = asked("a b c d e f g h i j k", "a b c d e f g h i", name="long")
    gone = Question("the book", "a good film", (Answer("gone", -1),), id="gone")
    inside = asked("a good film", "goo", name="inside")
    task = task_on(encoder)
    rows = task.rows([long, gone, inside, Question("the very good book .", "a good", (Answer("a", 0),))])
    assert len(rows.token_ids) == 2 and starts_and_ends(rows) == ([6, 6], [6, 6])
    assert task.said[-3:] == [
        "1 question longer than 4 pieces, cut off there.",
        "2 questions left out, since no window holds an answer whole (long, gone).",
        "1 question whose answer begins or ends inside a piece; the piece is learned whole (inside).",
    ]


def test_dev_questions_that_cannot_be_answered_word_for_word_are_named(encoder):
    dev = [
        asked("a good film", "goo", name="1"),
        asked("a good film", "goo", "good", name="2"),
        asked("a b c d e f", "a b c d", name="3"),
        asked("a b c d e f", "b c d e", name="4"),
    ]
    said = task_on(encoder, dev=dev).said
    why = "cannot be answered word for word, since the answer"
    assert f"dev: 1 question {why} begins or ends inside a piece (1)." in said
    assert f"dev: 2 questions {why} is longer than 3 pieces (3, 4)." in said


def test_the_loss_is_the_mean_cross_entropy_of_start_and_end_without_padding(encoder):
    task = task_on(encoder)
    rng = np.random.default_rng(1)
    lengths, starts, ends = [5, 7, 0], [2, 6, 0], [4, 0, 0]
    logits = {name: rng.normal(size=(3, 9)).astype("float32") for name in ("start_logits", "end_logits")}
    real = np.array([[float(place < length) for place in range(9)] for length in lengths], "float32")
    total, weight = task.loss_sums(
        {name: ops.convert_to_tensor(values) for name, values in logits.items()},
        {"start": np.array(starts, "int32"), "end": np.array(ends, "int32"), "real": real},
    )

    def loss(scores: np.ndarray, right: int) -> float:
        return float(np.log(np.exp(scores.astype("float64")).sum()) - scores[right])

    expected = [
        (loss(logits["start_logits"][i, :length], starts[i]) + loss(logits["end_logits"][i, :length], ends[i])) / 2
        for i, length in enumerate(lengths)
        if length
    ]
    # The last row is padding alone, which is none.
    assert float(total) == pytest.approx(sum(expected), rel=1e-5) and float(weight) == 2


@pytest.mark.parametrize(
    "train,settings,message",
    [
        ([NONE], {}, "`train` must have questions with an answer that the text holds. Received: 1 question without"),
        ([], {}, "`train` must have questions with an answer that the text holds. Received: 0 questions"),
        (
            [*TRAIN, Question("the", "a", id="q3")],
            {},
            r"`train` must have the answers of every question, or say.*Received: 1 question without, the first q3",
        ),
        (
            TRAIN,
            {"max_length": 65},
            "`max_length` must be at most 64, the positions of the model. Received: max_length",
        ),
        (TRAIN, {"max_question_length": 10}, "`max_question_length` must leave room for the text: at most `max_length"),
        (TRAIN, {"classifier_dropout": 0.2}, "`classifier_dropout` must go with another `task` than qa, whose head ha"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(encoder, train, settings, message):
    with pytest.raises(InputError, match=message):
        task_on(encoder, train, **settings)


def test_the_models_own_head_is_kept_unless_a_fresh_one_is_asked_for(tmp_path, encoder):
    model = BertQuestionAnswerer(CONFIG, seed=6)
    model.save_pretrained(tmp_path / "model", TOKENIZER)

    def kernel(made) -> np.ndarray:
        return np.asarray(made.qa_head.kernel)

    kept, fresh = task_on(tmp_path / "model"), task_on(tmp_path / "model", fresh_head=True)
    assert "The model's head for answers is kept." in kept.said and "A fresh head is trained." in fresh.said
    np.testing.assert_array_equal(kernel(kept.make_model(1)), kernel(model))
    drawn = [kernel(task.make_model(seed)) for task, seed in ((fresh, 1), (fresh, 2), (task_on(encoder), 1))]
    assert not np.array_equal(drawn[0], kernel(model)) and not np.array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[0], drawn[2])


SCORES = {"good": (4, 4), "bad": (3, 3), "dull": (1, 1), "film": (2.5, 2.5), "[CLS]": (2, 2)}
DEV = [
    asked("the good play", "good", name="1"),
    asked("a bad song", "bad", name="2"),
    asked("a film", "film", name="3"),
    asked("a good song", name="4"),
    asked("the dull play", "dull", name="5"),
    asked("the play", name="6"),
]


@pytest.fixture(scope="module")
def model():
    return told_answerer(TOKENIZER, SCORES, num_hidden_layers=1)


def test_answers_are_compared_with_the_right_ones(model):
    answering = EagerAnswering(model=model, tokenizer=TOKENIZER, settings=SETTINGS)
    evaluation = evaluate_questions(answering, DEV)
    metrics = evaluation.metrics
    # 1, 2, 3 and 6 are right; 4 gets an answer, 5 none.
    assert metrics["exact_match"] == metrics["f1"] == pytest.approx(100 * 4 / 6)
    assert metrics["has_answer"]["f1"] == 75 and metrics["no_answer"]["f1"] == 50
    # With "dull" too, which is 2 below "no answer": the play, 4 below, still gets none.
    assert metrics["best_f1"] == metrics["best_exact_match"] == pytest.approx(100 * 5 / 6)
    assert metrics["best_f1_threshold"] == pytest.approx(3, abs=1e-4)
    assert (metrics["questions"], metrics["truncated"], metrics["questions_in_windows"]) == (6, 0, 0)
    first, *_, last = evaluation.predictions
    assert (first["id"], first["question"], first["answer"], first["start"], first["end"]) == (
        "1",
        "the book ?",
        "good",
        4,
        8,
    )
    assert (first["right"], first["correct"], last["right"], last["correct"]) == (["good"], True, [], True)
    assert sum(evaluation.pictures["reliability"]["counts"]) == 6 and evaluation.warnings == []


def test_the_threshold_of_no_answer_is_chosen_on_dev(encoder, model):
    task = task_on(encoder, [*TRAIN, NONE])
    task._answering = EagerAnswering(model=model, tokenizer=TOKENIZER, settings=task.settings)
    # Each model is measured by its own threshold until one is chosen.
    before = task.evaluate(model, DEV).metrics
    assert before["f1"] == before["best_f1"] == pytest.approx(100 * 5 / 6)
    prepared = task.settings
    task.finish(model, DEV)
    assert task.evaluate(model, DEV[:5]).metrics["null_threshold"] == task.settings.null_threshold
    assert task.settings.null_threshold == pytest.approx(3, abs=1e-4)
    assert task.evaluate(model, DEV).metrics["f1"] == pytest.approx(100 * 5 / 6)
    assert task.said[-1].startswith("No answer is given where it scores better than the best answer by more than 3.")
    assert null_threshold(task._answering, DEV, "exact_match")[1] == pytest.approx(100 * 5 / 6)
    task.settings = prepared  # as before the next seed
    assert task.evaluate(model, DEV[:1]).metrics["null_threshold"] != before["null_threshold"]


def test_without_questions_without_answer_there_is_no_threshold(encoder, model):
    task = task_on(encoder)
    before = task.settings
    task.finish(model, TRAIN)
    assert task.settings == before


def test_what_is_odd_about_answers_is_warned_of(model):
    always = TaskSettings(task="qa", max_length=16, max_question_length=4)
    answering = EagerAnswering(model=model, tokenizer=TOKENIZER, settings=always)
    (warning,) = evaluate_questions(answering, DEV).warnings
    assert warning.startswith("2 questions have no answer, and the model was not trained on such")
    answering.settings = TaskSettings(task="qa", max_length=16, may_have_no_answer=True, null_threshold=-99.0)
    (warning,) = evaluate_questions(answering, DEV).warnings
    assert warning.startswith("The model gives no answer to any of 6 questions: it has collapsed")
    with pytest.raises(InputError, match=r"`examples` must be one or more questions. Received: none"):
        evaluate_questions(answering, [])
