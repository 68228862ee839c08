"""What can be trained on: prepared data, or TFRecord files with static masks."""

import os
from pathlib import Path

from .examples.prepared_data import MANIFEST, PreparedData
from .examples.record_data import RecordData, holds_records

PretrainingData = PreparedData | RecordData


def open_data(directory: str | os.PathLike[str]) -> PretrainingData:
    """Opens a directory that `prepare` wrote, or one of TFRecord files; see `RecordData` for its layout.

    Raises:
        InputError: if it is neither, or is damaged.
    """
    if not (Path(directory) / MANIFEST).is_file() and holds_records(directory):
        return RecordData(directory)
    return PreparedData(directory)
