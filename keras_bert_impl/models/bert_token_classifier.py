"""BERT that classifies every token."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.real_tokens import InRows
from keras_bert_impl.layers.seeds import seed_for
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.inputs import symbolic_inputs
from keras_bert_impl.models.labelled_model import LabelledModel, checked_labels, classifier_layers


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertTokenClassifier(LabelledModel):
    """Scores the labels of every token. It has no pooler.

    Inputs, a dict:
        token_ids, segment_ids, padding_mask: as for `BertEncoder`.

    Outputs:
        Logits, float32, `(batch, seq_len, number of labels)`.

    Args:
        config: `BertConfig`, or the dict that its `to_dict()` wrote.
        labels: names of the outputs, in their order.
        classifier_dropout: float in [0, 1), before the classifier; `hidden_dropout_prob` when None.
        dtype: string or `keras.DTypePolicy`, applied to every sublayer.
        seed: int. Every variable and every dropout draws from its own stream, `(seed, path)`.
        **kwargs: passed to `keras.Model`, for example `name`.

    Raises:
        InputError: if the labels cannot be used.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 5.3.
    """

    architecture = "BertForTokenClassification"
    may_leave = ("pooler", "mlm_head", "nsp_head", "qa_head")

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        *,
        labels: Sequence[str],
        classifier_dropout: float | None = None,
        dtype: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        config = BertConfig.from_dict(config) if isinstance(config, dict) else config
        policy = keras.dtype_policies.get(dtype)
        labels = checked_labels(labels)

        # Layers
        self.encoder = BertEncoder(config, pooler=False, dtype=policy, seed=seed_for(seed, "encoder"), name="encoder")
        self.dropout, self.classifier = classifier_layers(config, labels, classifier_dropout, policy, seed)

        # Functional model
        inputs = symbolic_inputs()
        outputs = self._scored(self.encoder(inputs)["sequence_output"])
        super().__init__(inputs, outputs, config=config, dtype_policy=policy, seed=seed, **kwargs)

        # Config
        self.labels = labels
        self.classifier_dropout = classifier_dropout

    def _scored(self, hidden_states):
        return keras.ops.cast(self.classifier(self.dropout(hidden_states)), "float32")

    def unpadded_form(self) -> keras.Model:
        """Returns a model of the same layers, with the same variables, inputs and outputs, that works on no padding.

        Logits are 0 at padding. The first position of a row always counts as a token.
        """
        inputs = symbolic_inputs()
        hidden_states, real_tokens, _, _ = self.encoder.of_real_tokens(inputs)
        in_rows = InRows(dtype="float32", name="in_rows")
        return keras.Model(inputs, in_rows(self._scored(hidden_states[-1]), *real_tokens), name=self.name)
