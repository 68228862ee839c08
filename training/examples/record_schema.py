"""What a TFRecord of the interchange form holds: the original's features, and the Model Garden's newer names."""

import dataclasses
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

ROWS_AT_ONCE = 1024

Rows = dict[str, np.ndarray]

# Under each of our names: the original's, which is the one we write; then the one that the Model Garden writes
# when asked for its version 2 of the names.
_FEATURES = {
    "token_ids": ("input_ids", "input_word_ids"),
    "padding_mask": ("input_mask",),
    "segment_ids": ("segment_ids", "input_type_ids"),
    "mask_positions": ("masked_lm_positions",),
    "mask_labels": ("masked_lm_ids",),
    "mask_weights": ("masked_lm_weights",),
    "next_sentence_labels": ("next_sentence_labels",),
}
_PER_TOKEN = ("token_ids", "padding_mask", "segment_ids")
_PER_EXAMPLE = ("next_sentence_labels",)
_TYPES = {"int64_list": "int64", "float_list": "float32", "bytes_list": "bytes", None: "no"}


def encode_rows(rows: Rows) -> list[bytes]:
    """Returns each row as a serialized `tf.train.Example`, always the same bytes for the same row.

    Args:
        rows: integers `token_ids`, `segment_ids`, `padding_mask` (rows, length), `mask_positions` and
            `mask_labels` (rows, predictions), `next_sentence_labels` (rows,); floats `mask_weights`
            (rows, predictions). As in the original, ids and segments of the padding become 0, and so do
            positions and labels of slots without weight.
    """
    real, used = rows["padding_mask"], rows["mask_weights"] > 0
    clean = rows | {
        "token_ids": rows["token_ids"] * real,
        "segment_ids": rows["segment_ids"] * real,
        "mask_positions": rows["mask_positions"] * used,
        "mask_labels": rows["mask_labels"] * used,
        "next_sentence_labels": rows["next_sentence_labels"][:, None],
    }
    records = []
    for row in range(len(real)):
        example = tf.train.Example()
        for ours, (name, *_) in _FEATURES.items():
            feature = example.features.feature[name]
            values = feature.float_list if _type_of(ours) == "float32" else feature.int64_list
            values.value.extend(clean[ours][row].tolist())
        records.append(example.SerializeToString(deterministic=True))
    return records


@dataclasses.dataclass(frozen=True)
class RecordSchema:
    """The names and sizes that all records of a set share.

    Attributes:
        length: tokens of a row, padding counted.
        predictions: prediction slots of a row.
        names: the features' names in the files, by ours.
    """

    length: int
    predictions: int
    names: dict[str, str]

    @classmethod
    def of_record(cls, record: bytes) -> "RecordSchema | str":
        """Returns the schema that a first record shows, or what is wrong with it."""
        features = _features_of(record)
        if features is None:
            return "is no tf.train.Example"
        names = {ours: next((name for name in known if name in features), "") for ours, known in _FEATURES.items()}
        if missing := [" or ".join(_FEATURES[ours]) for ours, name in names.items() if not name]:
            return f"lacks {', '.join(missing)}; its features are: {', '.join(sorted(features)) or 'none'}"
        schema = cls(features[names["token_ids"]].size, features[names["mask_positions"]].size, names)
        return schema.fault_of(record) or schema

    def size_of(self, ours: str) -> int:
        """Returns how many values a feature has."""
        return self.length if ours in _PER_TOKEN else 1 if ours in _PER_EXAMPLE else self.predictions

    def parse(self, records: list[bytes]) -> Rows:
        """Returns the values under our names, int64 and float32 (records, values).

        Raises:
            tf.errors.InvalidArgumentError: if a record does not fit; `fault_of` says why.
        """
        spec = {name: tf.io.FixedLenFeature((self.size_of(ours),), _type_of(ours)) for ours, name in self.names.items()}
        with tf.device("CPU"):
            values = tf.io.parse_example(np.array(records, object), spec)
        return {ours: values[name].numpy() for ours, name in self.names.items()}

    def fault_of(self, record: bytes) -> str | None:
        """Returns why a record does not fit, or None if it does."""
        features = _features_of(record)
        if features is None:
            return "is no tf.train.Example"
        for ours, name in self.names.items():
            due = _Values(_type_of(ours), max(1, self.size_of(ours)))
            if (found := features.get(name, _Values("no", 0))) != due:
                return f"has {found.size} {found.type} values as {name} where {due.size} {due.type} values are due"
        return None

    def value_fault(self, values: Rows, limits: dict[str, tuple[float, str]]) -> tuple[int, str] | None:
        """Returns the place of a record whose numbers are out of range and what is wrong with it, or None.

        Args:
            values: from `parse`.
            limits: under our names, what all values must be below, and why.
        """
        for ours, (limit, reason) in limits.items():
            outside = ~((values[ours] >= 0) & (values[ours] < limit))  # Not a number is outside, too.
            if outside.any():
                place, slot = np.argwhere(outside)[0]
                value, name = values[ours][place, slot], self.names[ours]
                return int(place), f"has {value} in {name}, which must be at least 0 and less than {limit}, {reason}"
        return None


class _Values(NamedTuple):
    type: str
    size: int


def _features_of(record: bytes) -> dict[str, _Values] | None:
    try:
        features = tf.train.Example.FromString(record).features.feature
    except DecodeError:
        return None
    fields = {name: feature.WhichOneof("kind") for name, feature in features.items()}
    return {
        name: _Values(_TYPES[field], len(getattr(features[name], field).value) if field else 0)
        for name, field in fields.items()
    }


def _type_of(ours: str) -> str:
    return "float32" if ours.endswith("_weights") else "int64"
