"""Proves an export: its answers, given in a clean process through a graph session, are the Keras model's."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from ..warm_up import Request
from .clean_process import FORBIDDEN_IMPORTS, Arrays, ExportError, run
from .comparison import Comparison

BOUND = 1e-5
"""Largest difference allowed, as a share of the output's largest absolute value."""

_MANY = 32
"""Rows of the largest batch, which is as many as servers are told to join."""


class Proof(NamedTuple):
    """What was compared.

    Attributes:
        record: differences and circumstances, as plain JSON values.
        example_inputs: by signature, the first request.
        example_outputs: by signature, the export's answer to it.
        warm_up: requests of several lengths and sizes, all of which were answered right.
    """

    record: dict[str, Any]
    example_inputs: Arrays
    example_outputs: Arrays
    warm_up: list[Request]


def prove(export: Path, comparison: Comparison, *, text_ops: bool = False) -> Proof:
    """Runs an export on example texts, each alone and in mixed batches, and compares.

    Args:
        export: version directory.
        comparison: the example texts, with the model's answers.
        text_ops: whether the export may use tensorflow-text's operations.

    Raises:
        ExportError: if a difference is larger than `BOUND`, or the export cannot be run.
    """
    cases = usual_cases(comparison)
    requests = requests_for(comparison, cases, comparison.expected)
    answers, modules, other_ops = run(export, requests, text_ops=text_ops)
    record = {
        **compared(comparison, cases, requests, answers),
        "loaded_through": "tf.compat.v1.Session",
        "tensorflow": tf.__version__,
        "other_ops": other_ops,
        "not_imported": [name for name in FORBIDDEN_IMPORTS if name not in modules],
    }
    return Proof(record, first_of(requests), first_of(answers), list(_warm_up(requests, comparison)))


Cases = dict[str, list[int]]
"""The numbers of the texts that are asked about together, by the case's name."""


def requests_for(comparison: Comparison, cases: Cases, signatures: Iterable[str]) -> Arrays:
    """Returns the example texts of each case as a request by each of the signatures."""
    return {
        f"{case}/{signature}": comparison.request(signature, members)
        for case, members in cases.items()
        for signature in signatures
    }


def first_of(cases: Arrays) -> Arrays:
    """Returns what the first text alone has, by signature."""
    return {key.removeprefix("alone_0/"): value for key, value in cases.items() if key.startswith("alone_0/")}


def compared(comparison: Comparison, cases: Cases, requests: Arrays, answers: Arrays) -> dict[str, Any]:
    """Compares the answers to all requests with the Keras model's.

    Args:
        comparison: the example texts, with the Keras model's answers.
        cases: those that the requests were made for.
        requests: as `requests_for` made them.
        answers: the export's, by the same names.

    Returns:
        The differences, as plain JSON values.

    Raises:
        ExportError: if one is larger than `BOUND`.
    """
    found: dict[str, float] = {}
    for key in requests:
        case, signature = key.split("/")
        for position, i in enumerate(cases[case]):
            of_text = {name: array[position] for name, array in answers[key].items()}
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
    return {
        "largest_difference": differences[worst],
        "bound": BOUND,
        "measured_as": "largest absolute difference, divided by the output's largest absolute value over all texts; "
        "of probabilities besides by the largest logit, if that is over 1",
        "differences": differences,
        "texts": comparison.count,
        "requests": len(requests),
    }


def usual_cases(comparison: Comparison) -> Cases:
    """Every text alone, then mixed batches. The last text is the longest, and costs most where others are filled up."""
    count = comparison.count
    shorter = sorted(range(count), key=lambda i: len(comparison.rows[i].token_ids))[: count // 2]
    return {
        **{f"alone_{i}": [i] for i in range(count)},
        "all_but_the_longest": list(range(count - 1)),
        "with_the_longest": [3, count - 1, 0],
        "short_ones": [2, 3, 4],
        "many_short_ones": [shorter[i % len(shorter)] for i in range(_MANY)],
    }


def _warm_up(requests: Arrays, comparison: Comparison) -> Iterator[Request]:
    """What a server runs first: a usual text, the longest one, a mixed batch and a large one."""
    cases = ("alone_0", f"alone_{comparison.count - 1}", "all_but_the_longest", "many_short_ones")
    for signature in comparison.expected:
        # Its answers grow with the square of the length, and few ask for them.
        for case in cases[:1] if signature == "attention" else cases:
            yield Request(signature, requests[f"{case}/{signature}"])
