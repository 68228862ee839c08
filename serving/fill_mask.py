"""What could stand at the masks of a text? Asked of the Keras model, from Python."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_bert_impl.errors import InputError

from .loaded_model import LoadedMaskedLM, Row, checked_top

_BATCH_SIZE = 32


class FillMask:
    """A model that is read once and asked many times.

    ```python
    fill_mask = FillMask("run")
    fill_mask(["the [MASK] sat on the mat"], top=3)
    # [[[{"token": "cat", "token_id": 4937, "probability": 0.31}, …]]]
    ```

    Args:
        model: model directory or run directory.

    Raises:
        InputError: if it is neither, or has no masked-LM head.
    """

    def __init__(self, model: str | os.PathLike[str]) -> None:
        self._loaded = LoadedMaskedLM.from_path(model)

    def __call__(self, texts: Sequence[str], top: int = 5) -> list[list[list[dict[str, Any]]]]:
        """Returns for each text, for each of its masks, the `top` likeliest tokens, best first.

        Args:
            texts: each with one or more mask tokens.
            top: candidates per mask.

        Returns:
            Lists of lists of lists of `{"token": str, "token_id": int, "probability": float}`.

        Raises:
            InputError: if a text has no mask token or is longer than the model's positions.
        """
        if isinstance(texts, str):
            raise InputError(f"`texts` must be a list of texts. Received: {texts!r}")
        top = checked_top(top, self._loaded.model)
        rows = [self._row(text) for text in texts]
        answers: list[Any] = [None] * len(rows)
        # Rows of like length together, so that little is padding.
        order = sorted(range(len(rows)), key=lambda i: len(rows[i].token_ids))
        for start in range(0, len(order), _BATCH_SIZE):
            chosen = order[start : start + _BATCH_SIZE]
            inputs = self._loaded.inputs([rows[i] for i in chosen])
            logits = keras.ops.convert_to_numpy(self._loaded.model(inputs, training=False)["mlm_logits"])
            for i, of_row in zip(chosen, logits, strict=True):
                answers[i] = [self._candidates(mask, top) for mask in of_row[: len(rows[i].mask_positions)]]
        return answers

    def _row(self, text: str) -> Row:
        tokenizer = self._loaded.tokenizer
        max_length = self._loaded.model.config.max_position_embeddings
        row = self._loaded.row(text, max_length)
        if row.truncated:
            raise InputError(
                f"`texts` must be of at most {max_length - 2} pieces. "
                f"Received: {len(tokenizer.encode_ids(text))} pieces, {_start(text)}"
            )
        if not row.mask_positions:
            raise InputError(f"`texts` must each have a {tokenizer.mask_token}. Received: {_start(text)}")
        return row

    def _candidates(self, logits: np.ndarray, top: int) -> list[dict[str, Any]]:
        tokenizer = self._loaded.tokenizer
        best = np.argsort(-logits, kind="stable")[:top]
        exponentials = np.exp(logits.astype("float64") - logits.max())
        probabilities = exponentials / exponentials.sum()
        return [
            {
                "token": tokenizer.id_to_token(i) if i < tokenizer.vocab_size else "",
                "token_id": int(i),
                "probability": float(probabilities[i]),
            }
            for i in best.tolist()
        ]


def fill_mask(model: str | os.PathLike[str], texts: Sequence[str], top: int = 5) -> list[list[list[dict[str, Any]]]]:
    """Reads a model and asks it once; see `FillMask`."""
    return FillMask(model)(texts, top=top)


def _start(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")
