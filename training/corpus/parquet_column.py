"""The texts of one column of a Parquet file, a few rows at a time."""

from collections.abc import Callable, Iterator
from typing import Any

from keras_bert_impl.errors import InputError

from .arrow import open_arrow

_ROWS = 64


def parquet_texts(
    place: str, path: str, field: str, advance: Callable[[float], object], argument: str = "inputs"
) -> Iterator[tuple[int, str]]:
    """Yields (row number from 1, text); memory holds some pages of one column, never a row group.

    Args:
        place: where the file lies.
        path: what messages call it.
        field: the column.
        advance: called with the share of the rows that was read since the last call.

    Raises:
        InputError: if pyarrow is absent, the file is damaged, or the column is absent, not of text or not filled.
    """
    arrow = open_arrow(path, argument)
    parquet = open_arrow(path, argument, "pyarrow.parquet")
    number = 0
    try:
        with parquet.ParquetFile(place, buffer_size=2**20, pre_buffer=False) as file:
            _check_column(arrow, file.schema_arrow, field, path)
            for batch in file.iter_batches(_ROWS, columns=[field], use_threads=False):
                for text in batch.column(0).to_pylist():
                    number += 1
                    if text is None:
                        raise InputError(
                            f"`text_field` must name a column with text in every row. "
                            f"Received: {field!r}; row {number} of {path!r} has none"
                        )
                    yield number, text
                advance(batch.num_rows / file.metadata.num_rows)
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"`{argument}` must be whole files. Received: {path!r}, no Parquet file ({reason})") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{argument}` must be UTF-8 text. Received: {path!r}, which is not near row {number + 1} ({error.reason})"
        ) from None


def _check_column(arrow: Any, schema: Any, field: str, path: str) -> None:
    if field not in schema.names:
        known = schema.names[:20]
        raise InputError(f"`text_field` must name a column. Received: {field!r}; {path!r} has {known}")
    types, kind = arrow.types, schema.field(field).type
    plain = kind.value_type if types.is_dictionary(kind) else kind
    if not (types.is_string(plain) or types.is_large_string(plain) or types.is_string_view(plain)):
        raise InputError(f"`text_field` must name a column of text. Received: {field!r}; in {path!r} it is {kind}")
