"""What a variable is for, as far as optimizers treat it apart: told by its path."""

import re
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.errors import InputError

ROLES = ("bias", "layer_norm", "embedding")
NOT_DECAYED = ("bias", "layer_norm")
_ROLE_OF_NAME = {"bias": "bias", "gamma": "layer_norm", "beta": "layer_norm", "table": "embedding"}


def role(variable: Any) -> str:
    """Returns `"bias"`, `"layer_norm"` (its gamma and beta), `"embedding"`, or `"kernel"` for all others.

    Args:
        variable: `keras.Variable`; the last part of its `path` decides.
    """
    return _ROLE_OF_NAME.get(variable.path.split("/")[-1], "kernel")


def is_decayed(variable: Any, not_decayed: Sequence[str] = NOT_DECAYED) -> bool:
    """Returns whether weight decay applies to a variable.

    Args:
        variable: `keras.Variable`.
        not_decayed: roles without weight decay; biases and LayerNorm's variables, as in the original, if not given.
    """
    return role(variable) not in not_decayed


def layer_factors(variables: Sequence[Any], layer_decay: float) -> list[float]:
    """Returns what each variable's learning rate is multiplied by, so that lower layers move less.

    It is `layer_decay ** (layers + 1 - depth)`: the embeddings are at depth 0, block `i` at `i + 1`, and
    pooler and heads, which have the whole rate, above the last block.

    Args:
        variables: of one model, with paths such as `embeddings/…` and `block_3/…`.
        layer_decay: factor from each layer to the one below it.

    Raises:
        InputError: if the factor is not 1 and there are no blocks.

    Reference:
        [Clark et al., 2020](https://arxiv.org/abs/2003.10555), "layerwise learning-rate decay";
        counted as by [Bao et al., 2021](https://arxiv.org/abs/2106.08254).
    """
    if layer_decay == 1:
        return [1.0] * len(variables)
    blocks = [re.search(r"(?:^|/)block_(\d+)/", variable.path) for variable in variables]
    layers = max((int(block[1]) + 1 for block in blocks if block), default=0)
    if not layers:
        raise InputError(
            "`layer_decay` must be 1 for variables that are not of transformer blocks, with paths such as "
            f"'block_0/…'. Received: layer_decay={layer_decay!r}, {variables[0].path!r}"
        )
    factors = []
    for variable, block in zip(variables, blocks, strict=True):
        depth = int(block[1]) + 1 if block else layers + 1
        if not block and "embeddings" in variable.path.split("/"):
            depth = 0
        factors.append(layer_decay ** (layers + 1 - depth))
    return factors
