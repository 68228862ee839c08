"""Which kind of answer a model gives, and so which signatures its export has."""

import os
from collections.abc import Callable
from typing import NamedTuple

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.tasks.classification import TextClassification
from keras_bert_impl.tasks.embedding import SentenceEmbedding
from keras_bert_impl.tasks.question_answering import QuestionAnswering
from keras_bert_impl.tasks.tagging import WordTagging
from keras_bert_impl.tasks.task_model import TaskModel

from .loaded_model import LoadedMaskedLM, LoadedModel, LoadedQuestionAnswerer, checked_directory
from .proof.classification import ClassificationComparison
from .proof.comparison import Comparison
from .proof.embedding import EmbeddingComparison
from .proof.fill_mask import FillMaskComparison
from .proof.question_answering import QuestionAnsweringComparison
from .proof.tagging import TaggingComparison
from .signatures.classification import ClassificationSignatures
from .signatures.embedding import EmbeddingSignatures
from .signatures.fill_mask import FillMaskSignatures
from .signatures.question_answering import QuestionAnsweringSignatures
from .signatures.signatures import Signatures
from .signatures.tagging import TaggingSignatures


class _Encoder(SentenceEmbedding):
    """With the pooler, if it was stored, whose output is another vector."""

    def read_model(self, checkpoint: Checkpoint) -> BertEncoder:
        return BertEncoder.from_pretrained(checkpoint, pooler="pooler" in checkpoint.parts)


class Kind(NamedTuple):
    """A kind of answer.

    Attributes:
        name: such as `"fill-mask"`.
        signatures: the functions that are exported.
        comparison: what the export is compared with.
        task: what reads the model; None for a masked language model.
    """

    name: str
    signatures: Callable[..., Signatures]
    comparison: Callable[..., Comparison]
    task: Callable[..., TaskModel] | None

    def load(self, model: str | os.PathLike[str], max_length: int | None = None) -> LoadedModel:
        """Reads a model directory, or the best model of a run directory.

        Args:
            model: the directory.
            max_length: ids that a row may have; what the model was trained with, else its positions, if not given.

        Raises:
            InputError: if it is neither, or has no such head or not so many positions.
        """
        if self.task is None:
            return LoadedMaskedLM.from_path(model, max_length)
        directory = checked_directory(model)
        task = self.task(directory, max_length=max_length)
        if isinstance(task, QuestionAnswering):
            return LoadedQuestionAnswerer(directory, task)
        # Of an encoder's usual settings only the length of rows counts.
        settings = None if self.task is _Encoder else task.settings
        return LoadedModel(directory, task.model, task.tokenizer, max_length=task.max_length, settings=settings)


FILL_MASK = Kind("fill-mask", FillMaskSignatures, FillMaskComparison, None)
CLASSIFICATION = Kind("classification", ClassificationSignatures, ClassificationComparison, TextClassification)
TAGGING = Kind("tagging", TaggingSignatures, TaggingComparison, WordTagging)
QUESTION_ANSWERING = Kind(
    "question answering", QuestionAnsweringSignatures, QuestionAnsweringComparison, QuestionAnswering
)
EMBEDDING = Kind("embedding", EmbeddingSignatures, EmbeddingComparison, _Encoder)

_KIND_OF = {
    "BertModel": EMBEDDING,
    "BertForPreTraining": FILL_MASK,
    "BertForMaskedLM": FILL_MASK,
    "BertForSequenceClassification": CLASSIFICATION,
    "BertForTokenClassification": TAGGING,
    "BertForQuestionAnswering": QUESTION_ANSWERING,
}


def kind_of(model: str | os.PathLike[str]) -> Kind:
    """Returns the kind of answer that a model directory's architecture gives.

    Raises:
        InputError: if it is no model directory.
    """
    return _KIND_OF[open_checkpoint(checked_directory(model)).architecture]
