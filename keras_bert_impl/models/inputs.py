"""The inputs that every BERT model takes: a text or a pair in each row, or several pairs packed into one."""

import keras

ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask")
PACKED_ENCODER_INPUTS = ("token_ids", "segment_ids", "pair_ids", "cls_positions")
FLOAT_INPUTS = ("mask_weights",)


def symbolic_inputs(*further: str, packed: bool = False) -> dict[str, keras.KerasTensor]:
    """Returns symbolic inputs `(batch, any length)` by name: the encoder's, and further ones; all int32 but weights."""
    names = PACKED_ENCODER_INPUTS if packed else ENCODER_INPUTS
    return {
        name: keras.Input((None,), dtype="float32" if name in FLOAT_INPUTS else "int32", name=name)
        for name in (*names, *further)
    }


def encoder_inputs(inputs: dict[str, keras.KerasTensor]) -> dict[str, keras.KerasTensor]:
    """Returns those of a model's inputs that its encoder takes."""
    names = PACKED_ENCODER_INPUTS if "pair_ids" in inputs else ENCODER_INPUTS
    return {name: inputs[name] for name in names}
