"""Answers to questions, from what a model gives for rows."""

import dataclasses
from collections.abc import Callable, Iterable

from keras_bert_impl.errors import InputError
from keras_bert_impl.tasks.answer_spans import CONSIDERED, FoundAnswer, ScoredAnswer, chosen_answer, found_answers
from keras_bert_impl.tasks.answer_windows import QuestionCutter
from keras_bert_impl.tasks.asked_model import AskedModel
from keras_bert_impl.tasks.rows import list_of_texts


@dataclasses.dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """The answer to a question.

    Attributes:
        text: `context[start:end]`; `""` for no answer.
        start, end: characters of the context.
        probability: softmax over the 20 best answers, or as many as were asked for if more, and "no answer" where there
            may be none.
        score: sum of the scores of its start and its end; for no answer, `null_score`.
        null_score: that of "no answer", the lowest of all windows; None if there must be an answer.
        answers: the best ones by score, as many as were asked for; `""` among them for no answer.
        windows: rows that the question took.
        truncated: whether the question was cut off.
    """

    text: str
    start: int
    end: int
    probability: float
    score: float
    null_score: float | None
    answers: tuple[ScoredAnswer, ...]
    windows: int
    truncated: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class FoundAnswers:
    """The best answers to a question.

    Attributes:
        answers: best first; none if the text has no words.
        null_score: that of "no answer".
        windows: rows that the question took.
        truncated: whether the question was cut off.
    """

    answers: list[FoundAnswer]
    null_score: float
    windows: int
    truncated: bool

    @property
    def null_difference(self) -> float:
        """By how much "no answer" scores better than the best answer; 0 if there is none."""
        return self.null_score - self.answers[0].score if self.answers else 0.0


class QuestionAnswers(AskedModel):
    """Answers questions, by the scores that a model gives the tokens of rows.

    Attributes:
        cutter: makes rows of questions and their texts.
    """

    def cut_into_rows(self) -> None:
        """Makes ready for questions, by the settings."""
        settings = self.settings
        shorter = self.max_length < (settings.max_length or self.max_length)
        self.cutter = QuestionCutter(
            self.tokenizer,
            max_length=self.max_length,
            stride=settings.stride,
            # Questions of which all was kept in longer rows may leave no room for the text in shorter ones.
            max_question_length=min(settings.max_question_length, self.max_length // 2)
            if shorter
            else settings.max_question_length,
        )

    def __call__(
        self,
        questions: Iterable[str],
        contexts: Iterable[str],
        n_best: int = 1,
        *,
        batch_size: int = 32,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[AnsweredQuestion]:
        """Answers questions.

        Args:
            questions: the questions.
            contexts: the text of each.
            n_best: answers for each question in `AnsweredQuestion.answers`.
            batch_size: rows that are worked on at once.
            on_progress: takes the number of rows of each batch that is done.

        Returns:
            One answer for each question, in order. A text without words has none.

        Raises:
            InputError: if there are not as many texts as questions, or one is no text.
        """
        if isinstance(n_best, bool) or not isinstance(n_best, int) or n_best < 1:
            raise InputError(f"`n_best` must be a positive whole number. Received: n_best={n_best!r}")
        found = self.find(
            questions, contexts, batch_size=batch_size, on_progress=on_progress, count=max(n_best, CONSIDERED)
        )
        return [self.choose(one, n_best) for one in found]

    def find(
        self,
        questions: Iterable[str],
        contexts: Iterable[str],
        *,
        batch_size: int = 32,
        on_progress: Callable[[int], None] | None = None,
        count: int = CONSIDERED,
    ) -> list[FoundAnswers]:
        """Finds the best answers to questions, and leaves it open whether one is given; otherwise as a call.

        Args:
            questions: the questions.
            contexts: the text of each.
            batch_size: rows that are worked on at once.
            on_progress: takes the number of rows of each batch that is done.
            count: answers that are wanted of each.
        """
        questions, contexts = list_of_texts("questions", questions), list_of_texts("contexts", contexts)
        if len(questions) != len(contexts):
            raise InputError(
                "`contexts` must have one text for each question. "
                f"Received: {len(questions)} questions, {len(contexts)} texts"
            )
        cut = [self.cutter(question, context) for question, context in zip(questions, contexts, strict=True)]
        self.count_texts(f"{question} {context}" for question, context in zip(questions, contexts, strict=True))
        outputs = iter(self.outputs([window for one in cut for window in one.windows], batch_size, on_progress))
        return [
            FoundAnswers(
                *found_answers(one, [next(outputs) for _ in one.windows], self.settings.max_answer_length, count),
                windows=len(one.windows),
                truncated=one.truncated,
            )
            for one in cut
        ]

    def choose(self, found: FoundAnswers, n_best: int = 1, null_threshold: float | None = None) -> AnsweredQuestion:
        """Returns the answer that is given, of those that were found.

        Args:
            found: what `find` returned for a question.
            n_best: answers in `AnsweredQuestion.answers`.
            null_threshold: in place of that of the settings.
        """
        settings = self.settings
        given, answers = chosen_answer(
            found.answers,
            found.null_score,
            may_have_no_answer=settings.may_have_no_answer,
            null_threshold=settings.null_threshold if null_threshold is None else null_threshold,
        )
        return AnsweredQuestion(
            text=given.text,
            start=given.start,
            end=given.end,
            probability=given.probability,
            score=given.score,
            null_score=found.null_score if settings.may_have_no_answer else None,
            answers=tuple(answers[:n_best]),
            windows=found.windows,
            truncated=found.truncated,
        )
