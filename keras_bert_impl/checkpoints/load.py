"""Reading the tensors of a checkpoint into a model, all of them or none."""

from collections.abc import Collection
from typing import Any

from keras_bert_impl.checkpoints.architecture import HEADS, Shape, part_of
from keras_bert_impl.checkpoints.checkpoint import WEIGHT_DTYPES, Checkpoint, checked_parts
from keras_bert_impl.checkpoints.load_report import LoadReport, WrongShape, listed, remedy
from keras_bert_impl.errors import InputError

_HALF = ("float16", "bfloat16")


def compare(checkpoint: Checkpoint, expected: dict[str, Shape]) -> LoadReport:
    """Returns what a load of these tensors into a model of these shapes would do.

    Args:
        checkpoint: what there is.
        expected: what the model needs, from `architecture.tensor_shapes`.
    """
    loaded, widened = [], []
    wrong = [
        WrongShape(tensor.name, tensor.shape, tensor.stored_shape(expected[key]), key)
        for key, tensor in checkpoint.tensors.items()
        if key in expected and tensor.shape != tensor.stored_shape(expected[key])
    ]
    refused = {one.key for one in wrong}
    for key, tensor in checkpoint.tensors.items():
        if key in expected and key not in refused:
            loaded.append(tensor.name)
            if tensor.dtype in _HALF:
                widened.append((tensor.name, tensor.dtype))
    return LoadReport(
        source=checkpoint.source,
        format=checkpoint.format,
        loaded=tuple(loaded),
        newly_initialised=tuple(key for key in expected if key not in checkpoint.tensors),
        unused=tuple(tensor.name for key, tensor in checkpoint.tensors.items() if key not in expected),
        wrong_shape=tuple(wrong),
        widened=tuple(widened),
        passed_over=checkpoint.passed_over,
        ignored_config_keys=checkpoint.ignored_config_keys,
        inexact=tuple(one for one in checkpoint.inexact if one[0] in {part_of(key) for key in expected}),
    )


def checked_load(
    checkpoint: Checkpoint,
    expected: dict[str, Shape],
    *,
    allow_missing: Collection[str] = (),
    allow_unused: Collection[str] = (),
    allow_inexact: Collection[str] = (),
) -> tuple[Checkpoint, LoadReport]:
    """Returns the checkpoint without what is not to be read, and the report; nothing is read yet.

    Args:
        checkpoint: what there is.
        expected: what the model needs, from `architecture.tensor_shapes`.
        allow_missing: of `HEADS`, parts that may be absent as a whole and start fresh.
        allow_unused: parts, or first words of names, that may be left.
        allow_inexact: of `HEADS`, parts whose weights are taken although they compute something else there.

    Raises:
        InputError: if anything is left over that is not named as allowed.
    """
    report = compare(checkpoint, expected)
    _check_dtypes(checkpoint, expected)
    _check_shapes(report)
    _check_missing(report, checkpoint, checked_parts("allow_missing", allow_missing))
    _check_unused(report, checkpoint, expected, allow_unused)
    _check_exact(report, checked_parts("allow_inexact", allow_inexact))
    return checkpoint.with_tensors(
        {key: checkpoint.tensors[key] for key in checkpoint.tensors if key in expected}
    ), report


def read_into(checkpoint: Checkpoint, places: dict[str, Any]) -> None:
    """Reads the tensors into their places, and draws fresh values where there is none.

    Args:
        checkpoint: from `checked_load`.
        places: from `places.places`.
    """
    for key, place in places.items():
        tensor = checkpoint.tensors.get(key)
        if tensor is None:
            place.start_fresh()
        else:
            place.read(tensor.read(), tensor.transposed)


def _check_dtypes(checkpoint: Checkpoint, expected: dict[str, Shape]) -> None:
    for key, tensor in checkpoint.tensors.items():
        if key in expected and tensor.dtype not in WEIGHT_DTYPES:
            raise InputError(
                f"`path` must hold weights in {', '.join(WEIGHT_DTYPES)}. "
                f"Received: {checkpoint.source!r}, {tensor.name} is {tensor.dtype}"
            )


def _check_shapes(report: LoadReport) -> None:
    if not report.wrong_shape:
        return
    one = report.wrong_shape[0]
    part = part_of(one.key)
    raise InputError(
        f"`path` must hold tensors of the model's shapes. Received: {report.source!r}, "
        f"{one.name} is {one.stored} in the file and {one.expected} in the model"
        + (f", and {len(report.wrong_shape) - 1} more" if len(report.wrong_shape) > 1 else "")
        + remedy(one.key)
        + (f"; `fresh={(part,)!r}` starts it with fresh values" if part in HEADS else "")
    )


def _check_missing(report: LoadReport, checkpoint: Checkpoint, allowed: Collection[str]) -> None:
    # Half a head is no head: it starts fresh only where all of it is absent.
    can_start_fresh = set(HEADS) - set(checkpoint.parts)
    if refused := [name for name in report.newly_initialised if part_of(name) not in can_start_fresh & set(allowed)]:
        parts = sorted({part_of(name) for name in refused})
        hint = f"; `allow_missing={tuple(parts)!r}` starts with fresh ones" if set(parts) <= can_start_fresh else ""
        raise InputError(
            f"`path` must hold every tensor of the model. Received: {report.source!r}, "
            f"which lacks {listed(refused)} ({', '.join(parts)}){hint}"
        )


def _check_unused(
    report: LoadReport, checkpoint: Checkpoint, expected: dict[str, Shape], allowed: Collection[str]
) -> None:
    refused = {
        tensor.name: part_of(key)
        for key, tensor in checkpoint.tensors.items()
        if key not in expected and not {part_of(key), key.split(".")[0]} & set(allowed)
    }
    if refused:
        parts = tuple(dict.fromkeys(refused.values()))
        hint = f"; `allow_unused={parts!r}` leaves them" if "encoder" not in parts else ""
        raise InputError(
            f"`path` must hold no tensor that the model has no place for. Received: {report.source!r}, "
            f"which also has {listed(refused)}{hint}"
        )


def _check_exact(report: LoadReport, allowed: Collection[str]) -> None:
    for part, reason in report.inexact:
        if part not in allowed:
            raise InputError(
                f"`path` must hold heads that compute what they do here. Received: {report.source!r}, {reason}; "
                f"`allow_inexact={(part,)!r}` takes its weights all the same"
            )
