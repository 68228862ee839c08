"""A model that gives every piece the tag that it is told, for the tests of tagging."""

from collections.abc import Mapping, Sequence

import keras
import numpy as np
from task_models import toy_bert_config

from keras_bert_impl.models import BertTokenClassifier
from keras_bert_impl.tasks import WordTagging
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


def told_tagger(
    tokenizer: WordPieceTokenizer, labels: Sequence[str], tags: Mapping[str, str], **fields: int
) -> BertTokenClassifier:
    """Returns a model that tags each piece by itself.

    Args:
        tokenizer: its pieces.
        labels: names of the outputs; pieces that are not told get the first.
        tags: label by piece.
        **fields: of the configuration.
    """
    config = toy_bert_config(tokenizer, **{"num_hidden_layers": 1, **fields})
    model = BertTokenClassifier(config, labels=labels, seed=1)
    embeddings = np.random.default_rng(0).normal(size=(len(labels), model.config.hidden_size))
    embeddings -= embeddings.mean(axis=1, keepdims=True)
    embeddings /= embeddings.std(axis=1, keepdims=True)
    for variable in model.weights:
        path = variable.path
        if path == "embeddings/token_embedding/table":
            chosen = [labels.index(tags.get(piece, labels[0])) for piece in tokenizer.vocabulary]
            variable.assign(embeddings[chosen])
        elif path == "classifier/kernel":
            variable.assign(embeddings.T * 0.2)
        elif path.endswith(("embedding/table", "output/kernel")):  # Nothing comes from places and neighbours.
            variable.assign(np.zeros(variable.shape))
    return model


class EagerTagging(WordTagging):
    """Tags without compiling, which takes longer than a toy model's answers."""

    def inference_form(self) -> keras.Model:
        """Returns the model's form, to be run step by step."""
        form = super().inference_form()
        form.run_eagerly = True
        return form
