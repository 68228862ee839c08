"""pyarrow, which reads Parquet and Zstandard, opened only when such a file comes."""

import importlib
from typing import Any

from keras_bert_impl.errors import InputError


def open_arrow(path: str, argument: str, module: str = "pyarrow") -> Any:
    """Returns the module; where it is absent, an `InputError` says what to install for this file."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(
            f"`{argument}` in Parquet or Zstandard need pyarrow: pip install 'keras-bert-impl[data]'. "
            f"Received: {path!r}"
        ) from None
