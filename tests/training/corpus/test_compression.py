import bz2
import gzip
import io
import lzma
import sys

import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.corpus.compression import CHUNK, PACKINGS, unpacked_chunks

TEXT = b"".join(b"line %d\n" % number for number in range(50_000))


def zstandard(content: bytes) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    sink = arrow.BufferOutputStream()
    with arrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACK = {
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard,
}


def unpacked(content: bytes, name: str) -> bytes:
    return b"".join(unpacked_chunks(io.BytesIO(content), name))


@pytest.mark.parametrize("suffix", PACKINGS)
def test_a_packed_file_gives_what_was_packed(suffix: str):
    packed = PACK[suffix](TEXT)
    assert len(packed) < len(TEXT)
    assert unpacked(packed, "a.txt" + suffix) == TEXT
    assert unpacked(packed, "A.TXT" + suffix.upper()) == TEXT


@pytest.mark.parametrize("suffix", PACKINGS)
def test_files_packed_one_after_another_are_one(suffix: str):
    assert unpacked(PACK[suffix](b"one\n") + PACK[suffix](b"two\n"), "a" + suffix) == b"one\ntwo\n"


@pytest.mark.parametrize("suffix", PACKINGS)
def test_pieces_are_small_however_much_is_packed_in_little(suffix: str):
    packed = PACK[suffix](bytes(20 * CHUNK))
    assert len(packed) < CHUNK / 10
    assert max(map(len, unpacked_chunks(io.BytesIO(packed), "a" + suffix))) <= CHUNK


def test_a_plain_file_comes_as_it_is():
    assert unpacked(TEXT, "a.txt") == TEXT
    assert unpacked(b"", "a.txt") == b""


@pytest.mark.parametrize("suffix", PACKINGS)
def test_standard_input_is_known_by_its_first_bytes(suffix: str):
    assert unpacked(PACK[suffix](TEXT), "-") == TEXT
    assert unpacked(TEXT, "-") == TEXT


@pytest.mark.parametrize("suffix", PACKINGS)
@pytest.mark.parametrize("left", [0.5, 0.99])
def test_a_file_that_was_cut_off_is_said_to_be(suffix: str, left: float):
    packed = PACK[suffix](TEXT)
    message = rf"`inputs` must be whole files\. Received: 'a\{suffix}', which is cut off before its end$"
    with pytest.raises(InputError, match=message):
        unpacked(packed[: int(left * len(packed))], "a" + suffix)


@pytest.mark.parametrize("suffix", PACKINGS)
def test_a_damaged_file_is_said_to_be(suffix: str):
    packed = bytearray(PACK[suffix](TEXT))
    packed[12:52] = b"\xff" * 40
    fault = r"(damaged \(.+\)|cut off before its end)"
    message = rf"`inputs` must be whole files\. Received: 'a\{suffix}', which is {fault}$"
    with pytest.raises(InputError, match=message):
        unpacked(bytes(packed), "a" + suffix)


@pytest.mark.parametrize(("suffix", "packing"), PACKINGS.items())
@pytest.mark.parametrize("content", [b"", b"plain text"])
def test_a_name_must_not_claim_a_packing(suffix: str, packing: str, content: bytes):
    message = rf"`inputs` must be what their names say\. Received: 'a\{suffix}', which is no {packing} file$"
    with pytest.raises(InputError, match=message):
        unpacked(content, "a" + suffix)


@pytest.mark.parametrize(("suffix", "packing"), PACKINGS.items())
def test_a_packed_file_must_say_so(suffix: str, packing: str):
    message = rf"Received: 'a\.txt', which is a {packing} file but does not end in \{suffix}$"
    with pytest.raises(InputError, match=message):
        unpacked(PACK[suffix](TEXT), "a.txt")


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    packed = zstandard(TEXT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = (
        r"`inputs` in Parquet or Zstandard need pyarrow: pip install 'keras-bert-impl\[data\]'\. Received: 'a\.zst'$"
    )
    with pytest.raises(InputError, match=message):
        unpacked(packed, "a.zst")
