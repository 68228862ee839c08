"""What can be trained on: prepared data, or TFRecord files with static masks."""

import os
from pathlib import Path

from keras_bert_impl.errors import InputError

from .examples.masking import MASKED_SHARE, TOKEN
from .examples.prepared_data import TOKEN_COUNTS, PreparedData
from .examples.record_data import RecordData, holds_records

PretrainingData = PreparedData | RecordData


def open_data(directory: str | os.PathLike[str]) -> PretrainingData:
    """Opens a directory that `prepare` wrote, or one of TFRecord files; see `RecordData` for its layout.

    Raises:
        InputError: if it is neither, or is damaged.
    """
    if holds_records(directory) and not (Path(directory) / TOKEN_COUNTS).is_file():
        return RecordData(directory)
    return PreparedData(directory)


def check_masks(masking: str, masked_share: float, data: PretrainingData) -> None:
    """Raises `InputError` if the masks cannot be drawn as asked for, since the data has its own already."""
    if not isinstance(data, RecordData):
        return
    for name, value, usual in (("masking", masking, TOKEN), ("masked_share", masked_share, MASKED_SHARE)):
        if value != usual:
            raise InputError(
                f"`{name}` must be left as it is for TFRecord files, whose masks were drawn when they were written. "
                f"Received: {name}={value!r}, data={str(data.directory)!r}"
            )
