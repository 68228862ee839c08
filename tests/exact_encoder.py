"""BERT's encoder in NumPy and float64: what the hidden states are, but for the last digits of float32 weights."""

import numpy as np
from scipy.special import erf


def exact_hidden_states(tensors, config, token_ids, segment_ids, padding_mask):
    """Returns the embeddings' output and every block's, a list of `(batch, seq_len, hidden_size)`.

    Args:
        tensors: arrays by Hugging Face's names without the prefix `bert.`.
        config: `BertConfig` with the erf GELU.
        token_ids, segment_ids, padding_mask: `(batch, seq_len)`.
    """
    weights = {name: value.astype("float64") for name, value in tensors.items() if value.dtype.kind == "f"}

    def normalise(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + config.layer_norm_eps)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def dense(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def heads(x):
        return x.reshape(*x.shape[:2], config.num_attention_heads, -1).transpose(0, 2, 1, 3)

    tables = {name: weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "token_type", "position")}
    x = tables["word"][token_ids] + tables["token_type"][segment_ids] + tables["position"][: token_ids.shape[1]]
    states = [normalise(x, "embeddings.LayerNorm")]
    for i in range(config.num_hidden_layers):
        x, block = states[-1], f"encoder.layer.{i}"
        query, key, value = (heads(dense(x, f"{block}.attention.self.{name}")) for name in ("query", "key", "value"))
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(query.shape[-1])
        scores = np.where(padding_mask[:, None, None].astype(bool), scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        gathered = (shares / shares.sum(-1, keepdims=True) @ value).transpose(0, 2, 1, 3).reshape(x.shape)
        attended = x + dense(gathered, f"{block}.attention.output.dense")
        attended = normalise(attended, f"{block}.attention.output.LayerNorm")
        wide = dense(attended, f"{block}.intermediate.dense")
        wide = 0.5 * wide * (1 + erf(wide / np.sqrt(2)))
        states.append(normalise(attended + dense(wide, f"{block}.output.dense"), f"{block}.output.LayerNorm"))
    return states
