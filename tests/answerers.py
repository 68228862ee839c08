"""A model that scores every piece as start and end of an answer as it is told, for the tests of question answering."""

from collections.abc import Mapping

import keras
import numpy as np
from task_models import toy_bert_config

from keras_bert_impl.models import BertQuestionAnswerer
from keras_bert_impl.tasks import QuestionAnswering
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


def told_answerer(
    tokenizer: WordPieceTokenizer, scores: Mapping[str, tuple[float, float]], **fields: int
) -> BertQuestionAnswerer:
    """Returns a model that scores each piece by itself.

    Args:
        tokenizer: its pieces.
        scores: by piece, that of a start and that of an end; both are 0 of pieces that are not told.
        **fields: of the configuration.
    """
    model = BertQuestionAnswerer(toy_bert_config(tokenizer, **fields), seed=1)
    kinds = list(dict.fromkeys([(0.0, 0.0), *scores.values()]))
    embeddings = np.random.default_rng(0).normal(size=(len(kinds), model.config.hidden_size))
    embeddings -= embeddings.mean(axis=1, keepdims=True)
    embeddings /= embeddings.std(axis=1, keepdims=True)
    for variable in model.weights:
        path = variable.path
        if path == "embeddings/token_embedding/table":
            chosen = [kinds.index(scores.get(piece, (0.0, 0.0))) for piece in tokenizer.vocabulary]
            variable.assign(embeddings[chosen])
        elif path == "qa_head/kernel":
            variable.assign(np.linalg.lstsq(embeddings, np.asarray(kinds, "float64"), rcond=None)[0])
        elif path.endswith(("embedding/table", "output/kernel")):  # Nothing comes from places and neighbours.
            variable.assign(np.zeros(variable.shape))
    return model


class EagerAnswering(QuestionAnswering):
    """Answers without compiling, which takes longer than a toy model's answers."""

    def inference_form(self) -> keras.Model:
        """Returns the model's form, to be run step by step."""
        form = super().inference_form()
        form.run_eagerly = True
        return form
