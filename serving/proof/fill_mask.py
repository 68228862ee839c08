"""Comparison of what is found for masks."""

from typing import Any

import numpy as np

from ..loaded_model import LoadedMaskedLM, Row
from .comparison import Comparison, Outputs, decoded, difference, exactly, softmax
from .example_texts import TEXTS


class FillMaskComparison(Comparison):
    """The answers of a masked language model.

    Args:
        loaded: the model that was exported.
        top: candidates per mask.
    """

    loaded: LoadedMaskedLM

    def __init__(self, loaded: LoadedMaskedLM, top: int) -> None:
        super().__init__(loaded)
        self._top = top

    def example_texts(self) -> list[tuple[str, ...]]:
        """Returns texts, most of them with masks."""
        return [(text,) for text in TEXTS]

    def row(self, *texts: str) -> Row:
        """Returns the row of a text."""
        [text] = texts
        return self.loaded.row(text, self.loaded.max_length)

    def inputs(self, rows: Any) -> dict[str, np.ndarray]:
        """Returns the model's inputs, the masks' positions among them."""
        return self.loaded.inputs(rows)

    def outputs(self, inputs: dict[str, np.ndarray]) -> dict[str, Any]:
        """Returns the model's and the encoder's outputs."""
        encoder_inputs = {name: inputs[name] for name in ("token_ids", "segment_ids", "padding_mask")}
        model = self.loaded.model
        return {**model.encoder(encoder_inputs, training=False), **model(inputs, training=False)}

    def text_differences(self, answer: Outputs, row: Row, outputs: Outputs) -> dict[str, float]:
        """Compares candidates; two may change places where their logits are closer than the bound."""
        masks = len(row.mask_positions)
        logits = outputs["mlm_logits"]
        ids = answer["top_token_ids"][:masks]
        best = np.sort(logits, axis=-1)[:, ::-1][:, : self._top]
        tokenizer = self.loaded.tokenizer
        vocabulary = np.array([*tokenizer.vocabulary, *[""] * (logits.shape[-1] - tokenizer.vocab_size)])
        unused = np.all(answer["top_token_ids"][masks:] == -1) and not answer["top_logits"][masks:].any()
        return {
            "mask_positions": exactly(_same_masks(answer["mask_positions"], row)),
            "unused_masks": exactly(unused),
            "top_tokens": exactly(np.array_equal(decoded(answer["top_tokens"][:masks]), vocabulary[ids])),
            "top_token_ids": difference(np.take_along_axis(logits, ids, -1), best),
            "top_logits": difference(answer["top_logits"][:masks], best),
            "top_probabilities": difference(
                answer["top_probabilities"][:masks], np.take_along_axis(softmax(logits), ids, -1)
            ),
        }

    def id_differences(self, answer: Outputs, row: Row, outputs: Outputs) -> dict[str, float]:
        """Compares everything that the model computes, at tokens and masks."""
        used = {"mlm_logits": len(row.mask_positions), "sequence_output": len(row.token_ids)}
        differences = {"mask_positions": exactly(_same_masks(answer["mask_positions"], row))}
        for name in answer.keys() - {"mask_positions"}:
            differences[name] = difference(answer[name][: used.get(name)], outputs[name])
        return differences

    def derived_scales(self, scales: dict[str, float], outputs: list[Outputs]) -> dict[str, float]:
        """A softmax makes a difference of logits as much larger as the logits are."""
        logit = scales["mlm_logits"]
        likeliest = max(float(softmax(of_text["mlm_logits"]).max(initial=0)) for of_text in outputs)
        return {"top_logits": logit, "top_token_ids": logit, "top_probabilities": likeliest * max(1.0, logit)}


def _same_masks(positions: np.ndarray, row: Row) -> bool:
    padded = row.mask_positions + [-1] * (len(positions) - len(row.mask_positions))
    return positions.tolist() == padded
