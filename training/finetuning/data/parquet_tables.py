"""The rows of Parquet files, a few at a time."""

from collections.abc import Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from ...corpus.arrow import open_arrow
from ...corpus.input_files import SourceFile
from .class_names import names_in_parquet
from .table import Row, Table, with_first

_ROWS = 256


def open_parquet(file: SourceFile, argument: str) -> Table:
    """Opens a table of Parquet; memory holds a row group at most."""
    arrow = open_arrow(file.path, argument)
    parquet = open_arrow(file.path, argument, "pyarrow.parquet")
    try:
        schema = parquet.read_schema(file.path)
    except (arrow.ArrowException, OSError) as error:
        raise _no_parquet(file, argument, error) from None
    table = Table(file.path, tuple(schema.names), iter(()), "Parquet", by_number=False)
    table.class_names = names_in_parquet(schema.metadata)
    table.rows = _rows_of_parquet(arrow, parquet, file, argument)
    return with_first(table)


def _rows_of_parquet(arrow: Any, parquet: Any, file: SourceFile, argument: str) -> Iterator[Row]:
    number = 0
    try:
        with parquet.ParquetFile(file.path, buffer_size=2**20, pre_buffer=False) as content:
            for batch in content.iter_batches(_ROWS, use_threads=False):
                for values in batch.to_pylist():
                    number += 1
                    yield Row(f"{file.path}:{number}", {name: _plain(value) for name, value in values.items()})
    except (arrow.ArrowException, OSError) as error:
        raise _no_parquet(file, argument, error) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{argument}` must be UTF-8 text. Received: {file.path!r}, which is not near row {number + 1} "
            f"({error.reason})"
        ) from None


def _no_parquet(file: SourceFile, argument: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0]
    return InputError(f"`{argument}` must be whole files. Received: {file.path!r}, no Parquet file ({reason})")


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it; dates and other things that it has not, as text."""
    return value if value is None or isinstance(value, str | int | float | list | dict) else str(value)
