"""Proves an export: its answers, given in a clean process through a graph session, are the Keras model's.

The Keras side goes its own way from the text on: the Python tokenizer, one text at a time. Ids are sent with both
segments, texts with one.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from .loaded_model import LoadedModel, Row

BOUND = 1e-5
"""Largest difference allowed, as a share of the output's largest absolute value."""

_RUNNER = Path(__file__).with_name("run_export.py")
_FORBIDDEN_IMPORTS = ("keras_bert_impl", "tensorflow_text")
_TEXTS = (
    "the [MASK] sat on the mat.",
    "[MASK] and [MASK]; or neither of them?",
    "no mask stands here",
    "",
    " \t\r\n ",
    "ÇA coûte 5 € à l'ÉCOLE, naïvely: [MASK]",
    "今天天气很[MASK]，我们去公园。",
    "ひらがなとカタカナ 한국어 [MASK] עברית العربية हिन्दी",
    "e\u0301 \u0130stanbul ΟΔΟΣ ﬁ ½ \U0001f469\u200d\U0001f4bb \x00\x07\ufffd\u200b [MASK]",
    "[mask] [ MASK ] [CLS] [SEP] [UNK] unaffable!!!",
    "x" * 250 + " [MASK] " + "ab" * 40,
    "a " * 40 + "[MASK] " + "word piece " * 60,
    "[MASK] " + "again and again " * 300,
)


class ExportError(Exception):
    """The export does not answer as the model does."""


_Arrays = dict[str, dict[str, np.ndarray]]
"""By `CASE/SIGNATURE`, then by name of input or output."""


class Proof(NamedTuple):
    """What was compared.

    Attributes:
        record: differences and circumstances, as plain JSON values.
        example_inputs: by signature, the first request.
        example_outputs: by signature, the export's answer to it.
    """

    record: dict[str, Any]
    example_inputs: _Arrays
    example_outputs: _Arrays


def prove(export: Path, loaded: LoadedModel, *, top: int, max_length: int) -> Proof:
    """Runs an export on example texts and compares.

    Args:
        export: version directory.
        loaded: the model that was exported.
        top: candidates per mask.
        max_length: ids that a text may have.

    Raises:
        ExportError: if a difference is larger than `BOUND`, or the export cannot be run.
    """
    texts = [text.replace("[MASK]", loaded.tokenizer.mask_token) for text in _TEXTS]
    rows = [loaded.row(text, max_length) for text in texts]
    expected = {
        "serving_default": [_keras_outputs(loaded, loaded.inputs([row])) for row in rows],
        "token_ids": [_keras_outputs(loaded, _as_pairs(loaded, [row])) for row in rows],
    }
    arrays = [array for of_texts in expected.values() for of_text in of_texts for array in of_text.values()]
    if not all(np.isfinite(array).all() for array in arrays):
        raise ExportError("The export was not put in place: the model itself gives values that are not numbers")
    requests: _Arrays = {}
    chosen: dict[str, list[int]] = {}
    for case, members in _cases(len(texts)):
        chosen[case] = members
        requests[f"{case}/serving_default"] = {"text": np.array([texts[i].encode("utf-8") for i in members])}
        inputs = _as_pairs(loaded, [rows[i] for i in members])
        requests[f"{case}/token_ids"] = {name: inputs[name] for name in ("token_ids", "segment_ids")}
    answers, modules = _run(export, requests)
    found: dict[str, float] = {}
    for key, answer in answers.items():
        case, signature = key.split("/")
        compare = _compare_fill_mask if signature == "serving_default" else _compare_encoding
        for position, i in enumerate(chosen[case]):
            of_text = {name: array[position] for name, array in answer.items()}
            for name, difference in compare(of_text, rows[i], expected[signature][i], loaded, top).items():
                name = f"{signature}/{name}"
                found[name] = max(found.get(name, 0.0), difference)
    scales = {f"{signature}/{name}": scale for signature in expected for name, scale in _scales(expected[signature])}
    differences = {name: found[name] / scales.get(name, 1.0) for name in sorted(found)}
    worst = max(differences, key=lambda name: differences[name])
    if differences[worst] > BOUND:
        raise ExportError(
            f"The export was not put in place: {worst} differs from the Keras model by {differences[worst]:.1e} of its "
            f"largest absolute value, more than {BOUND:.0e}"
        )
    record = {
        "largest_difference": differences[worst],
        "bound": BOUND,
        "measured_as": "largest absolute difference, divided by the output's largest absolute value over all texts; "
        "of probabilities besides by the largest logit, if that is over 1",
        "differences": differences,
        "texts": len(texts),
        "requests": len(requests),
        "loaded_through": "tf.compat.v1.Session",
        "tensorflow": tf.__version__,
        "not_imported": [name for name in _FORBIDDEN_IMPORTS if name not in modules],
    }
    examples = [
        {key.removeprefix("alone_0/"): value for key, value in side.items() if key.startswith("alone_0/")}
        for side in (requests, answers)
    ]
    return Proof(record, *examples)


def _cases(count: int) -> Iterator[tuple[str, list[int]]]:
    """Every text alone, then mixed batches. The last text is the longest, and costs most where others are filled up."""
    for i in range(count):
        yield f"alone_{i}", [i]
    yield "all_but_the_longest", list(range(count - 1))
    yield "with_the_longest", [3, count - 1, 0]
    yield "without_masks", [2, 3, 4]


