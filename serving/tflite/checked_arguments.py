"""The arguments of an export as TFLite, checked before anything is read; opens no TensorFlow."""

import math
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.extras import check_extra

FORMS = ("none", "float16", "dynamic", "int8", "weights-int8", "weights-int4")
CALIBRATED = ("int8",)
"""Forms that need texts to be calibrated on."""


def check_installed() -> None:
    """Raises `InputError` if what the extra `tflite` brings is not installed; opens none of it."""
    check_extra("An export as TFLite", "tflite", ["ai_edge_litert", "ai_edge_quantizer"])


def check_arguments(quantize: Any, length: Any, has_calibration: bool, max_drop: Any, text_in: Any = False) -> None:
    """Refuses what `export_tflite` cannot do.

    Args:
        quantize, length, max_drop, text_in: as given.
        has_calibration: whether there are texts to calibrate on.

    Raises:
        InputError: if one is out of range.
    """
    if quantize not in FORMS:
        raise InputError(f"`quantize` must be one of {', '.join(FORMS)}. Received: quantize={quantize!r}")
    if quantize in CALIBRATED and not has_calibration:
        raise InputError(
            f"`calibration` must be given for quantize={quantize!r}, whose activations are fitted to texts such as the "
            "app will meet, a hundred or more. Received: none"
        )
    whole = isinstance(length, int) and not isinstance(length, bool) and length >= 3
    if length is not None and length != "dynamic" and not whole:
        raise InputError(f"`length` must be a whole number of at least 3, or 'dynamic'. Received: length={length!r}")
    if not isinstance(text_in, bool):
        raise InputError(f"`text_in` must be True or False. Received: text_in={text_in!r}")
    if text_in and length == "dynamic":
        raise InputError("`length` must be fixed for text in. Received: length='dynamic'")
    is_number = isinstance(max_drop, int | float) and not isinstance(max_drop, bool)
    if not is_number or not math.isfinite(max_drop) or max_drop < 0:
        raise InputError(f"`max_drop` must be a number of points, at least 0. Received: max_drop={max_drop!r}")
