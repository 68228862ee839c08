"""What could stand at the masks of a text? Asked of the Keras model, from Python."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_impl.tasks.mask_answers import MaskAnswers, MaskRow

from .loaded_model import LoadedMaskedLM, Row

_BATCH_SIZE = 32


class FillMask(MaskAnswers):
    """A model that is read once and asked many times.

    ```python
    fill_mask = FillMask("run")
    fill_mask(["the [MASK] sat on the mat"], top=3)
    # [[[{"token": "cat", "token_id": 4937, "probability": 0.31}, …]]]
    ```

    Args:
        model: model directory or run directory.

    Attributes:
        loaded: the Keras model.

    Raises:
        InputError: if it is neither, or has no masked-LM head.
    """

    def __init__(self, model: str | os.PathLike[str]) -> None:
        self.loaded = LoadedMaskedLM.from_path(model)
        config = self.loaded.model.config
        super().__init__(self.loaded.tokenizer, config.vocab_size, config.max_position_embeddings)

    def mask_logits(self, rows: Sequence[MaskRow]) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the number of each row and the scores at its masks: float32 `(masks, vocab_size)`."""
        # Rows of like length together, so that little is padding.
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].token_ids))
        for start in range(0, len(order), _BATCH_SIZE):
            chosen = order[start : start + _BATCH_SIZE]
            batch = [Row(rows[i].token_ids, False, rows[i].mask_positions) for i in chosen]
            logits = self.loaded.model(self.loaded.inputs(batch), training=False)["mlm_logits"]
            for i, of_row in zip(chosen, keras.ops.convert_to_numpy(logits), strict=True):
                yield i, of_row[: len(rows[i].mask_positions)]


def fill_mask(model: str | os.PathLike[str], texts: Sequence[str], top: int = 5) -> list[list[list[dict[str, Any]]]]:
    """Reads a model and asks it once; see `FillMask`."""
    return FillMask(model)(texts, top=top)
