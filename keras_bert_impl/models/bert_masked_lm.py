"""BERT with the masked-LM head alone."""

from typing import Any

import keras

from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.masked_lm_head import MaskedLMHead
from keras_bert_impl.layers.seeds import seed_for
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.inputs import encoder_inputs, symbolic_inputs
from keras_bert_impl.models.pretrained_model import PretrainedModel


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertMaskedLM(PretrainedModel):
    """Predicts masked tokens. It has neither pooler nor next-sentence head.

    Inputs, a dict:
        token_ids, segment_ids, padding_mask: as for `BertEncoder`.
        mask_positions: int32, `(batch, predictions)`; positions to predict. Unused slots hold 0.
    With `packed`, `pair_ids` and `cls_positions` take the place of `padding_mask`.

    Outputs, a dict:
        mlm_logits: float32, `(batch, predictions, vocab_size)`.

    Args:
        config: `BertConfig`, or the dict that its `to_dict()` wrote.
        packed: bool. Whether a row holds several pairs. The variables are the same.
        dtype: string or `keras.DTypePolicy`, applied to every sublayer.
        seed: int. Every variable and every dropout draws from its own stream, `(seed, path)`.
        **kwargs: passed to `keras.Model`, for example `name`.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.1, task 1.
    """

    architecture = "BertForMaskedLM"
    may_leave = ("pooler", "nsp_head")

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        *,
        packed: bool = False,
        dtype: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        config = BertConfig.from_dict(config) if isinstance(config, dict) else config
        policy = keras.dtype_policies.get(dtype)

        # Layers
        self.encoder = BertEncoder(
            config, pooler=False, packed=packed, dtype=policy, seed=seed_for(seed, "encoder"), name="encoder"
        )
        self.mlm_head = MaskedLMHead(
            self.encoder.embeddings.token_embedding,
            activation=config.hidden_act,
            initializer_range=config.initializer_range,
            layer_norm_eps=config.layer_norm_eps,
            seed=seed_for(seed, "mlm_head"),
            dtype=policy,
            name="mlm_head",
        )

        # Functional model
        inputs = symbolic_inputs("mask_positions", packed=packed)
        outputs = self._predicted(inputs, self.encoder)
        super().__init__(inputs, outputs, config=config, dtype_policy=policy, seed=seed, **kwargs)

    def _predicted(self, inputs: dict[str, keras.KerasTensor], encoder: keras.Model) -> dict[str, keras.KerasTensor]:
        encoded = encoder(encoder_inputs(inputs))["sequence_output"]
        return {"mlm_logits": self.mlm_head(encoded, inputs["mask_positions"])}

    def packed_form(self) -> keras.Model:
        """Returns a model of the same layers, with the same variables, that takes packed rows."""
        inputs = symbolic_inputs("mask_positions", packed=True)
        return keras.Model(inputs, self._predicted(inputs, self.encoder.packed_form()), name=self.name)

    def unpadded_form(self, *, packed: bool = False) -> keras.Model:
        """Returns a model of the same layers, with the same variables, that works on no padding and no unused slot.

        It takes `mask_weights`, float32 `(batch, predictions)`, too: slots of weight 0 are unused. `mlm_logits` are
        `(real_predictions, vocab_size)`, in the order of `layers.real_tokens.real_slots`.

        Args:
            packed: whether it takes packed rows.
        """
        inputs = symbolic_inputs("mask_positions", "mask_weights", packed=packed)
        chosen, _, places = self.encoder.of_predictions(inputs)
        return keras.Model(inputs, {"mlm_logits": self.mlm_head(chosen, places)}, name=self.name)

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {**super().get_config(), "packed": self.encoder.packed}
