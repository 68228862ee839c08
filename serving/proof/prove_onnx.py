"""Proves an ONNX model: its answers, given by ONNX Runtime in a clean process, are the Keras model's."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .clean_process import in_clean_process
from .comparison import Comparison
from .prove import compared, first_of, requests_for, usual_cases

SIGNATURE = "token_ids"
"""The signature of a SavedModel that takes what an ONNX model takes."""

_RUNNER = Path(__file__).with_name("run_onnx.py")
_FORBIDDEN = ("keras_bert_impl", "keras", "tensorflow")


class OnnxProof(NamedTuple):
    """What was compared.

    Attributes:
        record: differences and circumstances, as plain JSON values.
        example_inputs: of one row, by name.
        example_outputs: the model's answer to them.
    """

    record: dict[str, Any]
    example_inputs: dict[str, np.ndarray]
    example_outputs: dict[str, np.ndarray]


def prove_onnx(model: Path, comparison: Comparison) -> OnnxProof:
    """Runs a model on the ids of example texts, each alone and in mixed batches, and compares.

    Args:
        model: the ONNX file.
        comparison: the example texts, with the Keras model's answers.

    Raises:
        ExportError: if a difference is larger than `prove.BOUND`, or the model cannot be run.
    """
    cases = usual_cases(comparison)
    requests = requests_for(comparison, cases, [SIGNATURE])
    answers, facts = in_clean_process(_RUNNER, model, requests, alone="ONNX Runtime", forbidden=_FORBIDDEN)
    record = {
        **compared(comparison, cases, requests, answers),
        "onnxruntime": facts["version"][0],
        "not_imported": [name for name in _FORBIDDEN if name not in facts["modules"]],
    }
    return OnnxProof(record, first_of(requests)[SIGNATURE], first_of(answers)[SIGNATURE])
