"""A TFRecord file opened at any record.

The format has no table of contents: each record is its length, the length's check sum, the bytes and their check
sum. So the records' places are found once, by going from length to length, and kept: eight bytes a record.
"""

import mmap
import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_bert_impl.errors import InputError

from .crc32c import masked_crc32c

_LENGTH = struct.Struct("<Q")
_HEADER, _FOOTER = 12, 4
_CHECKED_TOGETHER = 1 << 16
_GZIP = b"\x1f\x8b"


class RecordFile:
    """The records of one file as bytes, by number from 0.

    Opening reads every record's length and checks it; the bytes themselves are checked when they are read.
    The file is mapped into memory, so what it takes beyond the index is given back by the system at need.

    Args:
        path: an uncompressed TFRecord file, which may be empty.

    Raises:
        InputError: if the file cannot be read, is compressed, damaged or cut off; it names the record.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = str(path)
        self._data = _mapped(self.path)
        self._starts = self._find_records()

    def __len__(self) -> int:
        return self._starts.size - 1

    def read(self, numbers: Sequence[int] | np.ndarray) -> list[bytes]:
        """Returns the bytes of the records; a wrong check sum raises `InputError`."""
        numbers = np.asarray(numbers, np.int64)
        starts, ends = self._starts[numbers], self._starts[numbers + 1]
        data = self._data
        records = [data[start + _HEADER : end - _FOOTER] for start, end in zip(starts, ends, strict=True)]
        stored = b"".join(data[end - _FOOTER : end] for end in ends)
        wrong = np.flatnonzero(masked_crc32c(records) != np.frombuffer(stored, "<u4"))
        if wrong.size:
            raise self.damaged(int(numbers[wrong[0]]), "does not agree with its check sum")
        return records

    def damaged(self, number: int, what: str) -> InputError:
        """Returns the error that says what is wrong with a record."""
        return InputError(
            "`paths` must name whole TFRecord files of pretraining examples. "
            f"Received: {self.path!r}, whose record {number} (counted from 0) {what}"
        )

    def _find_records(self) -> np.ndarray:
        """Returns where each record starts, and the end of the file."""
        data, size = self._data, len(self._data)
        stretches, starts = [], []
        position, before = 0, 0
        while position + _HEADER <= size:
            starts.append(position)
            position += _LENGTH.unpack_from(data, position)[0] + _HEADER + _FOOTER
            if len(starts) == _CHECKED_TOGETHER:
                stretches.append(self._checked(starts, before))
                before, starts = before + len(starts), []
        stretches.append(self._checked(starts, before))
        found = np.concatenate([*stretches, [size]])
        if position != size:
            # Past the end, the last record that was found lacks bytes; before it, another one has only just begun.
            raise self.damaged(found.size - 2 if position > size else found.size - 1, "is cut off")
        return found

    def _checked(self, starts: list[int], before: int) -> np.ndarray:
        """Returns the starts as an array; a length that does not agree with its check sum raises `InputError`."""
        lengths = [self._data[start : start + _LENGTH.size] for start in starts]
        stored = b"".join(self._data[start + _LENGTH.size : start + _HEADER] for start in starts)
        wrong = np.flatnonzero(masked_crc32c(lengths) != np.frombuffer(stored, "<u4"))
        if wrong.size:
            if before + wrong[0] == 0 and self._data[:2] == _GZIP:
                raise InputError(
                    "`paths` must name uncompressed TFRecord files, for a compressed one can only be read from its "
                    f"beginning; unpack it with gzip. Received: {self.path!r}"
                )
            raise self.damaged(before + int(wrong[0]), "has a length that does not agree with its check sum")
        return np.array(starts, np.int64)


def _mapped(path: str) -> mmap.mmap | bytes:
    try:
        with Path(path).open("rb") as file:
            # An empty file cannot be mapped.
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if os.fstat(file.fileno()).st_size else b""
    except OSError as error:
        raise InputError(f"`paths` must name files that can be read. Received: {path!r} ({error.strerror})") from None
