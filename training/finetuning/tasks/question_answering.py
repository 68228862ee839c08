"""Fine-tuning for questions whose answer is a stretch of a text."""

import collections
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.losses import token_losses
from keras_bert_impl.models.bert_question_answerer import BertQuestionAnswerer
from keras_bert_impl.tasks.answer_windows import AnswerWindow, CutQuestion, PieceSpan, QuestionCutter
from keras_bert_impl.tasks.examples import Question
from keras_bert_impl.tasks.question_answering import USUAL_LENGTH, QuestionAnswering
from keras_bert_impl.tasks.settings import TaskSettings

from ...configs.finetune import METRICS
from ...corpus.wording import counted
from ..metric_text import words
from ..task import Evaluation, FinetuningTask, TrainingRows
from .answer_evaluation import evaluate_questions, null_threshold

_NAMED = 5
# Added to the scores of padding: no token can have so much less, and the sum stays finite.
_NOT_A_TOKEN = -1e9


class QuestionAnsweringTask(FinetuningTask[Question]):
    """Extractive question answering as in SQuAD v1.1 and, where questions without an answer are among them, v2.0.

    A question and its text are rows `[CLS] question [SEP] text [SEP]`, one for each window of the text. The model
    learns where the first of the right answers starts and ends, and `[CLS]` for both where a window does not hold it.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), sections 4.2 and 4.3.
    """

    per_token = ("real",)
    metric_names = METRICS["qa"]

    _answering: QuestionAnswering | None = None
    _without_threshold: TaskSettings | None = None

    def read(self, files: Sequence[str | Path], argument: str) -> list[Question]:
        """Reads questions with their answers; says what was odd."""
        from ..data.squad import read_questions

        return read_questions(files, self.config, argument=argument, labelled=True, say=self.say)

    def prepare(self, train: Sequence[Question], dev: Sequence[Question]) -> None:
        """Finds the settings, says how many questions there are, and refuses what nothing can be learned from.

        Raises:
            InputError: if there are no answers to learn from, a question has neither answers nor is without, or rows
                would have more ids than the model positions or no room for the text.
        """
        if self.config.classifier_dropout is not None:
            raise InputError(
                "`classifier_dropout` must go with another `task` than qa, whose head has none. "
                f"Received: classifier_dropout={self.config.classifier_dropout}"
            )
        for argument, questions in (("train", train), ("dev", dev)):
            if unknown := [question for question in questions if not question.answers and not question.impossible]:
                raise InputError(
                    f"`{argument}` must have the answers of every question, or say that it has none. "
                    f"Received: {counted(len(unknown), 'question')} without, the first {_name(unknown[0])}"
                )
        if not any(answer.start >= 0 for question in train for answer in question.answers):
            raise InputError(
                "`train` must have questions with an answer that the text holds. "
                f"Received: {counted(len(train), 'question')} without one"
            )
        self._checkpoint = open_checkpoint(self.config.model)
        self.settings = self._found_settings(any(question.impossible for question in train))
        self._without_threshold = self.settings
        self._say_counts(train, dev)
        self._say_head()
        self._say_out_of_reach(dev)
        texts = [f"{question.question} {question.context}" for question in (*train, *dev)]
        self._say_letter_case(texts)

    def make_model(self, seed: int) -> BertQuestionAnswerer:
        """Reads the model to start from, with a fresh head where it has none."""
        return self._read_model(BertQuestionAnswerer, "qa_head", seed)

    def rows(self, examples: Sequence[Question]) -> TrainingRows:
        """Turns questions into rows; says how many windows there are, and what cannot be learned."""
        cutter = self._cutter()
        token_ids, segment_ids, starts, ends = [], [], [], []
        truncated = in_windows = 0
        left_out: list[Question] = []
        inexact: list[Question] = []
        for question in examples:
            cut = cutter(question.question, question.context)
            span = None if question.impossible else _span(question, cut)
            places = [_place(window, span) for window in cut.windows]
            if not question.impossible and not any(places):
                left_out.append(question)
                continue
            if span is not None and not span.exact:
                inexact.append(question)
            truncated += cut.truncated
            in_windows += len(cut.windows) > 1
            for window, place in zip(cut.windows, places, strict=True):
                token_ids.append(window.token_ids)
                segment_ids.append(window.segment_ids)
                start, end = place or (0, 0)
                starts.append(start)
                ends.append(end)
        self._say_rows(len(examples), len(token_ids), in_windows, truncated)
        self._say_named(left_out, "left out, since no window holds an answer whole")
        self._say_named(inexact, "whose answer begins or ends inside a piece; the piece is learned whole")
        # One array for all rows, of which each has a part.
        real = np.ones(max(map(len, token_ids), default=0), np.float32)
        return TrainingRows(
            token_ids, segment_ids, {"start": starts, "end": ends, "real": [real[: len(ids)] for ids in token_ids]}
        )

    def loss_sums(self, outputs: Any, targets: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the sum over the rows of the mean cross entropy of start and end, and the number of rows.

        Start and end are one of the row's real tokens: padding has no share, so a row's loss is the same in any batch.
        """
        real = ops.cast(targets["real"], "float32")
        padding = (1.0 - real) * _NOT_A_TOKEN
        losses = [
            token_losses(ops.cast(outputs[f"{name}_logits"], "float32") + padding, targets[name])
            for name in ("start", "end")
        ]
        # A row of padding alone is none.
        weights = ops.max(real, axis=-1)
        return ops.sum(weights * (losses[0] + losses[1])) / 2.0, ops.sum(weights)

    def evaluate(self, model: Any, examples: Sequence[Question]) -> Evaluation:
        """Lets the model answer and compares.

        Until `finish` has chosen the null threshold, each model is measured by the one that is best for it: early on
        "no answer" may score best, or worst, everywhere, and all models would look alike.
        """
        choose_by = self.config.main_metric if self.settings is self._without_threshold else None
        return self.measure(self._asked(model), examples, choose_threshold_by=choose_by)

    def measure(
        self, answers: Any, examples: Sequence[Question], *, choose_threshold_by: str | None = None
    ) -> Evaluation:
        """Compares answers to questions; `choose_threshold_by` as for `evaluate_questions`."""
        return evaluate_questions(
            answers, examples, batch_size=self.config.batch_size, choose_threshold_by=choose_threshold_by
        )

    def finish(self, model: Any, dev: Sequence[Question]) -> None:
        """Chooses the null threshold by which the metric is best on the dev questions."""
        if not self.settings.may_have_no_answer or not dev:
            return
        metric = self.config.main_metric
        threshold, best = null_threshold(self._asked(model), dev, metric, batch_size=self.config.batch_size)
        self.settings = dataclasses.replace(self.settings, null_threshold=threshold)
        self.say(
            f"No answer is given where it scores better than the best answer by more than {threshold:.4f}: so dev "
            f"{words(metric)} is best, {best:.2f}."
        )

    def _asked(self, model: Any) -> QuestionAnswering:
        if self._answering is None or self._answering.model is not model:
            # Kept, since it compiles the model.
            self._answering = QuestionAnswering(model=model, tokenizer=self.tokenizer, settings=self.settings)
        self._answering.settings = self.settings
        return self._answering

    def _cutter(self) -> QuestionCutter:
        assert self.settings.max_length is not None
        return QuestionCutter(
            self.tokenizer,
            max_length=self.settings.max_length,
            stride=self.settings.stride,
            max_question_length=self.settings.max_question_length,
        )

    def _found_settings(self, may_have_no_answer: bool) -> TaskSettings:
        length = self._row_length(USUAL_LENGTH)
        return TaskSettings(
            task="qa",
            max_length=length,
            stride=self.config.stride,
            max_question_length=self.config.max_question_length,
            max_answer_length=self.config.max_answer_length,
            may_have_no_answer=may_have_no_answer,
        )

    def _say_counts(self, train: Sequence[Question], dev: Sequence[Question]) -> None:
        for argument, questions in (("train", train), ("dev", dev)):
            if questions:
                impossible = sum(question.impossible for question in questions)
                without = f", {impossible:,} without an answer" if impossible else ", all with an answer"
                self.say(f"{argument}: {counted(len(questions), 'question')}{without}.")
        if any(question.impossible for question in dev) and not self.settings.may_have_no_answer:
            self.say("train has no question without an answer: the model will always give one.")

    def _say_head(self) -> None:
        has_head = "qa_head" in self._checkpoint.parts
        self._keeps_head = has_head and not self.config.fresh_head
        self.say("The model's head for answers is kept." if self._keeps_head else "A fresh head is trained.")

    def _say_out_of_reach(self, dev: Sequence[Question]) -> None:
        """Says which dev questions cannot be answered word for word, and why."""
        cutter, most = self._cutter(), self.settings.max_answer_length
        why: dict[str, list[Question]] = collections.defaultdict(list)
        for question in dev:
            if not question.impossible:
                cut = cutter(question.question, question.context)
                reasons = [cut.misfit(answer, most) for answer in question.answers]
                if first := reasons[0] if all(reasons) else None:
                    why[first].append(question)
        for reason, questions in why.items():
            self._say_named(questions, f"cannot be answered word for word, since the answer {reason}", "dev: ")

    def _say_rows(self, questions: int, rows: int, in_windows: int, truncated: int) -> None:
        settings = self.settings
        if in_windows:
            self.say(
                f"The texts of {in_windows:,} of {counted(questions, 'question')} are longer than a row of "
                f"{settings.max_length} ids and read in overlapping windows; there are {counted(rows, 'row')}."
            )
        if truncated:
            self.say(
                f"{counted(truncated, 'question')} longer than {settings.max_question_length} pieces, cut off there."
            )

    def _say_named(self, questions: Sequence[Question], what: str, prefix: str = "") -> None:
        if questions:
            names = ", ".join(_name(question) for question in questions[:_NAMED])
            more = ", …" if len(questions) > _NAMED else ""
            self.say(f"{prefix}{counted(len(questions), 'question')} {what} ({names}{more}).")


def _span(question: Question, cut: CutQuestion) -> PieceSpan | None:
    """Returns the pieces of the first right answer that some window holds whole."""
    for answer in question.answers:
        span = cut.span(answer)
        if span is not None and any(_place(window, span) for window in cut.windows):
            return span
    return None


def _place(window: AnswerWindow, span: PieceSpan | None) -> tuple[int, int] | None:
    """Returns where a row has the first and the last piece of an answer; None if it has not all of it."""
    if span is None or span.first < window.begin or span.last >= window.end:
        return None
    shift = window.place - window.begin
    return span.first + shift, span.last + shift


def _name(question: Question) -> str:
    return question.id or question.place or repr(question.question)
