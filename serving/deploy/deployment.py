"""Writes the files of a deployment, and never over what somebody else wrote."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError

from . import compose, kubernetes, readme, server_config
from .exported import Exported

IMAGE = "tensorflow/serving:2.20.0"
"""The release that was built from the TensorFlow that exports are made and proved with."""

RECORD = "deployment.json"
"""Checksums of the files, by which those that somebody has changed are told from the others."""

_WRITTEN_BY = "keras-bert export --deploy"
_FILES = (
    compose.FILE,
    server_config.MODELS,
    server_config.BATCHING,
    server_config.MONITORING,
    kubernetes.FILE,
    kubernetes.DOCKERFILE,
    readme.FILE,
)


def write_deployment(
    export_dir: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    *,
    model_name: str = "bert",
    image: str = IMAGE,
    say: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Writes files that put an export on TensorFlow Serving: for Docker Compose, for a cluster, and how to use them.

    All of it is derived from the export's highest version. Files that an earlier call wrote are replaced, unless
    somebody has changed them.

    Args:
        export_dir: directory of numbered versions.
        output_dir: directory for the files, made if absent.
        model_name: name of the model on the server, as in `/v1/models/NAME`.
        image: the server's image.
        say: receives the lines for the user.

    Returns:
        The files.

    Raises:
        InputError: if an argument cannot be used, or a file is there that this package did not write.
    """
    output = Path(output_dir)
    check_deployment(output, model_name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]*", image):
        raise InputError(f"`image` must be the name of a container image. Received: image={image!r}")
    export = Exported.from_path(export_dir)
    config_files = {
        server_config.MODELS: server_config.models_config(model_name),
        server_config.BATCHING: server_config.batching_parameters(export),
        server_config.MONITORING: server_config.monitoring_config(),
    }
    files = {
        compose.FILE: compose.compose_file(export, output, model_name, image),
        **config_files,
        kubernetes.FILE: kubernetes.kubernetes_file(export, model_name, config_files),
        kubernetes.DOCKERFILE: kubernetes.dockerfile(export, model_name, image),
        readme.FILE: readme.readme(export, output, model_name, image),
    }
    _write(output, files)
    say(f"Wrote {len(files) + 1} files for {image} to {output}; {output / readme.FILE} says how to use them.")
    return [output / name for name in files]


def check_deployment(output_dir: str | os.PathLike[str], model_name: str) -> None:
    """Says what is wrong before an export is made.

    Raises:
        InputError: if files are there that would be replaced and were not written by this package, or the name cannot
            stand in an address and in a file.
    """
    if not os.fspath(output_dir):
        raise InputError("`output_dir` must name a directory. Received: output_dir=''")
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]*", model_name):
        raise InputError(
            "`model_name` must be of letters, digits, `_`, `.` and `-`, the first a letter or digit. "
            f"Received: model_name={model_name!r}"
        )
    output = Path(output_dir)
    if output.exists() and not output.is_dir():
        raise InputError(f"`output_dir` must be a directory. Received: {str(output)!r}, which is none")
    known = _known(output)
    strange = [name for name in _FILES if os.path.lexists(output / name) and _digest(output / name) not in known[name]]
    if strange:
        raise InputError(
            "`output_dir` must have no files of these names that you have written or changed; move them away, or name "
            f"another directory. Received: {str(output)!r} with {', '.join(strange)}"
        )


def _write(output: Path, files: Mapping[str, str]) -> None:
    new = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in files.items()}
    # Should this be ended on the way, both the old files and the new ones are known the next time.
    _write_record(output, {name: sorted({*hashes, new[name]}) for name, hashes in _known(output).items()})
    for name, text in files.items():
        with atomic_file(output / name) as file:
            file.write(text)
    _write_record(output, {name: [digest] for name, digest in new.items()})


def _write_record(output: Path, hashes: Mapping[str, Sequence[str]]) -> None:
    with atomic_file(output / RECORD) as file:
        json.dump({"written_by": _WRITTEN_BY, "sha256": hashes}, file, indent=2)
        file.write("\n")


def _known(output: Path) -> dict[str, list[str]]:
    """Returns the checksums of what an earlier call wrote, by file."""
    path = output / RECORD
    if not os.path.lexists(path):
        return {name: [] for name in _FILES}
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["written_by"] == _WRITTEN_BY:
            return {name: [str(digest) for digest in record["sha256"].get(name, ())] for name in _FILES}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    raise InputError(
        f"`output_dir` must have no {RECORD} but that of an earlier call; move it away, or name another directory. "
        f"Received: {str(path)!r}, which is not as it was written"
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
