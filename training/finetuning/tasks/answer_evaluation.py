"""How well a model answers questions."""

import math
from collections.abc import Sequence

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.examples import Question
from keras_bert_impl.tasks.question_answering import QuestionAnswering
from keras_bert_impl.tasks.question_answers import AnsweredQuestion, FoundAnswers

from ...corpus.wording import counted
from ..answers import is_finite, not_finite_note, question_answer
from ..metrics.classification import calibration_error, reliability
from ..metrics.question_answering import answer_scores, best_threshold, score_answers
from ..task import Evaluation
from .warning_text import collapsed


def evaluate_questions(
    answering: QuestionAnswering,
    examples: Sequence[Question],
    *,
    batch_size: int = 32,
    choose_threshold_by: str | None = None,
) -> Evaluation:
    """Lets a model answer questions and compares, by the official rules of SQuAD; numbers are in percent.

    Args:
        answering: the model.
        examples: one or more questions with their answers.
        batch_size: rows that are worked on at once.
        choose_threshold_by: `"f1"` or `"exact_match"`, to answer by the null threshold by which it is best on these
            examples, in place of that of the settings.

    Raises:
        InputError: if there are no questions.
    """
    found = _found(answering, examples, batch_size)
    may_have_none = answering.settings.may_have_no_answer
    threshold = answering.settings.null_threshold
    if may_have_none and choose_threshold_by is not None:
        threshold, _ = _best_threshold(found, examples, choose_threshold_by)
    answered = [answering.choose(one, null_threshold=threshold) for one in found]
    given = [one.text for one in answered]
    differences = [one.null_difference for one in found]
    metrics = score_answers(examples, given, *((differences, _if_any(found)) if may_have_none else ()))
    exact, _ = answer_scores(examples, given, version_2=any(example.impossible for example in examples))
    curve = reliability([(one.probability, ok == 1) for one, ok in zip(answered, exact.tolist(), strict=True)])
    metrics |= {"null_threshold": threshold} if may_have_none else {}
    metrics |= {
        "calibration_error": calibration_error(curve),
        "questions_in_windows": sum(one.windows > 1 for one in answered),
        "truncated": sum(one.truncated for one in answered),
    }
    fields = [question_answer(one) for one in answered]
    predictions = [
        {
            **({} if example.id is None else {"id": example.id}),
            "question": example.question,
            "context": example.context,
            **answer,
            "right": [] if example.impossible else [answer.text for answer in example.answers],
            "correct": ok == 1,
        }
        for example, answer, ok in zip(examples, fields, exact.tolist(), strict=True)
    ]
    odd = _warnings(answering, examples, answered)
    if not_finite := sum(not is_finite(answer) for answer in fields):
        odd.append(not_finite_note(not_finite, "question"))
    return Evaluation(metrics, predictions, odd, {"reliability": curve})


def null_threshold(
    answering: QuestionAnswering, examples: Sequence[Question], metric: str, *, batch_size: int = 32
) -> tuple[float, float]:
    """Finds how much better than the best answer "no answer" had best score to be given.

    Args:
        answering: the model.
        examples: one or more questions with their answers.
        metric: `"f1"` or `"exact_match"`, what is to be best.
        batch_size: rows that are worked on at once.

    Returns:
        The threshold, and the metric in percent that is reached by it.

    Raises:
        InputError: if there are no questions.
    """
    return _best_threshold(_found(answering, examples, batch_size), examples, metric)


def _found(answering: QuestionAnswering, examples: Sequence[Question], batch_size: int) -> list[FoundAnswers]:
    if not examples:
        raise InputError("`examples` must be one or more questions. Received: none")
    questions, contexts = [example.question for example in examples], [example.context for example in examples]
    return answering.find(questions, contexts, batch_size=batch_size)


def _best_threshold(found: Sequence[FoundAnswers], examples: Sequence[Question], metric: str) -> tuple[float, float]:
    exact, overlap = answer_scores(examples, _if_any(found), version_2=True)
    has_answer = np.asarray([not example.impossible for example in examples])
    differences = [one.null_difference for one in found]
    best, threshold = best_threshold(overlap if metric == "f1" else exact, differences, has_answer)
    return threshold, best


def _if_any(found: Sequence[FoundAnswers]) -> list[str]:
    """Returns the answers that are given where "no answer" is not."""
    return [one.answers[0].text if one.answers else "" for one in found]


def _warnings(
    answering: QuestionAnswering, examples: Sequence[Question], answered: Sequence[AnsweredQuestion]
) -> list[str]:
    odd = []
    impossible = sum(example.impossible for example in examples)
    if impossible and not answering.settings.may_have_no_answer:
        odd.append(
            f"{counted(impossible, 'question')} {'has' if impossible == 1 else 'have'} no answer, and the model was "
            "not trained on such: it always gives one, which is counted as wrong."
        )
    finite = all(math.isfinite(one.score) for one in answered)
    may_have_none = answering.settings.may_have_no_answer
    if finite and may_have_none and not any(one.text for one in answered) and impossible < len(examples):
        odd.append(collapsed(f"no answer to any of {counted(len(answered), 'question')}"))
    return odd
