"""The published BERT sizes, by name.

Sizes: [Turc et al., 2019](https://arxiv.org/abs/1908.08962), table 1, for tiny to medium;
[Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3, for base and large.
"""

from typing import Any

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError


def _preset(num_hidden_layers: int, hidden_size: int) -> BertConfig:
    """All released sizes have heads of 64 and a feed-forward of four times the hidden size."""
    return BertConfig(
        vocab_size=30522,
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
    )


PRESETS: dict[str, BertConfig] = {
    "tiny": _preset(2, 128),
    "mini": _preset(4, 256),
    "small": _preset(4, 512),
    "medium": _preset(8, 512),
    "base": _preset(12, 768),
    "large": _preset(24, 1024),
}


def get_preset(name: str, /, **overrides: Any) -> BertConfig:
    """Returns the named preset, with fields replaced.

    Args:
        name: one of `PRESETS`.
        **overrides: fields of `BertConfig`, for example `vocab_size=8000`.

    Raises:
        InputError: if the name is not a preset or a field is unknown or out of range.
    """
    if name not in PRESETS:
        raise InputError(f"`preset` must be one of {', '.join(PRESETS)}. Received: preset={name!r}")
    return BertConfig.from_dict({**PRESETS[name].to_dict(), **overrides})
