"""Answers to questions, as slices of the text that they are asked about."""

from typing import Any

from keras_bert_impl.models.bert_question_answerer import BertQuestionAnswerer
from keras_bert_impl.tasks.question_answers import QuestionAnswers
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tasks.task_model import TaskModel

USUAL_LENGTH = 384


class QuestionAnswering(QuestionAnswers, TaskModel):
    """Finds answers: questions and texts in, slices of the texts out.

    A text that is longer than a row is read in windows that overlap; see `QuestionCutter`. An answer has at most
    `settings.max_answer_length` pieces. Where `settings.may_have_no_answer`, "no answer" is given if it scores better
    than the best answer by more than `settings.null_threshold`. See `TaskModel` for the arguments.

    Example:
        >>> answering = QuestionAnswering("qa_model")
        >>> answering(["Where did she live?"], ["Ada Lovelace lived in London."])[0].text
        'London'
    """

    model_class = BertQuestionAnswerer
    head = "qa_head"
    tasks = ("qa",)
    per_token = True

    def __init__(self, path: Any = None, **options: Any) -> None:
        super().__init__(path, **options)
        self.cut_into_rows()

    @classmethod
    def usual_settings(cls, model: Any) -> TaskSettings:
        """Returns the settings of a model that comes without any: rows of 384, as in the original."""
        length = min(USUAL_LENGTH, model.config.max_position_embeddings)
        return TaskSettings(task="qa", max_length=length, max_question_length=min(64, length // 2))
