"""The BERT encoder."""

from typing import Any

import keras

from keras_bert_impl.checkpoints.architecture import HEADS
from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.embeddings import Embeddings
from keras_bert_impl.layers.pair_layout import PairLayout
from keras_bert_impl.layers.pooler import Pooler
from keras_bert_impl.layers.real_tokens import ChosenTokens, InRows, RealPredictions, RealTokens
from keras_bert_impl.layers.seeds import seed_for
from keras_bert_impl.layers.transformer_block import TransformerBlock
from keras_bert_impl.models.inputs import symbolic_inputs
from keras_bert_impl.models.pretrained_model import PretrainedModel


@keras.saving.register_keras_serializable(package="keras_bert_impl")
class BertEncoder(PretrainedModel):
    """Embeds tokens and lets them gather from one another, block by block.

    Inputs, a dict:
        token_ids: int32, `(batch, seq_len)`.
        segment_ids: int32, `(batch, seq_len)`; 0 for the first text and padding, 1 for the second.
        padding_mask: int32 or bool, `(batch, seq_len)`; 1 where there is a token, 0 at padding.
    With `packed`, several texts or pairs stand in a row, each of them unseen by the others, and in place of the mask:
        pair_ids: int32, `(batch, seq_len)`; 1, 2, … for the pairs of a row in their order, 0 at padding.
        cls_positions: int32, `(batch, pairs)`; where each pair's `[CLS]` stands. Unused slots hold 0. Neither of the
            two is checked: `PairLayout` says what they must be.

    Outputs, a dict:
        sequence_output: `(batch, seq_len, hidden_size)`, in the compute dtype.
        pooled_output: `(batch, hidden_size)`, in the compute dtype; absent without pooler. With `packed`
            `(batch, pairs, hidden_size)`, of no use in unused slots.
        attention_probabilities: `(batch, num_hidden_layers, num_attention_heads, seq_len, seq_len)`,
            in the compute dtype; only with `return_attention`. Row `i` of a head says what share
            position `i` gathers from each position, before dropout; 0 at padding, and with `packed`
            outside of its own pair.
        hidden_states: `(batch, num_hidden_layers + 1, seq_len, hidden_size)`, in the compute dtype;
            only with `return_hidden_states`. First what the embeddings gave, then every block, so
            that the last is `sequence_output`.

    Args:
        config: `BertConfig`, or the dict that its `to_dict()` wrote.
        pooler: bool. Whether to pool the first position.
        return_attention: bool. Whether the attention probabilities are an output. They grow with the
            square of `seq_len`.
        return_hidden_states: bool. Whether all hidden states are an output.
        packed: bool. Whether a row holds several pairs. The variables are the same.
        dtype: string or `keras.DTypePolicy`, applied to every sublayer.
        seed: int. Every variable and every dropout draws from its own stream, `(seed, path)`.
        **kwargs: passed to `keras.Model`, for example `name`.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3.
    """

    architecture = "BertModel"
    may_leave = HEADS

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        *,
        pooler: bool = True,
        return_attention: bool = False,
        return_hidden_states: bool = False,
        packed: bool = False,
        dtype: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        config = BertConfig.from_dict(config) if isinstance(config, dict) else config
        policy = keras.dtype_policies.get(dtype)

        # Layers
        self.embeddings = Embeddings(
            config.vocab_size,
            config.hidden_size,
            config.max_position_embeddings,
            config.type_vocab_size,
            dropout=config.hidden_dropout_prob,
            initializer_range=config.initializer_range,
            layer_norm_eps=config.layer_norm_eps,
            seed=seed_for(seed, "embeddings"),
            dtype=policy,
            name="embeddings",
        )
        self.blocks = [
            TransformerBlock(
                config.num_attention_heads,
                config.intermediate_size,
                activation=config.hidden_act,
                dropout=config.hidden_dropout_prob,
                attention_dropout=config.attention_probs_dropout_prob,
                initializer_range=config.initializer_range,
                layer_norm_eps=config.layer_norm_eps,
                seed=seed_for(seed, f"block_{i}"),
                dtype=policy,
                name=f"block_{i}",
            )
            for i in range(config.num_hidden_layers)
        ]
        self.pooler = None
        if pooler:
            self.pooler = Pooler(config.initializer_range, seed=seed_for(seed, "pooler"), dtype=policy, name="pooler")

        # Config
        self.return_attention = return_attention
        self.return_hidden_states = return_hidden_states
        self.packed = packed

        # Functional model
        inputs = symbolic_inputs(packed=packed)
        super().__init__(inputs, self._encoded(inputs), config=config, dtype_policy=policy, seed=seed, **kwargs)

    def _encoded(self, inputs: dict[str, keras.KerasTensor]) -> dict[str, keras.KerasTensor]:
        masks, position_ids, cls_positions = self._masks_and_positions(inputs)
        hidden_states = [self.embeddings(inputs["token_ids"], inputs["segment_ids"], position_ids=position_ids)]
        attention_probabilities = self._add_blocks(hidden_states, masks)
        pooled = None if self.pooler is None else self.pooler(hidden_states[-1], positions=cls_positions)
        return self._named(hidden_states, pooled, attention_probabilities)

    def _masks_and_positions(self, inputs):
        """Returns the masks of attention by argument, the positions, and where each `[CLS]` stands."""
        if "pair_ids" not in inputs:
            return {"padding_mask": keras.ops.cast(inputs["padding_mask"], "bool")}, None, None
        layout = PairLayout(dtype=self.embeddings.dtype_policy, name="pair_layout")
        position_ids, attention_mask = layout(inputs["pair_ids"], inputs["cls_positions"])
        return {"attention_mask": attention_mask}, position_ids, inputs["cls_positions"]

    def _add_blocks(self, hidden_states, masks, return_attention=None, chosen=None):
        """Appends what each block makes of the last of `hidden_states`; returns the attention probabilities.

        The last block gives only what is `chosen`, as for `TransformerBlock`.
        """
        return_attention = self.return_attention if return_attention is None else return_attention
        attention_probabilities = []
        for block in self.blocks:
            wanted = chosen if block is self.blocks[-1] else None
            x = block(hidden_states[-1], **masks, chosen=wanted, return_attention=return_attention)
            if return_attention:
                x, probabilities = x
                attention_probabilities.append(probabilities)
            hidden_states.append(x)
        return attention_probabilities

    def _named(self, hidden_states, pooled, attention_probabilities):
        outputs = {"sequence_output": hidden_states[-1]}
        if pooled is not None:
            outputs["pooled_output"] = pooled
        # The batch comes first, so that `predict` can join batches.
        if self.return_attention:
            outputs["attention_probabilities"] = keras.ops.stack(attention_probabilities, axis=1)
        if self.return_hidden_states:
            outputs["hidden_states"] = keras.ops.stack(hidden_states, axis=1)
        return outputs

    def of_real_tokens(self, inputs: dict[str, keras.KerasTensor]) -> tuple[Any, Any, Any, Any]:
        """Encodes the real tokens of padded or packed rows alone.

        Args:
            inputs: symbolic inputs of this encoder, or of its packed form.

        Returns:
            A tuple: the hidden states, a list of `(real_tokens, hidden_size)`; what `RealTokens` returned; the pooled
            output, or None without pooler; and the list of attention probabilities, in rows.
        """
        hidden_states, masks, of_cls = self._embedded_real_tokens(inputs)
        attention_probabilities = self._add_blocks(hidden_states, masks)
        pooled = None if self.pooler is None else self.pooler(hidden_states[-1], positions=of_cls)
        return hidden_states, masks["real_tokens"], pooled, attention_probabilities

    def of_predictions(self, inputs: dict[str, keras.KerasTensor]) -> tuple[Any, Any, Any]:
        """Encodes what heads ask for: each `[CLS]`, and the tokens that used prediction slots point at.

        Of the last block nothing else is worked out but its attention.

        Args:
            inputs: symbolic inputs of this encoder, or of its packed form; perhaps `mask_positions` and `mask_weights`,
                as for `RealPredictions`.

        Returns:
            A tuple: the last hidden states of these tokens, `(chosen, hidden_size)`; the pooled output, or None without
            pooler; and which of the tokens are the predictions, int32 `(real_predictions,)` in the order of
            `layers.real_tokens.real_slots`, or None without `mask_positions`.
        """
        policy = self.embeddings.dtype_policy
        hidden_states, masks, of_cls = self._embedded_real_tokens(inputs)
        wanted = {} if self.pooler is None else {"cls": of_cls}
        if "mask_positions" in inputs:
            _, _, numbers = masks["real_tokens"]
            real_predictions = RealPredictions(dtype=policy, name="real_predictions")
            wanted["predictions"] = real_predictions(inputs["mask_positions"], inputs["mask_weights"], numbers)
        chosen, places = ChosenTokens(dtype=policy, name="chosen_tokens")(wanted)
        self._add_blocks(hidden_states, masks, return_attention=False, chosen=chosen)
        pooled = None if self.pooler is None else self.pooler(hidden_states[-1], positions=places["cls"])
        return hidden_states[-1], pooled, places.get("predictions")

    def _embedded_real_tokens(self, inputs):
        """Returns a list of the real tokens' embeddings, what each block takes by name, and the numbers of `[CLS]`."""
        policy = self.embeddings.dtype_policy
        masks, position_ids, cls_positions = self._masks_and_positions(inputs)
        is_real = keras.ops.cast(inputs["pair_ids" if "pair_ids" in inputs else "padding_mask"], "bool")
        real_tokens = mask, places, numbers = RealTokens(dtype=policy, name="real_tokens")(is_real)
        if "padding_mask" in masks:
            masks = {"padding_mask": mask}
        ids = inputs["token_ids"], inputs["segment_ids"]
        embedded = self.embeddings(*ids, position_ids=position_ids, places=places)
        packed = cls_positions is not None
        of_cls = keras.ops.take_along_axis(numbers, cls_positions, axis=1) if packed else numbers[:, 0]
        return [embedded], {**masks, "real_tokens": real_tokens}, of_cls

    def unpadded_form(self, *, packed: bool = False) -> keras.Model:
        """Returns a model of the same layers, with the same variables, that does not work on padding.

        Inputs and outputs are the usual ones, but that hidden states are 0 at padding. The first position of a row
        always counts as a token. Inside, everything but attention has the shape `(real_tokens, hidden_size)`.

        Args:
            packed: whether it takes packed rows.
        """
        inputs = symbolic_inputs(packed=packed)
        hidden_states, real_tokens, pooled, attention_probabilities = self.of_real_tokens(inputs)
        in_rows = InRows(dtype=self.embeddings.dtype_policy, name="in_rows")
        if not self.return_hidden_states:
            hidden_states = hidden_states[-1:]
        in_rows_all = [in_rows(states, *real_tokens) for states in hidden_states]
        return keras.Model(inputs, self._named(in_rows_all, pooled, attention_probabilities), name=self.name)

    def attention_probabilities(self, inputs: dict[str, Any]) -> Any:
        """Returns what each position gathers from each, whether or not the model has `return_attention`.

        Args:
            inputs: tensors, as the model takes them.

        Returns:
            A tensor in the compute dtype, `(batch, num_hidden_layers, num_attention_heads, seq_len, seq_len)`, as the
            output `attention_probabilities`.
        """
        masks, position_ids, _ = self._masks_and_positions(inputs)
        hidden_states = [self.embeddings(inputs["token_ids"], inputs["segment_ids"], position_ids=position_ids)]
        return keras.ops.stack(self._add_blocks(hidden_states, masks, return_attention=True), axis=1)

    def packed_form(self) -> keras.Model:
        """Returns a model of the same layers, with the same variables, that takes packed rows."""
        inputs = symbolic_inputs(packed=True)
        return keras.Model(inputs, self._encoded(inputs), name=self.name)

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            **super().get_config(),
            "pooler": self.pooler is not None,
            "return_attention": self.return_attention,
            "return_hidden_states": self.return_hidden_states,
            "packed": self.packed,
        }
