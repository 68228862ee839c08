"""Labels and numbers for texts and pairs of texts."""

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_classifier import BertClassifier
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tasks.task_model import TaskModel
from keras_bert_impl.tasks.text_answers import TextAnswers

PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
"""What models call the tasks."""


class TextClassification(TextAnswers, TaskModel):
    """A classifier of texts, or of pairs, that is read once and asked many times.

    ```python
    classify = TextClassification("model")
    classify(["a fine film"])
    # [TextPrediction(label='positive', probabilities={'negative': 0.02, 'positive': 0.98}, …)]
    ```

    What the outputs mean is what `task.json` says, else the `problem_type` of `config.json`; where neither does, one
    output is a number and several are labels that exclude one another. See `TaskModel` for the arguments.

    Attributes:
        labels: the labels, in the model's order.

    Raises:
        InputError: as `TaskModel`; or if the model has several outputs for one number.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 4.1.
    """

    model_class = BertClassifier
    head = "classifier"
    tasks = tuple(PROBLEM_TYPES)

    model: BertClassifier

    def read_model(self, checkpoint: Checkpoint) -> BertClassifier:
        """Reads the model; one output without a meaning is a number, as in Hugging Face."""
        if "problem_type" not in checkpoint.settings and len(checkpoint.labels) == 1:
            return BertClassifier.from_pretrained(checkpoint, problem_type="regression")
        return BertClassifier.from_pretrained(checkpoint)

    @classmethod
    def usual_settings(cls, model: BertClassifier) -> TaskSettings:
        """Returns the settings of a model that comes without any."""
        return TaskSettings(task={name: task for task, name in PROBLEM_TYPES.items()}[model.problem_type])

    def _check(self) -> None:
        super()._check()
        if self.settings.task == "regression" and len(self.labels) > 1:
            raise InputError(
                f"`model` must have one output to answer with a number. Received: {len(self.labels)}, "
                f"{', '.join(self.labels[:5])}"
            )
