"""The BERT encoder."""

from typing import Any

import keras

from keras_bert_impl.checkpoints.architecture import HEADS
from keras_bert_impl.config import BertConfig
from keras_bert_impl.layers.embeddings import Embeddings
from keras_bert_impl.layers.pooler import Pooler
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

    Outputs, a dict:
        sequence_output: `(batch, seq_len, hidden_size)`, in the compute dtype.
        pooled_output: `(batch, hidden_size)`, in the compute dtype; absent without pooler.
        attention_probabilities: `(batch, num_hidden_layers, num_attention_heads, seq_len, seq_len)`,
            in the compute dtype; only with `return_attention`. Row `i` of a head says what share
            position `i` gathers from each position, before dropout; 0 at padding.
        hidden_states: `(batch, num_hidden_layers + 1, seq_len, hidden_size)`, in the compute dtype;
            only with `return_hidden_states`. First what the embeddings gave, then every block, so
            that the last is `sequence_output`.

    Args:
        config: `BertConfig`, or the dict that its `to_dict()` wrote.
        pooler: bool. Whether to pool the first position.
        return_attention: bool. Whether the attention probabilities are an output. They grow with the
            square of `seq_len`.
        return_hidden_states: bool. Whether all hidden states are an output.
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

        # Functional model
        inputs = symbolic_inputs()
        padding_mask = keras.ops.cast(inputs["padding_mask"], "bool")
        hidden_states = [self.embeddings(inputs["token_ids"], inputs["segment_ids"])]
        attention_probabilities = []
        for block in self.blocks:
            x = block(hidden_states[-1], padding_mask=padding_mask, return_attention=return_attention)
            if return_attention:
                x, probabilities = x
                attention_probabilities.append(probabilities)
            hidden_states.append(x)
        outputs = {"sequence_output": hidden_states[-1]}
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(hidden_states[-1])
        # The batch comes first, so that `predict` can join batches.
        if return_attention:
            outputs["attention_probabilities"] = keras.ops.stack(attention_probabilities, axis=1)
        if return_hidden_states:
            outputs["hidden_states"] = keras.ops.stack(hidden_states, axis=1)
        super().__init__(inputs, outputs, config=config, dtype_policy=policy, seed=seed, **kwargs)

        # Config
        self.return_attention = return_attention
        self.return_hidden_states = return_hidden_states

    def get_config(self) -> dict[str, Any]:
        """Returns what the constructor needs, as plain JSON values."""
        return {
            **super().get_config(),
            "pooler": self.pooler is not None,
            "return_attention": self.return_attention,
            "return_hidden_states": self.return_hidden_states,
        }
