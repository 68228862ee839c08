"""Agreement with KerasHub's BERT, weights copied across. It knows the tanh GELU only."""

import numpy as np
import pytest
from harness import arrays, small_batch, small_config

from keras_bert_impl.models import BertEncoder


def copy_weights(ours, theirs):
    """Copies ours into theirs; their query, key and value kernels are cut into heads."""

    def assign(variable, value):
        variable.assign(arrays(value).reshape(variable.shape))

    def dense(layer, source):
        assign(layer.kernel, source.kernel)
        assign(layer.bias, source.bias)

    def norm(layer, source):
        assign(layer.gamma, source.gamma)
        assign(layer.beta, source.beta)

    assign(theirs.token_embedding.embeddings, ours.embeddings.token_embedding.table)
    assign(theirs.position_embedding.position_embeddings, ours.embeddings.position_embedding.table)
    assign(theirs.segment_embedding.embeddings, ours.embeddings.segment_embedding.table)
    norm(theirs.embeddings_layer_norm, ours.embeddings.layer_norm)
    for layer, block in zip(theirs.transformer_layers, ours.blocks, strict=True):
        attention = layer._self_attention_layer
        dense(attention.query_dense, block.attention.query)
        dense(attention.key_dense, block.attention.key)
        dense(attention.value_dense, block.attention.value)
        dense(attention.output_dense, block.attention.output_projection)
        norm(layer._self_attention_layer_norm, block.attention_norm)
        dense(layer._feedforward_intermediate_dense, block.feed_forward.intermediate)
        dense(layer._feedforward_output_dense, block.feed_forward.output_projection)
        norm(layer._feedforward_layer_norm, block.feed_forward_norm)
    dense(theirs.pooled_dense, ours.pooler.dense)


@pytest.mark.parametrize("heads,hidden,seq_len", [(3, 12, 9), (2, 16, 16)])
def test_outputs_agree(heads, hidden, seq_len):
    keras_hub = pytest.importorskip("keras_hub")
    config = small_config(hidden_size=hidden, num_attention_heads=heads, initializer_range=0.2)
    ours = BertEncoder(config, seed=4)
    theirs = keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=heads,
        hidden_dim=hidden,
        intermediate_dim=config.intermediate_size,
        max_sequence_length=config.max_position_embeddings,
        num_segments=config.type_vocab_size,
    )
    copy_weights(ours, theirs)
    batch = {name: array for name, array in small_batch(seq_len=seq_len).items() if name != "mask_positions"}
    one, other = arrays(ours(batch)), arrays(theirs(batch))
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(one[name], other[name], rtol=0, atol=2e-5)
