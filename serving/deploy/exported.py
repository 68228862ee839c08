"""What a deployment needs to know of an export."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.errors import InputError

from ..server.models.version_directory import version_directories

_MIB = 2**20
_USUAL_ROWS = 32
_SIZES = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers")
# What the server takes by itself, without a model; a guess on the safe side.
_SERVER_BYTES = 512 * _MIB


class Exported(NamedTuple):
    """The highest version of an export.

    Attributes:
        directory: of numbered versions.
        version: its number.
        description: its `signature.json`.
        weights_bytes: size of its weights.
        max_rows: rows of the largest batch that it was proved with, and is warmed up with.
    """

    directory: Path
    version: int
    description: dict[str, Any]
    weights_bytes: int
    max_rows: int

    @classmethod
    def from_path(cls, export_dir: str | os.PathLike[str]) -> "Exported":
        """Reads the highest version in a directory.

        Raises:
            InputError: if there is none, or it is no export of this package.
        """
        from ..warm_up import read  # opens TensorFlow, which the check before an export need not wait for

        directory = Path(export_dir)
        versions = version_directories(directory) if directory.is_dir() else {}
        if not versions:
            raise InputError(
                "`export_dir` must hold numbered version directories, each with a saved_model.pb. "
                f"Received: {str(directory)!r}"
            )
        version = max(versions)
        folder = versions[version]
        return cls(
            directory=directory,
            version=version,
            description=_description(folder / "assets.extra" / "signature.json"),
            weights_bytes=sum(path.stat().st_size for path in (folder / "variables").glob("*")),
            max_rows=max((request.rows for request in read(folder)), default=_USUAL_ROWS),
        )

    @property
    def run_bytes(self) -> int:
        """Memory that one run of the largest batch of the longest rows takes, about.

        One block at a time: states, queries, keys, values and sums of a row's tokens, the feed-forward layer with what
        its activation makes, and the scores of every head for every pair of tokens, before and after the softmax. An
        export that shows the attention keeps it for all blocks, and once more in one piece.
        """
        config, length = self.description["config"], self.description["max_length"]
        numbers = 8 * config["hidden_size"] + 4 * config["intermediate_size"]
        pairs = config["num_attention_heads"] * length
        numbers += 3 * pairs
        if "attention" in self.description["signatures"]:
            numbers += 2 * config["num_hidden_layers"] * pairs
        return 4 * self.max_rows * length * numbers

    @property
    def waiting_mib(self) -> int:
        """Memory of a server that has loaded a new version and still has the old one, about, in MiB."""
        return -(-(2 * self.weights_bytes + _SERVER_BYTES) // _MIB)

    def busy_mib(self, runs: int) -> int:
        """Memory of the same server with so many of the largest runs at once, about, in MiB."""
        return self.waiting_mib + -(-runs * self.run_bytes // _MIB)


def _description(path: Path) -> dict[str, Any]:
    """Reads what a deployment takes from a description, all of which must be there."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(description, ensure_ascii=False).encode()  # half a character could not be written
        sizes = [description["config"][name] for name in _SIZES]
        texts = [description["kind"], description["weights_sha256"], description["padding"]]
        texts += description.get("other_ops", [])
        shapes = [
            spec["shape"] for signature in description["signatures"].values() for spec in signature["inputs"].values()
        ]
        example = description["signatures"]["serving_default"]["example"]
        fits = (
            all(type(size) is int and size > 0 for size in [*sizes, description["max_length"]])
            and all(isinstance(text, str) and text.isprintable() for text in texts)
            and all(isinstance(shape, list) for shape in shapes)
            and all(isinstance(example[side], dict) for side in ("request", "answer"))
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        fits = False
    if not fits:
        raise InputError(
            "`export_dir` must hold an export that `keras-bert export` wrote; export it anew. "
            f"Received: {str(path)!r}, which does not describe it"
        )
    return description
