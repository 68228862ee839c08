"""Turns a model into a TFLite file that runs on a phone, with what it costs known before it is put in place."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_bert_impl.atomic import atomic_directory, check_new_directory
from keras_bert_impl.errors import InputError

from ..description import purpose, write_json
from ..fill_mask import FillMask
from ..kinds import Kind, kind_of
from ..loaded_model import LoadedModel, checked_directory
from ..proof.example_texts import PAIRS, QUESTIONS, SINGLE_TEXTS
from .agreement import Asked, short
from .checked_arguments import CALIBRATED, check_arguments, check_installed
from .labelled_texts import LabelledTexts
from .lost_accuracy_error import LostAccuracyError
from .remembered_outputs import remembered_outputs
from .report import JSON_FILE, PAGE_FILE, Report, Variant
from .signature_names import INPUTS
from .text_rows import TextRows, text_rows

FILE, REFUSED_FILE = "model.tflite", "refused.tflite"
USUAL_LENGTH = 128


def export_tflite(
    model_dir: str | os.PathLike[str],
    target_dir: str | os.PathLike[str],
    *,
    quantize: str = "dynamic",
    length: int | str | None = None,
    text_in: bool = False,
    calibration: Sequence[str | Asked] | Callable[[Any], Sequence[Asked]] | None = None,
    calibration_source: str = "the calibration texts",
    labelled: LabelledTexts | Callable[[Any], LabelledTexts] | None = None,
    max_drop: float = 1.0,
    allow_drop: bool = False,
    say: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Report:
    """Writes `TARGET/model.tflite` with `report.json` and `report.md`, if it answers as the Keras model does.

    The file has the vocabulary, the labels and what an app needs to know in it; see `contents`. It is compared with
    the Keras model on the labelled texts, else on the calibration texts, else on built-in examples.

    Args:
        model_dir: model directory, or run directory.
        target_dir: new or empty directory.
        quantize: form of the weights: `"none"` (float32), `"float16"`, `"dynamic"` (weights
            int8, activations in float between products), `"int8"` (both int8, but for what loses by it),
            `"weights-int8"`, `"weights-int4"`.
        length: columns of the inputs; 128, or as many as the model has positions, when not given; `"dynamic"`: free.
        text_in: whether the file takes texts, too, by a second signature; see `text_in.with_text_in`. An app must
            register operators of tensorflow-text for it.
        calibration: texts such as the app will meet, for `"int8"`: single texts, or tuples of what is asked together;
            or a function that returns them for what asks the Keras model.
        calibration_source: what they are, in words.
        labelled: labelled texts with their score, or a function that returns them.
        max_drop: points of 100 of agreement, or of the score, that may be lost.
        allow_drop: whether the file is put in place even if it lost more.
        say: receives the lines for the user.
        **options: of `quantization.quantize`, such as `keep_float`.

    Returns:
        What was seen.

    Raises:
        InputError: if the model cannot be read, an argument is out of range, the directory has content, or what the
            extra `tflite` brings is not installed.
        LostAccuracyError: if it lost more than it may; the file is kept in `TARGET.refused`.
        ExportError: if the graph is wrong; nothing is put in place.
    """
    check_installed()
    check_arguments(quantize, length, calibration is not None, max_drop, text_in)
    from .text_in import check_text_in
    from .variants import Variants  # writes files by LiteRT's schema

    target, refused = _places(target_dir)
    kind = kind_of(model_dir)
    if text_in:
        check_text_in(kind)
    # Answers are compared in float32 as the CPU computes it, so the model is read there.
    with tf.device("CPU:0"), tempfile.TemporaryDirectory() as folder:
        before, loaded = _asked_and_loaded(kind, model_dir)
        told = purpose(kind.name, loaded.task_name)
        say(f"Read {loaded.num_parameters:,} parameters from {loaded.directory}, a model for {told}.")
        for line in loaded.notes:
            say(line)
        columns = _columns(length, loaded)
        texts = _as_asked(calibration(before) if callable(calibration) else calibration or (), loaded)
        judged = labelled(before) if callable(labelled) else labelled
        if (calibration is not None and not texts) or (judged is not None and not judged.texts):
            argument = "calibration" if judged is None or judged.texts else "labelled"
            raise InputError(f"`{argument}` must have one or more texts. Received: none")
        compared, compared_on = _compared(texts, calibration_source, judged, loaded)
        making = Variants(kind, loaded, before, columns, text_in, Path(folder), say)
        with remembered_outputs(before):
            variants = [making.float32(compared, judged)]
            calibrated = None
            if quantize != "none":
                rows = making.calibration_rows(texts) if quantize in CALIBRATED else []
                if rows:
                    calibrated = f"{len(rows):,} rows of {calibration_source}"
                    say(f"Activations are calibrated on {calibrated}.")
                variants.append(making.quantized(quantize, compared, judged, rows, options))
        made = text_rows(making.path(quantize), compared) if text_in else None
        report = Report(
            kind=kind.name,
            compared_on=compared_on,
            variants=variants,
            max_drop=float(max_drop),
            allowed=allow_drop,
            calibration=calibrated,
            text_rows=made,
            notes=_notes(variants[-1], columns, made, own_texts=bool(texts) or judged is not None),
        )
        is_placed = allow_drop or not report.losses
        place, name = (target, FILE) if is_placed else (refused, REFUSED_FILE)
        with atomic_directory(place, replace=not is_placed) as written:
            shutil.copyfile(making.path(quantize), written / name)
            write_json(written / JSON_FILE, report.to_dict())
            (written / PAGE_FILE).write_text(report.page(), encoding="utf-8")
    if not is_placed:
        raise LostAccuracyError(report, refused)
    for line in (f"Compared on {report.compared_on}.", *report.table(), *report.notes):
        say(line)
    if report.losses:
        say(f"It lost {' and '.join(report.losses)}, which was allowed.")
    inputs = ", ".join(INPUTS) + (f", or {' and '.join(loaded.text_inputs)}," if text_in else "")
    say(f"Exported to {target / FILE}, which takes {inputs} by name; {PAGE_FILE} beside it is the report.")
    return report


def _places(target_dir: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Returns the directories of a file that is right and of one that is refused."""
    if Path(target_dir).suffix.lower() == ".tflite":
        raise InputError(
            f"`target_dir` must be a directory, which gets {FILE} and its report. Received: {os.fspath(target_dir)!r}"
        )
    target = check_new_directory(target_dir, "target_dir")
    refused = target.with_name(f"{target.name}.refused")
    ours = {REFUSED_FILE, JSON_FILE, PAGE_FILE}
    if refused.exists() and not (refused.is_dir() and {path.name for path in refused.iterdir()} <= ours):
        raise InputError(
            f"`target_dir` must leave {str(refused)!r} free, where a file is kept that is refused. "
            f"Received: {os.fspath(target_dir)!r}"
        )
    return target, refused


