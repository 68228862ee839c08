"""Architecture of a BERT encoder, as data."""

import dataclasses
from typing import Any, Self

from keras_bert_impl.errors import InputError, nearest

HIDDEN_ACTS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Hyperparameters that fix the shape of every weight, plus dropout.

    Field names follow the released `bert_config.json` files and Hugging Face's `config.json`.

    Args:
        vocab_size: int. Rows of the token embedding.
        hidden_size: int. Width of every position's vector; a multiple of `num_attention_heads`.
        num_hidden_layers: int. Transformer blocks.
        num_attention_heads: int. Heads of each self-attention.
        intermediate_size: int. Width of the feed-forward sublayer's hidden projection.
        hidden_act: string. `"gelu"` is the exact (erf) form; `"gelu_new"` and `"gelu_pytorch_tanh"`
            the tanh form of the released code, which is the default; or `"relu"`.
        hidden_dropout_prob: float in [0, 1). After the embeddings and before both residual additions.
        attention_probs_dropout_prob: float in [0, 1). On attention probabilities.
        max_position_embeddings: int. Longest sequence, in tokens.
        type_vocab_size: int. Segments.
        initializer_range: float. Standard deviation of the truncated normal of kernels and embeddings.
        layer_norm_eps: float. Added to the variance in every layer normalisation.
        pad_token_id: int. The id that fills rows up.

    Raises:
        InputError: (a `ValueError`) if a field is out of its range.

    Reference:
        [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 3 and appendix A.2.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu_new"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        ):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(f"`{name}` must be a positive whole number. Received: {name}={value!r}")
            if value >= 2**31:
                raise InputError(f"`{name}` must be less than 2147483648. Received: {name}={value!r}")
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                "`hidden_size` must be a multiple of `num_attention_heads`. "
                f"Received: hidden_size={self.hidden_size}, num_attention_heads={self.num_attention_heads}"
            )
        if self.hidden_act not in HIDDEN_ACTS:
            raise InputError(
                f"`hidden_act` must be one of {', '.join(HIDDEN_ACTS)}. Received: hidden_act={self.hidden_act!r}"
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 <= value < 1:
                raise InputError(f"`{name}` must be at least 0 and less than 1. Received: {name}={value!r}")
        for name in ("initializer_range", "layer_norm_eps"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 < value < float("inf"):
                raise InputError(f"`{name}` must be a positive number. Received: {name}={value!r}")
        pad_token_id = self.pad_token_id
        if type(pad_token_id) is not int or not 0 <= pad_token_id < self.vocab_size:
            raise InputError(
                "`pad_token_id` must be an id of the vocabulary. "
                f"Received: pad_token_id={self.pad_token_id!r}, vocab_size={self.vocab_size}"
            )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Builds the config; an unknown or missing key raises `InputError` with the known ones."""
        known = [field.name for field in dataclasses.fields(cls)]
        if unknown := sorted(values.keys() - set(known)):
            meant = " or ".join(map(repr, nearest(unknown, known)))
            hint = f" Did you mean {meant}?" if meant else ""
            raise InputError(f"Unknown `{cls.__name__}` keys: {unknown}.{hint} Known keys: {known}")
        if "vocab_size" not in values:
            raise InputError(f"`{cls.__name__}` needs the key 'vocab_size'. Received: {sorted(values)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain JSON values."""
        return dataclasses.asdict(self)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
