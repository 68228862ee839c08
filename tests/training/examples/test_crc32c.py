import struct
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.training.examples.crc32c import crc32c, masked_crc32c


@pytest.mark.parametrize(
    "record,expected",
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (b"123456789", 0xE3069283),
        (b"", 0),
    ],
)
def test_the_vectors_of_the_standard_hold(record: bytes, expected: int):
    assert crc32c([record]).tolist() == [expected]


def test_no_records_have_no_check_sums():
    assert crc32c([]).shape == (0,)


def test_records_of_any_size_have_the_check_sums_that_tensorflow_writes(tmp_path: Path):
    rng = np.random.default_rng(0)
    records = [rng.bytes(size) for size in [*range(20), 1000, 0, 255, 3]]
    path = tmp_path / "records"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    data, position, stored = path.read_bytes(), 0, []
    lengths = masked_crc32c([struct.pack("<Q", len(record)) for record in records])
    for record, length in zip(records, lengths.tolist(), strict=True):
        assert struct.unpack_from("<QI", data, position) == (len(record), length)
        position += 12 + len(record)
        stored += struct.unpack_from("<I", data, position)
        position += 4
    assert masked_crc32c(records).tolist() == stored
    assert [int(masked_crc32c([record])[0]) for record in records] == stored
