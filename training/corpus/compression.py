"""Packed files as streams of bytes: gzip, xz and bzip2 by the standard library, Zstandard by pyarrow."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from .arrow import open_arrow

CHUNK = 2**20
PACKINGS = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "Zstandard"}
_MAGIC: dict[str, bytes | tuple[bytes, ...]] = {
    "gzip": b"\x1f\x8b",
    "xz": b"\xfd7zXZ\x00",
    "bzip2": tuple(b"BZh%d%s" % (level, block) for level in range(1, 10) for block in (b"1AY&", b"\x17rE8")),
    "Zstandard": b"\x28\xb5\x2f\xfd",
}


def packing_of_name(path: str) -> str | None:
    """Returns how a file is packed by its suffix, None for a plain one."""
    return next((packing for suffix, packing in PACKINGS.items() if path.lower().endswith(suffix)), None)


def unpacked_chunks(raw: io.RawIOBase, path: str, argument: str = "inputs") -> Iterator[bytes]:
    """Yields the content in pieces of at most a megabyte, unpacked.

    Args:
        raw: the file as it lies there.
        path: its name, whose suffix says how it is packed; the first bytes must agree. For `-`, standard input,
            they alone say it.
        argument: what error messages call the source of the name.

    Raises:
        InputError: if suffix and content disagree, or a packed file is cut off or damaged.
    """
    buffered = io.BufferedReader(raw, CHUNK)
    head = buffered.peek(8)
    found = next((packing for packing, magic in _MAGIC.items() if head.startswith(magic)), None)
    packing = found if path == "-" else packing_of_name(path)
    if packing and packing != found:
        raise InputError(f"`{argument}` must be what their names say. Received: {path!r}, which is no {packing} file")
    if found and not packing:
        suffix = next(suffix for suffix, name in PACKINGS.items() if name == found)
        raise InputError(
            f"`{argument}` must be what their names say. Received: {path!r}, which is a {found} file "
            f"but does not end in {suffix}"
        )
    if packing is None:
        while chunk := buffered.read1(CHUNK):  # What a pipe has by now is not kept waiting for more.
            yield chunk
        return
    try:
        stream = _unpacking(buffered, packing, path, argument)
        while chunk := stream.read(CHUNK):
            yield chunk
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, EOFError) or "Truncated" in str(error):
            fault = "which is cut off before its end"
        else:
            fault = f"which is damaged ({error})"
        raise InputError(f"`{argument}` must be whole files. Received: {path!r}, {fault}") from None


def _unpacking(stream: io.BufferedIOBase, packing: str, path: str, argument: str) -> Any:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=stream, mode="rb")
    if packing == "xz":
        return lzma.LZMAFile(stream, "rb")  # type: ignore[arg-type]
    if packing == "bzip2":
        return bz2.BZ2File(stream, "rb")
    arrow = open_arrow(path, argument)
    return arrow.CompressedInputStream(arrow.PythonFile(stream, mode="r"), "zstd")
