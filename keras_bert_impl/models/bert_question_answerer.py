"""BERT that finds the answer to a question in a text."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.real_tokens import InRows
from keras_bert_impl.layers.seeds import seed_for, truncated_normal
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.inputs import symbolic_inputs
from keras_bert_impl.models.pretrained_model import PretrainedModel


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertQuestionAnswerer(PretrainedModel):
    """Scores every token as the start and as the end of the answer. It has no pooler.

    Inputs, a dict:
        token_ids, segment_ids, padding_mask: as for `BertEncoder`; the question is the first text.

    Outputs, a dict:
        start_logits: float32, `(batch, seq_len)`.
        end_logits: float32, `(batch, seq_len)`.

    Args:
        config: `BertConfig`, or the dict that its `to_dict()` wrote.
        dtype: string or `keras.DTypePolicy`, applied to every sublayer.
        seed: int. Every variable and every dropout draws from its own stream, `(seed, path)`.
        **kwargs: passed to `keras.Model`, for example `name`.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 4.2.
    """

    architecture = "BertForQuestionAnswering"
    may_leave = ("pooler", "mlm_head", "nsp_head", "classifier")

    def __init__(self, config: BertConfig | dict[str, Any], *, dtype: Any = None, seed: int = 0, **kwargs: Any) -> None:
        config = BertConfig.from_dict(config) if isinstance(config, dict) else config
        policy = keras.dtype_policies.get(dtype)

        # Layers
        self.encoder = BertEncoder(config, pooler=False, dtype=policy, seed=seed_for(seed, "encoder"), name="encoder")
        self.qa_head = keras.layers.Dense(
            2,
            kernel_initializer=truncated_normal(config.initializer_range, seed, "qa_head/kernel"),
            dtype=policy,
            name="qa_head",
        )

        # Functional model
        inputs = symbolic_inputs()
        outputs = _named(self._scored(self.encoder(inputs)["sequence_output"]))
        super().__init__(inputs, outputs, config=config, dtype_policy=policy, seed=seed, **kwargs)

    def _scored(self, hidden_states):
        return keras.ops.cast(self.qa_head(hidden_states), "float32")

    def unpadded_form(self) -> keras.Model:
        """Returns a model of the same layers, with the same variables, inputs and outputs, that works on no padding.

        Logits are 0 at padding. The first position of a row always counts as a token.
        """
        inputs = symbolic_inputs()
        hidden_states, real_tokens, _, _ = self.encoder.of_real_tokens(inputs)
        in_rows = InRows(dtype="float32", name="in_rows")
        return keras.Model(inputs, _named(in_rows(self._scored(hidden_states[-1]), *real_tokens)), name=self.name)


def _named(logits):
    return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
