"""Proves an export: its answers, given in a clean process through a graph session, are the Keras model's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from .clean_process import FORBIDDEN_IMPORTS, Arrays, ExportError, run
from .comparison import Comparison

BOUND = 1e-5
"""Largest difference allowed, as a share of the output's largest absolute value."""


class Proof(NamedTuple):
    """What was compared.

    Attributes:
        record: differences and circumstances, as plain JSON values.
        example_inputs: by signature, the first request.
        example_outputs: by signature, the export's answer to it.
    """

    record: dict[str, Any]
    example_inputs: Arrays
    example_outputs: Arrays


def prove(export: Path, comparison: Comparison) -> Proof:
    """Runs an export on example texts, each alone and in mixed batches, and compares.

    Args:
        export: version directory.
        comparison: the example texts, with the model's answers.

    Raises:
        ExportError: if a difference is larger than `BOUND`, or the export cannot be run.
    """
    requests: Arrays = {}
    chosen: dict[str, list[int]] = {}
    for case, members in _cases(comparison.count):
        chosen[case] = members
        for signature in comparison.expected:
            requests[f"{case}/{signature}"] = comparison.request(signature, members)
    answers, modules = run(export, requests)
    found: dict[str, float] = {}
    for key, answer in answers.items():
        case, signature = key.split("/")
        for position, i in enumerate(chosen[case]):
            of_text = {name: array[position] for name, array in answer.items()}
            for name, difference in comparison.differences(signature, of_text, i).items():
                name = f"{signature}/{name}"
                found[name] = max(found.get(name, 0.0), difference)
    scales = {
        f"{signature}/{name}": scale
        for signature in comparison.expected
        for name, scale in comparison.scales(signature)
    }
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
        "texts": comparison.count,
        "requests": len(requests),
        "loaded_through": "tf.compat.v1.Session",
        "tensorflow": tf.__version__,
        "not_imported": [name for name in FORBIDDEN_IMPORTS if name not in modules],
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
    yield "short_ones", [2, 3, 4]
