"""BERT that classifies a text or a pair of texts."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_impl.checkpoints.architecture import PROBLEM_TYPES
from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.layers.seeds import seed_for
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.inputs import symbolic_inputs
from keras_bert_impl.models.labelled_model import LabelledModel, checked_labels, classifier_layers


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertClassifier(LabelledModel):
    """Scores the labels of a text, or of a pair of texts, from the pooled first position.

    Inputs, a dict:
        token_ids, segment_ids, padding_mask: as for `BertEncoder`.

    Outputs:
        Logits, float32, `(batch, number of labels)`.

    Args:
        config: `BertConfig`, or the dict that its `to_dict()` wrote.
        labels: names of the outputs, in their order.
        problem_type: `"single_label_classification"`, `"multi_label_classification"` or `"regression"`; what the
            logits mean. It is stored with the model and changes nothing in it.
        classifier_dropout: float in [0, 1), before the classifier; `hidden_dropout_prob` when None.
        dtype: string or `keras.DTypePolicy`, applied to every sublayer.
        seed: int. Every variable and every dropout draws from its own stream, `(seed, path)`.
        **kwargs: passed to `keras.Model`, for example `name`.

    Raises:
        InputError: if the labels or the problem type cannot be used.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 4.1.
    """

    architecture = "BertForSequenceClassification"
    may_leave = ("mlm_head", "nsp_head", "qa_head")

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        *,
        labels: Sequence[str],
        problem_type: str = "single_label_classification",
        classifier_dropout: float | None = None,
        dtype: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        config = BertConfig.from_dict(config) if isinstance(config, dict) else config
        policy = keras.dtype_policies.get(dtype)
        labels = checked_labels(labels)
        if problem_type not in PROBLEM_TYPES:
            raise InputError(
                f"`problem_type` must be one of {', '.join(PROBLEM_TYPES)}. Received: problem_type={problem_type!r}"
            )

        # Layers
        self.encoder = BertEncoder(config, dtype=policy, seed=seed_for(seed, "encoder"), name="encoder")
        self.dropout, self.classifier = classifier_layers(config, labels, classifier_dropout, policy, seed)

        # Functional model
        inputs = symbolic_inputs()
        outputs = self._scored(self.encoder(inputs)["pooled_output"])
        super().__init__(inputs, outputs, config=config, dtype_policy=policy, seed=seed, **kwargs)

        # Config
        self.labels = labels
        self.problem_type = problem_type
        self.classifier_dropout = classifier_dropout

    def _scored(self, pooled):
        return keras.ops.cast(self.classifier(self.dropout(pooled)), "float32")

    def unpadded_form(self) -> keras.Model:
        """Returns a model of the same layers, with the same variables, inputs and outputs, that works on no padding.

        The first position of a row always counts as a token.
        """
        inputs = symbolic_inputs()
        _, pooled, _ = self.encoder.of_predictions(inputs)
        return keras.Model(inputs, self._scored(pooled), name=self.name)

    @classmethod
    def options_from(cls, checkpoint: Checkpoint, options: dict[str, Any]) -> dict[str, Any]:
        """Completes the user's options by what the checkpoint says of its head."""
        settings = {key: value for key, value in checkpoint.settings.items() if key == "problem_type"}
        return {**settings, **super().options_from(checkpoint, options)}

    def head_settings(self) -> dict[str, Any]:
        """Returns what `config.json` says of the head."""
        return {**super().head_settings(), "problem_type": self.problem_type}

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {**super().get_config(), "problem_type": self.problem_type}
