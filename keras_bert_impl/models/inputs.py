"""The inputs that every BERT model takes."""

import keras

ENCODER_INPUTS = ("token_ids", "segment_ids", "padding_mask")


def symbolic_inputs(*further: str) -> dict[str, keras.KerasTensor]:
    """Returns symbolic int32 inputs `(batch, any length)` by name: the encoder's, and further ones."""
    return {name: keras.Input((None,), dtype="int32", name=name) for name in (*ENCODER_INPUTS, *further)}


def encoder_inputs(inputs: dict[str, keras.KerasTensor]) -> dict[str, keras.KerasTensor]:
    """Returns those of a model's inputs that its encoder takes."""
    return {name: inputs[name] for name in ENCODER_INPUTS}
