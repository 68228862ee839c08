"""Small TFRecord files of pretraining examples, right and wrong, for the tests of what reads and writes them."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

VOCAB_SIZE, LENGTH, PREDICTIONS = 50, 12, 3


def random_rows(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows as they are written: `[CLS] A [SEP] B [SEP]` of 7 to 12 tokens, one to three of them to be predicted."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(7, LENGTH + 1, count)
    padding_mask = (np.arange(LENGTH) < lengths[:, None]).astype(np.int32)
    weights = (np.arange(PREDICTIONS) < rng.integers(1, PREDICTIONS + 1, count)[:, None]).astype(np.float32)
    token_ids = rng.integers(5, VOCAB_SIZE, (count, LENGTH)).astype(np.int32)
    token_ids[:, 0], token_ids[:, 3], token_ids[np.arange(count), lengths - 1] = 2, 3, 3
    positions = np.array([1, 4, 5], np.int32) + rng.integers(0, 2, (count, 1), np.int32)
    used = weights > 0
    return {
        "token_ids": token_ids * padding_mask,
        "segment_ids": (np.arange(LENGTH) > 3).astype(np.int32) * padding_mask,
        "padding_mask": padding_mask,
        "mask_positions": positions * used,
        "mask_labels": rng.integers(0, VOCAB_SIZE, (count, PREDICTIONS)).astype(np.int32) * used,
        "mask_weights": weights,
        "next_sentence_labels": rng.integers(0, 2, count).astype(np.int32),
    }


def features(count: int, seed: int = 0) -> list[dict[str, list]]:
    """The same rows as the original names and types their features."""
    rows = random_rows(count, seed)
    names = {
        "input_ids": "token_ids",
        "input_mask": "padding_mask",
        "segment_ids": "segment_ids",
        "masked_lm_positions": "mask_positions",
        "masked_lm_ids": "mask_labels",
        "masked_lm_weights": "mask_weights",
    }
    return [
        {name: rows[ours][row].tolist() for name, ours in names.items()}
        | {"next_sentence_labels": [int(rows["next_sentence_labels"][row])]}
        for row in range(count)
    ]


def example(values: Mapping[str, list]) -> bytes:
    """A serialized `tf.train.Example` of lists of int, float or bytes."""
    kinds = {
        int: lambda value: tf.train.Feature(int64_list=tf.train.Int64List(value=value)),
        float: lambda value: tf.train.Feature(float_list=tf.train.FloatList(value=value)),
        bytes: lambda value: tf.train.Feature(bytes_list=tf.train.BytesList(value=value)),
    }
    feature = {name: kinds[type(value[0])](value) if value else tf.train.Feature() for name, value in values.items()}
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def write_records(path: Path, records: list[bytes]) -> Path:
    """Writes the records with TensorFlow's own writer."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path


def read_features(path: Path) -> list[dict[str, list]]:
    """Reads the records with TensorFlow's own reader."""
    found = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        found.append({name: list(getattr(value, value.WhichOneof("kind")).value) for name, value in feature.items()})
    return found
