"""Turns a pretrained model into a SavedModel that an unmodified TensorFlow Serving loads."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_bert_impl.atomic import atomic_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece

from .export_proof import Proof, prove
from .loaded_model import LoadedModel, checked_top
from .rest_protocol import write_outputs
from .signatures import Signatures


def export_saved_model(
    model_dir: str | os.PathLike[str],
    target_dir: str | os.PathLike[str],
    *,
    top: int = 5,
    version: int | None = None,
    max_length: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Writes `TARGET/VERSION/`, after it has proved itself.

    The signatures are described in `Signatures`; `signature.json` in the version's `assets.extra`, which
    servers pass over, has their inputs and outputs with an example, and `proof.json` what was compared.

    Args:
        model_dir: model directory, or run directory.
        target_dir: directory of numbered versions, made if absent.
        top: candidates per mask in an answer.
        version: number of the version; the next free one when not given.
        max_length: ids that a text may have, with `[CLS]` and `[SEP]`; the model's positions when not given.
        say: receives the lines for the user.

    Returns:
        The version directory.

    Raises:
        InputError: if the model cannot be read, an argument is out of range or the version exists.
        ExportError: if the export does not answer as the model does; nothing is put in place.
    """
    target = _version_directory(Path(target_dir), version)
    # Answers are compared in float32 as the CPU computes it, so the model is read there.
    with tf.device("CPU:0"):
        loaded = LoadedModel.from_path(model_dir)
    top = checked_top(top, loaded.model)
    max_length = _checked_max_length(max_length, loaded.model.config.max_position_embeddings)
    say(f"Read {loaded.num_parameters:,} parameters from {loaded.directory}.")
    for part in sorted(loaded.fresh_parts):
        say(f"The model was saved without its {part}; the outputs that need it are left out.")

    with atomic_directory(target) as folder:
        specs = _write(loaded, folder, top=top, max_length=max_length)
        say("Proving it: a process with TensorFlow alone runs each signature, and the Keras model answers the same.")
        with tf.device("CPU:0"):
            proof = prove(folder, loaded, top=top, max_length=max_length)
        extra = folder / "assets.extra"
        extra.mkdir(exist_ok=True)
        description = _description(loaded, proof, specs, top=top, max_length=max_length)
        _write_json(extra / "signature.json", description)
        _write_json(extra / "proof.json", proof.record)
    say(
        "Proved on {texts} texts in {requests} requests: largest difference {largest_difference:.1e} of the output's "
        "largest value (allowed: {bound:.0e}).".format(**proof.record)
    )
    say(f"Exported version {target.name} to {target}. To serve it here: keras-bert serve {target.parent}")
    return target


def _version_directory(target: Path, version: int | None) -> Path:
    if target.exists() and not target.is_dir():
        raise InputError(f"`target_dir` must be a directory. Received: {str(target)!r}, which is a file")
    if (target / "saved_model.pb").is_file():
        raise InputError(
            "`target_dir` must be a directory of numbered versions. "
            f"Received: {str(target)!r}, which is a version itself: give the one above"
        )
    if version is None:
        numbers = [int(path.name) for path in target.glob("*") if path.name.isascii() and path.name.isdigit()]
        version = max(numbers, default=0) + 1
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(f"`version` must be a positive whole number. Received: version={version!r}")
    if (target / str(version)).exists():
        raise InputError(f"`version` must be new. Received: version={version}, which {str(target)!r} has")
    return target / str(version)


def _checked_max_length(max_length: int | None, positions: int) -> int:
    if max_length is None:
        return positions
    if isinstance(max_length, bool) or not isinstance(max_length, int) or not 3 <= max_length <= positions:
        raise InputError(
            f"`max_length` must be at least 3 and at most the model's {positions} positions. "
            f"Received: max_length={max_length!r}"
        )
    return max_length


_Specs = dict[str, dict[str, dict[str, Any]]]
"""By signature: the inputs and the outputs, each by name with dtype and shape."""


def _write(loaded: LoadedModel, folder: Path, *, top: int, max_length: int) -> _Specs:
    tokenizer = InGraphWordPiece(loaded.tokenizer)
    signatures = Signatures(loaded, tokenizer, top=top, max_length=max_length)
    archive = keras.export.ExportArchive()
    # Not the model: the variables that a signature uses are saved anyway, and those of a tracked model once more.
    archive.track(tokenizer)
    specs = {}
    for name, (function, inputs) in signatures.endpoints().items():
        endpoint = archive.add_endpoint(name, function, inputs)
        outputs = endpoint.get_concrete_function().structured_outputs
        specs[name] = {
            "inputs": {spec.name: _describe(spec) for spec in inputs},
            "outputs": {output: _describe(outputs[output]) for output in sorted(outputs)},
        }
    archive.write_out(str(folder), verbose=False)
    return specs


def _describe(spec: tf.TensorSpec) -> dict[str, Any]:
    return {"dtype": spec.dtype.name, "shape": [-1 if size is None else size for size in spec.shape]}


def _description(loaded: LoadedModel, proof: Proof, specs: _Specs, *, top: int, max_length: int) -> dict[str, Any]:
    """What a client needs to know, with a request for each signature and its right answer."""
    tokenizer = loaded.tokenizer
    return {
        "architecture": type(loaded.model).__name__,
        "config": loaded.model.config.to_dict(),
        "tokenizer": {"vocab_size": tokenizer.vocab_size, **tokenizer.options},
        "weights_sha256": _sha256(loaded.directory / "model.safetensors"),
        "top": top,
        "max_length": max_length,
        "truncation": f"a text of more than {max_length - 2} pieces keeps its first ones, and `truncated` is true",
        "padding": f"positions with id {tokenizer.pad_token_id} are padding",
        "signatures": {name: {**specs[name], "example": _example(name, proof)} for name in specs},
    }


def _example(signature: str, proof: Proof) -> dict[str, Any]:
    inputs = {name: _json_array(array) for name, array in proof.example_inputs[signature].items()}
    outputs = proof.example_outputs[signature]
    if signature == "serving_default":
        request = {"instances": inputs["text"]}
        outputs = {name: array.astype(object) if array.dtype.kind == "S" else array for name, array in outputs.items()}
        return {"request": request, "answer": json.loads(write_outputs(outputs, row_form=True))}
    # The large outputs would make the file unreadable.
    shown = {name: outputs[name].tolist() for name in ("mask_positions", "nsp_logits") if name in outputs}
    return {"request": {"signature_name": signature, "inputs": inputs}, "answer_in_part": {"outputs": shown}}


def _json_array(array: np.ndarray) -> list[Any]:
    return np.char.decode(array, "utf-8").tolist() if array.dtype.kind == "S" else array.tolist()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