def _as_pairs(loaded: LoadedModel, rows: list[Row]) -> dict[str, np.ndarray]:
    """The model's inputs for rows whose second half is a second text."""
    inputs = loaded.inputs(rows)
    is_token = inputs["padding_mask"] == 1
    is_second = np.cumsum(is_token, axis=1) > is_token.sum(axis=1, keepdims=True) // 2
    last_segment = min(1, loaded.model.config.type_vocab_size - 1)
    return inputs | {"segment_ids": (is_second & is_token).astype("int32") * last_segment}


def _keras_outputs(loaded: LoadedModel, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The model's outputs for a batch of one row."""
    encoder_inputs = {name: inputs[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    outputs = {
        **loaded.model.encoder(encoder_inputs, training=False),
        **loaded.model(inputs, training=False),
    }
    return {name: keras.ops.convert_to_numpy(keras.ops.cast(value, "float32"))[0] for name, value in outputs.items()}


def _run(export: Path, requests: _Arrays) -> tuple[_Arrays, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "requests.npz", Path(folder) / "answers.npz"]
        named: dict[str, Any] = {
            f"{key}/{name}": array for key, case in requests.items() for name, array in case.items()
        }
        np.savez(files[0], **named)
        # On the CPU, where float32 products are not shortened; -P: no folder of ours on the import path.
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-P", str(_RUNNER), str(export), *map(str, files)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if result.returncode:
            last = result.stderr.strip().splitlines()[-1:]
            raise ExportError(f"The export was not put in place: it cannot be run by TensorFlow alone: {''.join(last)}")
        answers: _Arrays = {}
        with np.load(files[1], allow_pickle=False) as arrays:
            modules = arrays["modules"].tolist()
            for name in arrays.files:
                if name != "modules":
                    key, _, output = name.rpartition("/")
                    answers.setdefault(key, {})[output] = arrays[name]
    if imported := sorted(set(modules) & set(_FORBIDDEN_IMPORTS)):
        raise ExportError(f"The export was not put in place: its proof imported {', '.join(imported)}")
    return answers, modules


def _scales(outputs: list[dict[str, np.ndarray]]) -> Iterator[tuple[str, float]]:
    """The largest absolute value of each output over all texts."""
    scales = {name: max(float(np.abs(of_text[name]).max(initial=0)) for of_text in outputs) for name in outputs[0]}
    logit = scales["mlm_logits"]
    likeliest = max(float(_softmax(of_text["mlm_logits"]).max(initial=0)) for of_text in outputs)
    # A softmax makes a difference of logits as much larger as the logits are.
    scales |= {"top_logits": logit, "top_token_ids": logit, "top_probabilities": likeliest * max(1.0, logit)}
    for name, scale in scales.items():
        yield name, max(scale, float(np.finfo("float32").tiny))


def _compare_fill_mask(
    answer: dict[str, np.ndarray], row: Row, outputs: dict[str, np.ndarray], loaded: LoadedModel, top: int
) -> dict[str, float]:
    masks = len(row.mask_positions)
    logits = outputs["mlm_logits"]
    ids = answer["top_token_ids"][:masks]
    best = np.sort(logits, axis=-1)[:, ::-1][:, :top]
    vocabulary = np.array([*loaded.tokenizer.vocabulary, *[""] * (logits.shape[-1] - loaded.tokenizer.vocab_size)])
    unused = bool(np.all(answer["top_token_ids"][masks:] == -1) and not answer["top_logits"][masks:].any())
    return {
        "mask_positions": _exactly(_same_masks(answer["mask_positions"], row)),
        "num_tokens": _exactly(answer["num_tokens"] == len(row.token_ids)),
        "truncated": _exactly(answer["truncated"] == row.truncated),
        "unused_masks": _exactly(unused),
        "top_tokens": _exactly(np.array_equal(np.char.decode(answer["top_tokens"][:masks], "utf-8"), vocabulary[ids])),
        # Two tokens may change places where their logits are closer than the bound.
        "top_token_ids": _difference(np.take_along_axis(logits, ids, -1), best),
        "top_logits": _difference(answer["top_logits"][:masks], best),
        "top_probabilities": _difference(
            answer["top_probabilities"][:masks], np.take_along_axis(_softmax(logits), ids, -1)
        ),
    }


def _compare_encoding(
    answer: dict[str, np.ndarray], row: Row, outputs: dict[str, np.ndarray], loaded: LoadedModel, top: int
) -> dict[str, float]:
    used = {"mlm_logits": len(row.mask_positions), "sequence_output": len(row.token_ids)}
    differences = {"mask_positions": _exactly(_same_masks(answer["mask_positions"], row))}
    for name in answer.keys() - {"mask_positions"}:
        differences[name] = _difference(answer[name][: used.get(name)], outputs[name])
    return differences


def _same_masks(positions: np.ndarray, row: Row) -> bool:
    padded = row.mask_positions + [-1] * (len(positions) - len(row.mask_positions))
    return positions.tolist() == padded


def _exactly(same: bool) -> float:
    return 0.0 if same else np.inf


def _difference(answer: np.ndarray, expected: np.ndarray) -> float:
    """The largest absolute difference; infinite where the shapes differ or a value is not a number."""
    if answer.shape != expected.shape:
        return np.inf
    largest = float(np.abs(answer - expected).max(initial=0))
    return largest if np.isfinite(largest) else np.inf


def _softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits.astype("float64") - logits.max(-1, keepdims=True, initial=-np.inf))
    return exponentials / exponentials.sum(-1, keepdims=True)
