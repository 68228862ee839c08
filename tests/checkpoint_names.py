"""The table of docs/checkpoint_names.md."""

import re
from pathlib import Path

from keras_bert_impl.checkpoints.architecture import HEADS, tensor_shapes

FILE = Path(__file__).parent.parent / "docs" / "checkpoint_names.md"


def documented_names(column, layers=1):
    """Returns the names in a column, by our names; rows of a block once for each layer.

    Args:
        column: how its heading begins, for example `"Google"`.
        layers: number of blocks.
    """
    lines = [line.strip("| ") for line in FILE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    heading, _, *rows = [[cell.strip(" `") for cell in line.split("|")] for line in lines]
    place = next(i for i, name in enumerate(heading) if name.startswith(column))
    rows = [row for row in rows if len(row) == len(heading)]
    return {
        _numbered(row[0], i): _numbered(row[place], i) for row in rows for i in range(layers if ".N." in row[0] else 1)
    }


def _numbered(name, number):
    return re.sub(r"(?<=[._/])N(?=[./])", str(number), name)


def every_shape(config, num_labels):
    """Returns the shapes of the tensors of a model with every head."""
    return tensor_shapes(config, ("encoder", *HEADS), num_labels=num_labels)
