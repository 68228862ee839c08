"""What `run.json` of a reference run says in words, as arguments of our optimizers.

The words are a person's: "AdamW with bias correction", "biases and LayerNorm weights", "global norm 1.0". What is
not understood is refused: a run that is replayed with other settings would only seem to disagree.
"""

import dataclasses
import re
from typing import Any, TypeGuard

from keras_bert_impl.errors import InputError

# Which optimizer a name stands for, and whether it corrects its bias when the words do not say. "LAMB, which is Adam
# with a trust ratio" means the first of those named.
_OPTIMIZERS = {"lamb": ("lamb", None), "adamw": ("adamw", True), "bertadam": ("adamw", False), "adam": ("adamw", None)}
_ADDITIONS = re.compile(r"\b(amsgrad|nesterov|layer-?wise|ema|lookahead)\b")
# Roles of variables by the beginnings of their names; without spaces, hyphens and underscores.
_ROLES = {"bias": "bias", "layernorm": "layer_norm", "embedding": "embedding"}
_FILLING = {"", "and", "all", "the", "of", "weights", "weight", "parameters", "variables", "gamma", "beta", "tables"}
_NOTHING = ("none", "nothing", "no", "off", "false", "")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReferenceSettings:
    """How a reference run was trained.

    Attributes:
        optimizer: `"adamw"` or `"lamb"`.
        arguments: of its class, but for the learning rate.
        next_sentence: whether the loss has the next-sentence part.
    """

    optimizer: str
    arguments: dict[str, Any]
    next_sentence: bool


def read_settings(values: dict[str, Any]) -> ReferenceSettings:
    """Returns what the fields `optimizer`, `betas`, `epsilon`, `weight_decay`, `no_decay`, `clip` and `loss` say.

    Raises:
        InputError: if a field is missing, or asks for what cannot be replayed.
    """
    kind, bias_correction = _optimizer(_text(values, "optimizer"), values.get("weight_decay"))
    beta_1, beta_2 = _betas(values)
    return ReferenceSettings(
        optimizer=kind,
        arguments={
            "beta_1": beta_1,
            "beta_2": beta_2,
            "epsilon": _number(values, "epsilon"),
            "weight_decay": _number(values, "weight_decay"),
            "bias_correction": bias_correction,
            "not_decayed": _roles(values.get("no_decay")),
            "global_clipnorm": _clip(values.get("clip")),
            **({"trust_ratio": _trust_ratio(_text(values, "optimizer"))} if kind == "lamb" else {}),
        },
        next_sentence=_has_next_sentence(_text(values, "loss")),
    )


def refused(name: str, rule: str, value: Any) -> InputError:
    """Returns the error about a field of `run.json`."""
    return InputError(f"`{name}` in run.json must {rule}. Received: {name}={value!r}")


def _optimizer(text: str, weight_decay: Any) -> tuple[str, bool]:
    """Returns the kind of optimizer and whether it corrects its bias."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = next((name for name in _OPTIMIZERS if name in words), None)
    if name is None or _ADDITIONS.search(text.lower()):
        raise refused("optimizer", "name one of Adam, AdamW, BertAdam and LAMB, without further additions", text)
    kind, corrects = _OPTIMIZERS[name]
    original = "original" in text.lower()
    if name == "adam" and not original and "decoupled" not in words and weight_decay:
        raise refused("optimizer", "decay weights apart from the gradient, as AdamW does", text)
    if re.search(r"\b(without|no|not)\b[\w ]{0,12}\bbias[- ]correct|uncorrected", text.lower()):
        return kind, False
    if re.search(r"\bbias[- ]correct", text.lower()):
        return kind, True
    if corrects is None and not original:
        raise refused("optimizer", "say whether it is with or without bias correction", text)
    return kind, bool(corrects) and not original


def _trust_ratio(text: str) -> str:
    """Returns which variables' steps follow their own norm: all unless the words tell of fewer."""
    rest = re.sub(r"\b(with|without|no|not)?\s*bias[- ]correct\w*", "", text.lower())
    if re.search(r"\b(all|every) (the )?(variable|parameter|layer|weight)", rest):
        return "all"
    fewer = r"albert|decayed|\b(without|not|no|except|exclud\w*|but)\b.{0,40}(layer[ _-]?norm|bias)"
    return "decayed" if re.search(fewer, rest) else "all"


def _betas(values: dict[str, Any]) -> tuple[float, float]:
    betas = values.get("betas")
    if not isinstance(betas, list) or len(betas) != 2 or not all(map(is_number, betas)):
        raise refused("betas", "be two numbers", betas)
    return betas[0], betas[1]


def _roles(value: Any) -> tuple[str, ...]:
    """Returns the roles that are not decayed."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    if text.lower().strip() in _NOTHING:
        return ()
    words = re.split(r"[^a-z]+", re.sub(r"layer[ _-]?norm(alization|alisation)?s?", "layernorm", text.lower()))
    roles = {role for word in words for start, role in _ROLES.items() if word.startswith(start)}
    unknown = [word for word in words if word not in _FILLING and not word.startswith(tuple(_ROLES))]
    # Without the word for biases it would be open whether LayerNorm's is meant.
    if unknown or ("layer_norm" in roles and "bias" not in roles):
        raise refused("no_decay", "be of biases, LayerNorm and embeddings, LayerNorm only together with biases", value)
    return tuple(role for role in _ROLES.values() if role in roles)


def _clip(value: Any) -> float | None:
    """Returns the largest global norm of the gradients."""
    if value is None or value is False or str(value).lower().strip() in _NOTHING:
        return None
    if is_number(value):
        return float(value) or None
    numbers = re.findall(r"\d+\.?\d*(?:e-?\d+)?", str(value).lower())
    if "global" not in str(value).lower() or "norm" not in str(value).lower() or len(numbers) != 1:
        raise refused("clip", "be none, or the global norm that the whole batch's gradient is clipped to", value)
    return float(numbers[0]) or None


def _has_next_sentence(text: str) -> bool:
    """Returns whether the loss has a next-sentence part; its parts must be plain means, added up."""
    numbers = {float(number) for number in re.findall(r"\d+\.?\d*(?:e-?\d+)?", text.lower())}
    if numbers - {1e-5} or "smooth" in text.lower():
        raise refused(
            "loss", "be the weighted mean of the masked tokens' losses, plus the mean next-sentence one", text
        )
    return bool(re.search(r"nsp|next[- _]?sentence", text.lower()))


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise refused(name, "be a text", value)
    return value


def _number(values: dict[str, Any], name: str) -> float:
    value = values.get(name)
    if not is_number(value):
        raise refused(name, "be a number", value)
    return value


def is_number(value: Any) -> TypeGuard[int | float]:
    """Returns whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)