def _asked_and_loaded(kind: Kind, model_dir: str | os.PathLike[str]) -> tuple[Any, LoadedModel]:
    """Returns what asks the Keras model, and what is known of it; the weights are read once."""
    directory = checked_directory(model_dir)
    if kind.task is None:
        fill_mask = FillMask(directory)
        return fill_mask, fill_mask.loaded
    task = kind.task(directory)
    return task, LoadedModel(directory, task.model, task.tokenizer, max_length=task.max_length, settings=task.settings)


def _columns(length: int | str | None, loaded: LoadedModel) -> int | None:
    positions = loaded.model.config.max_position_embeddings
    if length is None:
        return min(USUAL_LENGTH, positions)
    if isinstance(length, str):
        return None
    if length > positions:
        raise InputError(f"`length` must be at most {positions}, the positions of the model. Received: length={length}")
    return length


def _as_asked(texts: Any, loaded: LoadedModel) -> list[Asked]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InputError(f"`calibration` must be a list of texts. Received: {type(texts).__name__}")
    asked = [text if isinstance(text, tuple) else (text,) for text in texts]
    names = loaded.text_inputs
    known = loaded.settings is None or loaded.settings.task in ("tagging", "qa") or loaded.settings.pair is not None
    sizes = {len(names)} if known else {1, 2}
    if odd := [number for number, text in enumerate(asked) if len(text) not in sizes or len(text) != len(asked[0])]:
        raise InputError(
            f"`calibration` must have {' and '.join(names)} of each. Received: {len(asked[odd[0]])} at place {odd[0]}"
        )
    return asked


def _compared(
    texts: list[Asked], source: str, judged: LabelledTexts | None, loaded: LoadedModel
) -> tuple[Sequence[Asked], str]:
    """Returns the texts that are compared on, and what they are."""
    if judged is not None:
        return judged.texts, f"{len(judged.texts):,} texts of {judged.source}"
    if texts:
        return texts, f"{len(texts):,} texts of {source}"
    names = loaded.text_inputs
    examples: Sequence[Asked] = SINGLE_TEXTS
    if len(names) == 2:
        examples = QUESTIONS if names[0] == "question" else PAIRS
    mask_token = loaded.tokenizer.mask_token
    filled = [tuple(text.replace("[MASK]", mask_token) for text in example) for example in examples]
    return filled, f"{len(filled)} built-in examples"


def _notes(variant: Variant, columns: int | None, made: TextRows | None, *, own_texts: bool) -> list[str]:
    notes = []
    if not own_texts:
        notes.append(
            "No texts of yours were given: what it costs on them is not known. `labelled` (or `calibration`) says it."
        )
    found = variant.agreement
    if found.truncated and columns is not None and found.truncated > found.truncated_before:
        notes.append(
            f"Longer than {columns} ids and cut off, as answers say: {found.truncated:,} of {found.texts:,} texts "
            f"({found.truncated_before:,} by the Keras model). A larger `length` reads them."
        )
    elif found.truncated:
        notes.append(f"Longer than a row and cut off: {found.truncated:,} of {found.texts:,} texts.")
    if custom := variant.operators.custom:
        notes.append(f"For text in an app must register these operators: {', '.join(custom)}.")
    if made is not None:
        others = f"; not {', '.join(repr(short(example)) for example in made.examples)}" if made.examples else ""
        notes.append(f"By text, {made.same:,} of {made.texts:,} have the ids that the tokenizer makes{others}.")
        if made.with_special_tokens:
            notes.append(
                f"{made.with_special_tokens:,} texts more have special tokens written in them, which ids keep whole "
                "and text in reads like other words."
            )
    return notes
