"""Other forms of a float32 TFLite file: half precision, and whole numbers for weights and for activations.

Google's ai-edge-quantizer does the arithmetic; what is said here is which operators it may touch. Activations lose most
in the parts that `KEPT_FLOAT` names: masked softmax (the mask lies far below every score and takes the whole range of a
scale), LayerNorm (differences of near numbers, squares), and the residual stream, where a few outliers take the range.
Their cost in float is small: they hold no products with weights.
"""

import os
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from keras_bert_impl.errors import InputError, nearest
from keras_bert_impl.quiet import held_back_error_stream

from .checked_arguments import FORMS, check_installed
from .graph.answers import ANSWER
from .signature_names import SIGNATURE

KEPT_FLOAT = ("ADD", "MEAN", "MUL", "RSQRT", "SOFTMAX", "SQUARED_DIFFERENCE", "SUB", "SUM")
"""Operators that compute in float in an `"int8"` file unless told otherwise."""

# They take and give whole numbers, or choose among values, or stand at the file's border, where values are floats.
_NEVER = ("CUSTOM_OP", "EQUAL", "GATHER", "INPUT", "MAXIMUM", "OUTPUT", "SLICE")
_TABLE = "EMBEDDING_LOOKUP"
_WITH_WEIGHTS = ("FULLY_CONNECTED", _TABLE)
_ALL = ".*"


def quantize(
    file: bytes,
    form: str,
    *,
    calibration: Iterable[dict[str, np.ndarray]] = (),
    keep_float: Collection[str] = KEPT_FLOAT,
    per_tensor: bool = False,
) -> bytes:
    """Returns a float32 file of `convert` in another form.

    Args:
        file: the float32 file.
        form: `"none"`: as it is; `"float16"`: weights of 16 bits, widened when the file is opened; `"dynamic"`: weights
            int8, and products in int8 too, with activations scaled as they come; `"int8"`: activations int8 by scales
            that are found beforehand; `"weights-int8"`, `"weights-int4"`: weights of 8 or 4 bits, all computed in
            float.
        calibration: for `"int8"`: inputs by name, as the file takes them.
        keep_float: for `"int8"`: operators that compute in float. What is looked up in tables is float anyhow, the
            tables int8.
        per_tensor: for `"int8"`: one scale for a whole kernel, in place of one for each of its outputs.

    Returns:
        The file.

    Raises:
        InputError: if an argument is out of range, or what the extra `tflite` brings is not installed.
    """
    if form not in FORMS:
        raise InputError(f"`form` must be one of {', '.join(FORMS)}. Received: form={form!r}")
    if form == "none":
        return file
    check_installed()
    from ai_edge_quantizer import calibrator, quantizer

    work = quantizer.Quantizer(file)
    found = None
    with held_back_error_stream():  # It tells of its progress there.
        if form == "int8":
            _add_static(work, keep_float, per_tensor)
            rows = [dict(row) for row in calibration]
            if not rows:
                raise InputError("`calibration` must have one or more rows for form='int8'. Received: none")
            # The other way looks at values between operators that the interpreter may have joined.
            mode = calibrator.CalibrationMode.CALIBRATION_PROFILER_BASED
            found = work.calibrate({SIGNATURE: rows}, num_threads=os.cpu_count() or 1, mode=mode)
        else:
            for operator in _WITH_WEIGHTS:
                _ADD[form](work, operator)
        return bytes(work.quantize(found, enable_progress_report=False).quantized_model)


def _add_float16(work: Any, operator: str) -> None:
    from ai_edge_quantizer import algorithm_manager, qtyping

    config = qtyping.OpQuantizationConfig(
        weight_tensor_config=qtyping.TensorQuantizationConfig(num_bits=16, dtype=qtyping.TensorDataType.FLOAT),
        explicit_dequantize=True,
    )
    casting = algorithm_manager.AlgorithmName.FLOAT_CASTING
    work.update_quantization_recipe(_ALL, qtyping.TFLOperationName(operator), config, casting)


_ADD: dict[str, Any] = {
    "float16": _add_float16,
    "dynamic": lambda work, operator: work.add_dynamic_config(_ALL, operator, 8),
    "weights-int8": lambda work, operator: work.add_weight_only_config(_ALL, operator, 8),
    "weights-int4": lambda work, operator: work.add_weight_only_config(_ALL, operator, 4),
}


def _add_static(work: Any, keep_float: Collection[str], per_tensor: bool) -> None:
    from ai_edge_quantizer import algorithm_manager, qtyping

    known = [name.value for name in qtyping.TFLOperationName if name.value not in (*_NEVER, _TABLE, "*")]
    if unknown := [name for name in keep_float if name not in known]:
        meant = " or ".join(nearest(unknown, known))
        raise InputError(
            f"`keep_float` must be names of operators. Received: {', '.join(map(repr, unknown))}"
            f"{f'; did you mean {meant}?' if meant else ''}"
        )
    of_tensor = qtyping.QuantGranularity.TENSORWISE if per_tensor else qtyping.QuantGranularity.CHANNELWISE
    work.add_static_config(_ALL, "*", 8, 8, of_tensor)
    work.add_dynamic_config(_ALL, _TABLE, 8)
    no_change = algorithm_manager.AlgorithmName.NO_QUANTIZE
    for name in (*_NEVER, *keep_float):
        work.update_quantization_recipe(_ALL, qtyping.TFLOperationName(name), algorithm_key=no_change)
    # Heads are small, and what they give must be float.
    work.update_quantization_recipe(f"{ANSWER}/", qtyping.TFLOperationName.ALL_SUPPORTED, algorithm_key=no_change)
    work.add_dynamic_config(f"{ANSWER}/", "FULLY_CONNECTED", 8)
