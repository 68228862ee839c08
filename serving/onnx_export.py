"""Turns a pretrained model into an ONNX file that takes ids.

The graph is written from the layers, node by node. Of the converters, tf2onnx (1.17.0) is in want of a maintainer, and
its optimizer joins two reshapes of a Keras 3 model that do not go together: what it writes fails when it is run.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_bert_impl.atomic import atomic_directory, check_new_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra

from .description import LARGE_OUTPUTS, json_array, model_facts, purpose, write_json
from .kinds import FILL_MASK, kind_of
from .proof.prove_onnx import SIGNATURE, OnnxProof, prove_onnx

FILE = "model.onnx"
OLDEST_OPSET = 17
"""The first with layer normalisation as one operator."""

# Protocol buffers end at 2 GiB; what is not weights takes far less than the rest.
_MOST_WEIGHTS_INSIDE = 2**31 - 2**24
_NEEDED = ("onnx", "onnxruntime")


def export_onnx(
    model_dir: str | os.PathLike[str],
    target_dir: str | os.PathLike[str],
    *,
    max_length: int | None = None,
    opset: int = OLDEST_OPSET,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Writes `TARGET/model.onnx`, after it has proved itself in ONNX Runtime.

    It takes `token_ids` and `segment_ids`, int32, `(batch, sequence)`, both free, and answers as the id signature of
    `export_saved_model` does. Beside it lie the tokenizer's files; `signature.json`, which has inputs and outputs with
    an example; `proof.json`, which has what was compared; and the weights in a file of their own if they are too large
    for one of ONNX's.

    Args:
        model_dir: model directory, or run directory.
        target_dir: new or empty directory.
        max_length: ids that a row may have, with `[CLS]` and `[SEP]`, as `signature.json` tells clients; what the model
            was trained with, if its directory says so, else its positions, when not given.
        opset: version of ONNX's operators.
        say: receives the lines for the user.

    Returns:
        The file.

    Raises:
        InputError: if the model cannot be read, an argument is out of range, the directory has content, or what the
            extra `onnx` brings is not installed.
        ExportError: if the file does not answer as the model does; nothing is put in place.
    """
    check_extra("An export as ONNX", "onnx", _NEEDED)
    _check_opset(opset)
    target = check_new_directory(target_dir, "target_dir")
    kind = kind_of(model_dir)
    # Answers are compared in float32 as the CPU computes it, so the model is read there.
    with tf.device("CPU:0"):
        loaded = kind.load(model_dir, max_length)
    told = purpose(kind.name, loaded.task_name)
    say(f"Read {loaded.num_parameters:,} parameters from {loaded.directory}, a model for {told}.")
    for line in loaded.notes:
        say(line)
    with tf.device("CPU:0"):
        comparison = kind.comparison(loaded, **({"top": 1} if kind is FILL_MASK else {}))

    # Only here, since these need the extra.
    from .onnx_graph.answers import INPUTS, answers
    from .onnx_graph.graph import Graph

    with atomic_directory(target) as folder:
        graph = Graph()
        outputs = answers(graph, kind, loaded)
        with_weights_apart = graph.weight_bytes > _MOST_WEIGHTS_INSIDE
        graph.write(folder / FILE, INPUTS, outputs, opset=opset, with_weights_apart=with_weights_apart)
        loaded.tokenizer.save_pretrained(folder)
        say("Proving it: a process with ONNX Runtime alone runs it, and the Keras model answers the same.")
        proof = prove_onnx(folder / FILE, comparison)
        specs = {
            "inputs": {tensor.value: tensor.description for tensor in INPUTS},
            "outputs": {name: outputs[name].description for name in sorted(outputs)},
        }
        description = {
            "kind": kind.name,
            **model_facts(loaded),
            "opset": opset,
            "max_length": loaded.max_length,
            "padding": f"positions with id {loaded.tokenizer.pad_token_id} are padding",
            "signatures": {SIGNATURE: {**specs, "example": _example(proof)}},
        }
        write_json(folder / "signature.json", description)
        write_json(folder / "proof.json", proof.record)
    say(
        "Proved on {texts} texts in {requests} requests: largest difference {largest_difference:.1e} of the output's "
        "largest value (allowed: {bound:.0e}).".format(**proof.record)
    )
    say(f"Exported to {target / FILE}, which takes {' and '.join(specs['inputs'])}.")
    return target / FILE


def _check_opset(opset: Any) -> None:
    from onnx.defs import onnx_opset_version

    newest = onnx_opset_version()
    if isinstance(opset, bool) or not isinstance(opset, int) or not OLDEST_OPSET <= opset <= newest:
        raise InputError(
            f"`opset` must be a whole number from {OLDEST_OPSET} to {newest}, the newest that is installed. "
            f"Received: opset={opset!r}"
        )


def _example(proof: OnnxProof) -> dict[str, Any]:
    outputs = {
        name: json_array(array) for name, array in sorted(proof.example_outputs.items()) if name not in LARGE_OUTPUTS
    }
    return {
        "request": {"inputs": {name: json_array(array) for name, array in proof.example_inputs.items()}},
        "answer" if len(outputs) == len(proof.example_outputs) else "answer_in_part": {"outputs": outputs},
    }
