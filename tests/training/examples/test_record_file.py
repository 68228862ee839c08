import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.examples import record_file
from keras_bert_impl.training.examples.record_file import RecordFile

RECORDS = [bytes([number]) * (5 * number % 37) for number in range(30)]
STARTS = [sum(len(record) + 16 for record in RECORDS[:number]) for number in range(31)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in RECORDS:
            writer.write(record)
    return path


@pytest.fixture(params=[1, 7, 1 << 16], ids="checked {} at once".format)
def few_at_once(request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_file, "_CHECKED_TOGETHER", request.param)


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


@pytest.mark.usefixtures("few_at_once")
def test_any_record_can_be_read_in_any_order(path: Path):
    file = RecordFile(path)
    assert len(file) == 30
    order = np.random.default_rng(0).permutation(30).tolist()
    assert file.read(order) == [RECORDS[number] for number in order]
    assert file.read([4]) == [RECORDS[4]]
    assert file.read([]) == []


def test_an_empty_file_has_no_records(tmp_path: Path):
    (tmp_path / "empty").touch()
    assert len(RecordFile(tmp_path / "empty")) == 0


def test_the_index_takes_eight_bytes_a_record(path: Path):
    assert RecordFile(path)._starts.nbytes == 8 * 31


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("number", [0, 13, 29])
@pytest.mark.parametrize("byte", [0, 7, 8, 11])
def test_a_damaged_length_is_found_on_opening(path: Path, number: int, byte: int):
    flip(path, STARTS[number] + byte)
    with pytest.raises(InputError, match=rf"whose record {number} \(counted from 0\) has a length that does not agree"):
        RecordFile(path)


@pytest.mark.parametrize("number", [1, 13, 29])
@pytest.mark.parametrize("byte", [0, -1, -4])
def test_damaged_bytes_are_found_on_reading(path: Path, number: int, byte: int):
    flip(path, STARTS[number] + 12 if byte == 0 else STARTS[number + 1] + byte)
    file = RecordFile(path)
    assert file.read([0, 2]) == [RECORDS[0], RECORDS[2]]
    with pytest.raises(InputError, match=rf"file\.tfrecord', whose record {number} \(counted from 0\) does not agree"):
        file.read([0, number, 2])


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize("kept,number", [(STARTS[7] + 30, 7), (STARTS[7] + 12, 7), (STARTS[7] + 5, 7), (3, 0)])
def test_a_file_cut_off_anywhere_is_found_on_opening(path: Path, kept: int, number: int):
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=rf"must name whole TFRecord .*record {number} \(counted from 0\) is cut off"):
        RecordFile(path)


def test_a_file_cut_off_between_two_records_is_just_shorter(path: Path):
    path.write_bytes(path.read_bytes()[: STARTS[9]])
    assert len(RecordFile(path)) == 9


def test_another_kind_of_file_is_refused(tmp_path: Path):
    (tmp_path / "text").write_text("This is not a TFRecord file, it is text.\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"record 0 \(counted from 0\) has a length that does not agree"):
        RecordFile(tmp_path / "text")


def test_a_compressed_file_is_refused_with_advice(path: Path, tmp_path: Path):
    (tmp_path / "packed").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match=r"`paths` must name uncompressed TFRecord files, .* unpack it with gzip\."):
        RecordFile(tmp_path / "packed")


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"`paths` must name files that can be read\. Received: '.*absent' \(No such"):
        RecordFile(tmp_path / "absent")
    with pytest.raises(InputError, match=r"can be read\. Received: '.*' \(Is a directory\)"):
        RecordFile(tmp_path)
