import errno
from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.training.examples import shards
from keras_bert_impl.training.examples.pairs import Pair
from keras_bert_impl.training.examples.shards import example_ids, rows_of_pairs, token_dtype, write_array


def test_ids_are_unique_over_splits_lengths_and_blocks():
    ids = [
        example_ids(1, split, length, block, 500)
        for split in ("train", "held_out")
        for length in (8, 128, 512, 65535)
        for block in (0, 1, 2, 2**16)
    ]
    assert np.unique(np.concatenate(ids)).size == 2 * 4 * 4 * 500


def test_ids_depend_on_the_seed():
    assert not np.intersect1d(example_ids(1, "train", 128, 0, 1000), example_ids(2, "train", 128, 0, 1000)).size


def test_rows_hold_both_parts_between_special_tokens():
    pairs = [Pair([10, 11], [12], 1), Pair([13], [14, 15, 16], 0)]
    tokens, examples = rows_of_pairs(pairs, np.array([7, 9], np.uint64), cls_token_id=2, sep_token_id=3, vocab_size=100)
    assert tokens.tolist() == [2, 10, 11, 3, 12, 3, 2, 13, 3, 14, 15, 16, 3]
    assert tokens.dtype == np.uint16
    assert examples.tolist() == [(0, 6, 4, 1, 7), (6, 7, 3, 0, 9)]


def test_no_pairs_make_empty_arrays():
    tokens, examples = rows_of_pairs([], np.zeros(0, np.uint64), cls_token_id=2, sep_token_id=3, vocab_size=100)
    assert tokens.shape == examples.shape == (0,)


def test_a_large_vocabulary_gets_wider_tokens():
    assert token_dtype(65536) is np.uint16
    assert token_dtype(65537) is np.int32


def test_a_written_array_is_an_ordinary_npy_file(tmp_path: Path):
    array = np.arange(10, dtype=np.uint16)
    write_array(tmp_path / "new" / "a.npy", array)
    assert np.array_equal(np.load(tmp_path / "new" / "a.npy", allow_pickle=False), array)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.npy").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        shards.write_array(tmp_path / "a.npy", np.arange(100_000))
    assert caught.value.errno == errno.ENOSPC
