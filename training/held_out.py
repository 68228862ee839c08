"""Measuring a model on held-out examples, beside what a unigram model would reach on the same tokens."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from .exact_step import PretrainingTrainer
from .examples.unigram import unigram_loss
from .input_pipeline import evaluation_batches
from .pretraining_data import PretrainingData


class HeldOut:
    """Held-out examples of one length; every time the same ones with the same masks.

    Args:
        data: the prepared data.
        length: sequence length.
        batch_size: examples per batch over all replicas; has no influence on the results.
        limit: examples taken; 0 for all.
        seed: seed of the choice and the masks.
        masked_share: share of the positions to predict.
    """

    def __init__(
        self, data: PretrainingData, length: int, *, batch_size: int, limit: int, seed: int, masked_share: float
    ) -> None:
        self.length = length
        self._token_counts = data.token_counts
        self._batches, self._steps = evaluation_batches(
            data.examples("held_out", length),
            batch_size=batch_size,
            limit=limit,
            seed=seed,
            tokenizer=data.tokenizer,
            masked_share=masked_share,
        )

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the examples are, without any model: counts, label shares and the unigram loss."""
        tokens, targets = 0, []
        for x, y in self._batches.as_numpy_iterator():
            tokens += int((x["padding_mask"].sum(axis=1) * y["example_weights"]).sum())
            targets.append(y)
        y = {name: np.concatenate([batch[name] for batch in targets]) for name in targets[0]}
        examples = float(y["example_weights"].sum())
        random_next = float((y["next_sentence_labels"] * y["example_weights"]).sum()) / examples
        return {
            "unigram_loss": unigram_loss(self._token_counts, y["mask_labels"], y["mask_weights"]),
            "nsp_true_next_share": 1 - random_next,
            "nsp_random_next_share": random_next,
            "nsp_majority_share": max(random_next, 1 - random_next),
            "examples": round(examples),
            "tokens": tokens,
            "predicted_tokens": round(float(y["mask_weights"].sum())),
        }

    def measure(self, trainer: PretrainingTrainer) -> dict[str, float]:
        """Returns losses and accuracies over all predicted tokens and all examples."""
        return trainer.evaluate(self._batches, steps=self._steps, verbose=0, return_dict=True)

    def full_record(self, trainer: PretrainingTrainer) -> dict[str, Any]:
        """Returns what `measure` does, the perplexity and the facts, for `metrics.json`."""
        # A step function made for another length would be traced again for any length, which is slower.
        trainer.make_test_function(force=True)
        values = self.measure(trainer)
        return {
            "mlm_loss": values["mlm_loss"],
            "mlm_accuracy": values["mlm_accuracy"],
            "mlm_perplexity": math.exp(min(values["mlm_loss"], 700)),
            "nsp_loss": values["nsp_loss"],
            "nsp_accuracy": values["nsp_accuracy"],
            **self.facts,
        }


def describe(length: int | str, record: dict[str, Any]) -> str:
    """Returns one line for a person about a full record."""
    return (
        f"Held-out, length {length}: MLM loss {record['mlm_loss']:.4f} "
        f"(unigram {record['unigram_loss']:.4f}), perplexity {record['mlm_perplexity']:.1f}, "
        f"accuracy {record['mlm_accuracy']:.1%} of {record['predicted_tokens']} tokens; "
        f"NSP accuracy {record['nsp_accuracy']:.1%} of {record['examples']} pairs "
        f"(labels: {record['nsp_true_next_share']:.1%} true next, {record['nsp_random_next_share']:.1%} random)"
    )
