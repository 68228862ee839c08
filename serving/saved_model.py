"""Turns a pretrained model into a SavedModel that an unmodified TensorFlow Serving loads."""

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
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from . import warm_up
from .description import LARGE_OUTPUTS, json_array, model_facts, purpose, write_json
from .kinds import FILL_MASK, kind_of
from .loaded_model import LoadedModel, checked_top
from .measurements import measurements
from .model_card import FILE as CARD
from .model_card import model_card
from .proof.prove import Proof, prove
from .server.rest.tensors import write_outputs
from .signatures.signatures import Signatures

_USUAL_TOP = 5
# Requests are written with a model's name, though a version is warmed up under any.
_MODEL_NAME = "bert"


def export_saved_model(
    model_dir: str | os.PathLike[str],
    target_dir: str | os.PathLike[str],
    *,
    top: int | None = None,
    version: int | None = None,
    max_length: int | None = None,
    tokenizer_ops: str = "core",
    attention: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Writes `TARGET/VERSION/`, after it has proved itself.

    What the model is decides what the signatures answer; see `keras_bert_impl.serving.signatures`. `signature.json`
    in the version's `assets.extra`, which servers pass over, has their inputs and outputs with an example, and
    `proof.json` what was compared.

    Args:
        model_dir: model directory, or run directory.
        target_dir: directory of numbered versions, made if absent.
        top: candidates per mask in the answer of a masked language model; 5 when not given.
        version: number of the version; the next free one when not given.
        max_length: ids that a row may have, with `[CLS]` and `[SEP]`; what the model was trained with, if its
            directory says so, else its positions, when not given.
        tokenizer_ops: `"core"` for a tokenizer of TensorFlow's own operations, which every server has; `"text"` for a
            faster one that needs some of tensorflow-text, which `signature.json` names.
        attention: whether there is a signature `attention`, which shows what the encoder looks at. Its answers grow
            with the square of a text's length.
        say: receives the lines for the user.

    Returns:
        The version directory.

    Raises:
        InputError: if the model cannot be read, an argument is out of range or the version exists.
        ExportError: if the export does not answer as the model does; nothing is put in place.
    """
    if not os.fspath(target_dir):
        raise InputError("`target_dir` must name a directory. Received: target_dir=''")
    target = _version_directory(Path(target_dir), version)
    places = [target]

    def next_place() -> Path:
        places.append(_version_directory(Path(target_dir), None))
        return places[-1]

    kind = kind_of(model_dir)
    if top is not None and kind is not FILL_MASK:
        raise InputError(
            f"`top` must be left out but for a model that fills masks. Received: top={top!r}, a model for {kind.name}"
        )
    if tokenizer_ops not in ("core", "text"):
        raise InputError(f"`tokenizer_ops` must be core or text. Received: tokenizer_ops={tokenizer_ops!r}")
    # Answers are compared in float32 as the CPU computes it, so the model is read there.
    with tf.device("CPU:0"):
        loaded = kind.load(model_dir, max_length)
    options = {"top": checked_top(_USUAL_TOP if top is None else top, loaded.model)} if kind is FILL_MASK else {}
    say(f"Read {loaded.num_parameters:,} parameters from {loaded.directory}.")
    if kind is not FILL_MASK:
        told = purpose(kind.name, loaded.task_name)
        say(f"It is a model for {told}: requests give {' and '.join(loaded.text_inputs)}.")
    for line in loaded.notes:
        say(line)
    with tf.device("CPU:0"):
        comparison = kind.comparison(loaded, **options)
        if attention:
            comparison.expect_attention()

    with atomic_directory(target, if_taken=next_place if version is None else None) as folder:
        tokenizer = _in_graph(loaded.tokenizer, tokenizer_ops)
        signatures = kind.signatures(loaded, tokenizer, **options)
        specs = _write(signatures, tokenizer, folder, attention)
        alone = "TensorFlow alone" if tokenizer_ops == "core" else "TensorFlow and tensorflow-text"
        say(f"Proving it: a process with {alone} runs each signature, and the Keras model answers the same.")
        proof = prove(folder, comparison, text_ops=tokenizer_ops == "text")
        extra = folder / "assets.extra"
        extra.mkdir(exist_ok=True)
        description = {"kind": kind.name, **_description(loaded, signatures, options, proof, specs)}
        write_json(extra / "signature.json", description)
        write_json(extra / "proof.json", proof.record)
        warm_up.write(folder, _MODEL_NAME, proof.warm_up)
        card = model_card(
            description,
            proof.record,
            vocabulary=loaded.tokenizer.vocabulary,
            measured=measurements(loaded.directory),
            warm_up_requests=len(proof.warm_up),
        )
        (extra / CARD).write_text(card, encoding="utf-8")
    say(
        "Proved on {texts} texts in {requests} requests: largest difference {largest_difference:.1e} of the output's "
        "largest value (allowed: {bound:.0e}).".format(**proof.record)
    )
    target = places[-1]
    if other_ops := proof.record["other_ops"]:
        say(f"A server needs these operations of tensorflow-text: {', '.join(other_ops)}.")
    say(f"Exported version {target.name} to {target}. To serve it here: keras-bert serve {target.parent}")
    return target


def _version_directory(target: Path, version: int | None) -> Path:
    there = next((path for path in (target, *target.parents) if os.path.lexists(path)), target)
    if there.exists() and not there.is_dir():
        below = "which is" if there == target else f"below {str(there)!r}, which is"
        raise InputError(f"`target_dir` must be a directory. Received: {str(target)!r}, {below} a file")
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


def _in_graph(tokenizer: WordPieceTokenizer, ops: str) -> InGraphWordPiece:
    if ops == "core":
        return InGraphWordPiece(tokenizer)
    from keras_bert_impl.tokenization.in_graph_text_ops import TextOpsWordPiece

    return TextOpsWordPiece(tokenizer)


_Specs = dict[str, dict[str, dict[str, Any]]]
"""By signature: the inputs and the outputs, each by name with dtype and shape."""


def _write(signatures: Signatures, tokenizer: InGraphWordPiece, folder: Path, attention: bool) -> _Specs:
    archive = keras.export.ExportArchive()
    # Not the model: the variables that a signature uses are saved anyway, and those of a tracked model once more.
    archive.track(tokenizer)
    endpoints = signatures.endpoints()
    if attention:
        endpoints["attention"] = signatures.attention_endpoint()
    specs = {}
    for name, (function, inputs) in endpoints.items():
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


def _description(
    loaded: LoadedModel, signatures: Signatures, options: dict[str, Any], proof: Proof, specs: _Specs
) -> dict[str, Any]:
    """What a client needs to know, with a request for each signature and its right answer."""
    return {
        **model_facts(loaded),
        "other_ops": proof.record["other_ops"],
        **options,
        "max_length": loaded.max_length,
        "truncation": f"{signatures.truncation}, and `truncated` is true",
        "padding": f"positions with id {loaded.tokenizer.pad_token_id} are padding",
        "signatures": {name: {**specs[name], "example": _example(name, proof)} for name in specs},
    }


def _example(signature: str, proof: Proof) -> dict[str, Any]:
    inputs = {name: json_array(array) for name, array in proof.example_inputs[signature].items()}
    outputs = proof.example_outputs[signature]
    if signature == "serving_default":
        rows = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
        request: dict[str, Any] = {"instances": inputs["text"] if inputs.keys() == {"text"} else rows}
        return {"request": request, "answer": json.loads(write_outputs(_as_objects(outputs), row_form=True))}
    request = {"signature_name": signature, "inputs": inputs}
    shown = {name: array for name, array in sorted(outputs.items()) if name not in LARGE_OUTPUTS}
    if len(shown) == len(outputs):
        return {"request": request, "answer": json.loads(write_outputs(_as_objects(outputs), row_form=False))}
    return {
        "request": request,
        "answer_in_part": {"outputs": {name: json_array(array) for name, array in shown.items()}},
    }


def _as_objects(outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array.astype(object) if array.dtype.kind == "S" else array for name, array in outputs.items()}
