"""A checkpoint of any format, opened but not yet read."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

from keras_bert_impl.checkpoints.architecture import HEADS, PARTS, Shape, part_of
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

WEIGHT_DTYPES = ("float32", "float16", "bfloat16")
"""What weights may be stored in; anything else is a code that stands for them, or would be cut."""

# Hugging Face's names for labels that were never given any.
_PLAIN_LABEL = "LABEL_{}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """A tensor of a checkpoint, read when asked for.

    Attributes:
        name: as the checkpoint calls it.
        shape: as the checkpoint has it, the axes of heads joined.
        dtype: as the checkpoint has it, for example `"float16"`.
        read: returns the values as an array; heads may be apart.
        transposed: whether the checkpoint has a kernel as `(outputs, inputs)`.
    """

    name: str
    shape: Shape
    dtype: str
    read: Callable[[], Any]
    transposed: bool = False

    def stored_shape(self, shape: Shape) -> Shape:
        """Returns how the checkpoint would have a tensor whose shape in this package is `shape`."""
        return shape[::-1] if self.transposed else shape


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a checkpoint holds.

    Attributes:
        source: the file or directory, for messages.
        format: of `"huggingface"`, `"google_tf1"`, `"keras_hub"`, `"model_garden"`, `"keras"`, `"memory"`.
        config: what the encoder is.
        tensors: by the names of `architecture.tensor_shapes`; names that no BERT has are kept as they are.
        architecture: a key of `PARTS`, as the checkpoint says it or as its tensors show.
        architecture_is_stated: whether the checkpoint itself says it.
        labels: names of the classifier's outputs; empty without classifier.
        settings: what `config.json` says of the head besides, for example `problem_type`.
        passed_over: name and reason of what holds nothing new: optimizer slots, buffers, copies of tied tensors.
        ignored_config_keys: keys of the configuration that are not fields of `BertConfig`.
        inexact: part and reason, the end of a sentence, of heads that compute something else there than here.

    Raises:
        InputError: if the configuration has more blocks than there are tensors.
    """

    source: str
    format: str
    config: BertConfig
    tensors: dict[str, StoredTensor]
    architecture: str
    architecture_is_stated: bool = True
    labels: tuple[str, ...] = ()
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    passed_over: tuple[tuple[str, str], ...] = ()
    ignored_config_keys: tuple[str, ...] = ()
    inexact: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # Before anybody counts up to a number that a damaged file gives.
        if self.config.num_hidden_layers > len(self.tensors):
            raise InputError(
                "`path` must hold the blocks that its configuration says. "
                f"Received: {self.source!r}, {len(self.tensors)} tensors, "
                f"num_hidden_layers={self.config.num_hidden_layers}"
            )

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that have at least one tensor here, in the order they are met."""
        return tuple(dict.fromkeys(part_of(name) for name in self.tensors))

    def without_part(self, part: str, reason: str) -> "Checkpoint":
        """Returns the checkpoint without a part, which is passed over for a reason."""
        left = tuple((tensor.name, reason) for key, tensor in self.tensors.items() if part_of(key) == part)
        return dataclasses.replace(
            self,
            tensors={key: tensor for key, tensor in self.tensors.items() if part_of(key) != part},
            passed_over=(*self.passed_over, *left),
            labels=() if part == "classifier" else self.labels,
            inexact=tuple(one for one in self.inexact if one[0] != part),
        )

    def with_tensors(self, tensors: dict[str, StoredTensor]) -> "Checkpoint":
        """Returns the checkpoint with these tensors in place of its own."""
        return dataclasses.replace(self, tensors=tensors)


def checked_parts(argument: str, parts: Any) -> tuple[str, ...]:
    """Returns names of parts as a tuple; raises `InputError` unless they are a collection of `HEADS`."""
    if isinstance(parts, str) or not isinstance(parts, Collection):
        raise InputError(f"`{argument}` must be a list of parts, such as ('pooler',). Received: {argument}={parts!r}")
    if unknown := sorted(set(parts) - set(HEADS)):
        raise InputError(f"`{argument}` must be of {', '.join(HEADS)}. Received: {argument}={unknown}")
    return tuple(parts)


def architecture_of(tensors: Collection[str], stated: str | None = None) -> str:
    """Returns which architecture the tensors are, so that none of their parts is lost.

    Args:
        tensors: names of tensors.
        stated: what the checkpoint says, if anything. Published ones get it wrong: it holds if it has all their heads.
    """
    parts = {part_of(name) for name in tensors}
    # Task models are often saved with a pooler that they make no use of.
    if stated in PARTS and parts - {"pooler"} <= set(PARTS[stated]):
        return stated
    candidates = [
        "BertModel",
        "BertForMaskedLM",
        "BertForPreTraining",
        "BertForSequenceClassification" if "pooler" in parts else "BertForTokenClassification",
        "BertForQuestionAnswering",
    ]
    for needed in (parts, parts - {"pooler"}):
        for candidate in candidates:
            if needed <= set(PARTS[candidate]):
                return candidate
    # Some part belongs to no BERT, or to another than the rest: the load report will say so.
    return max(candidates, key=lambda name: len(parts & set(PARTS[name])))


def plain_labels(count: int) -> tuple[str, ...]:
    """Returns the names of `count` labels that have none."""
    return tuple(_PLAIN_LABEL.format(i) for i in range(count))


def are_plain_labels(labels: tuple[str, ...]) -> bool:
    """Whether labels are only numbered."""
    return labels == plain_labels(len(labels))
