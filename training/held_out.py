"""Measuring a model on held-out examples, beside what a unigram model would reach on the same tokens."""

import functools
import math
from functools import cached_property
from typing import Any

import numpy as np

from .batches import rows_taken
from .distribution import batches_for
from .exact_step import PretrainingTrainer
from .examples.masking import TOKEN
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
        masking: which of them are masked together: `"token"`, `"whole-word"` or `"n-gram"`.
        max_ngram: most words of a run, for `"n-gram"`.
    """

    def __init__(
        self,
        data: PretrainingData,
        length: int,
        *,
        batch_size: int,
        limit: int,
        seed: int,
        masked_share: float,
        masking: str = TOKEN,
        max_ngram: int = 3,
    ) -> None:
        self.length = length
        self._token_counts = data.token_counts
        examples = data.examples("held_out", length)
        self._examples = rows_taken(len(examples), limit)
        self._make_batches = functools.partial(
            evaluation_batches,
            examples,
            batch_size=batch_size,
            limit=limit,
            seed=seed,
            tokenizer=data.tokenizer,
            masked_share=masked_share,
            masking=masking,
            max_ngram=max_ngram,
        )
        self._batches, self._steps = self._make_batches()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the examples are, without any model: counts, label shares and the unigram loss."""
        sizes, targets = [], []
        for x, y in self._batches.as_numpy_iterator():
            sizes.append(x["padding_mask"].sum(axis=1))
            targets.append(y)
        y = {name: np.concatenate([batch[name] for batch in targets]) for name in targets[0]}
        facts = {
            "unigram_loss": unigram_loss(self._token_counts, y["mask_labels"], y["mask_weights"]),
            "examples": self._examples,
            "tokens": int(np.concatenate(sizes)[: self._examples].sum()),
            "predicted_tokens": round(float(y["mask_weights"].sum())),
        }
        if labels := float(y["next_sentence_weights"].sum()):
            random_next = float((y["next_sentence_labels"] * y["next_sentence_weights"]).sum()) / labels
            facts |= {
                "nsp_true_next_share": 1 - random_next,
                "nsp_random_next_share": random_next,
                "nsp_majority_share": max(random_next, 1 - random_next),
            }
        return facts

    def measure(self, trainer: PretrainingTrainer) -> dict[str, float]:
        """Returns losses, perplexity and accuracies over all predicted tokens and all examples.

        Those of next-sentence prediction are left out if the data has no labels or the model no head for them.
        """
        batches = batches_for(trainer.distribute_strategy, lambda part: self._make_batches(part=part)[0])
        values = trainer.evaluate(batches, steps=self._steps, verbose=0, return_dict=True)
        known = "nsp_majority_share" in self.facts and "nsp_logits" in trainer.pretrainer.output
        values["mlm_perplexity"] = perplexity(values["mlm_loss"])
        return {name: value for name, value in values.items() if known or not name.startswith("nsp_")}

    def full_record(self, trainer: PretrainingTrainer) -> dict[str, Any]:
        """Returns what `measure` does and the facts, for `metrics.json`."""
        # A step function made for another length would be traced again for any length, which is slower.
        trainer.make_test_function(force=True)
        values = self.measure(trainer)
        return {
            "mlm_loss": values["mlm_loss"],
            "mlm_accuracy": values["mlm_accuracy"],
            "mlm_perplexity": values["mlm_perplexity"],
            **{name: value for name, value in values.items() if name.startswith("nsp_")},
            **self.facts,
        }


def perplexity(loss: float) -> float:
    """Returns the number of tokens among which guessing evenly would have this loss, in nats."""
    return math.exp(min(loss, 80))  # more is no number of float32, as TensorBoard has them


def describe(length: int | str, record: dict[str, Any]) -> str:
    """Returns one line for a person about a full record."""
    record = {name: math.nan if value is None else value for name, value in record.items()}
    absent = "head in the model" if "nsp_majority_share" in record else "labels"
    next_sentence = f"{record['examples']} examples, no next-sentence {absent}"
    if "nsp_accuracy" in record:
        next_sentence = (
            f"NSP accuracy {record['nsp_accuracy']:.1%} of {record['examples']} pairs "
            f"(labels: {record['nsp_true_next_share']:.1%} true next, {record['nsp_random_next_share']:.1%} random)"
        )
    return (
        f"Held-out, length {length}: MLM loss {record['mlm_loss']:.4f} "
        f"(unigram {record['unigram_loss']:.4f}), perplexity {record['mlm_perplexity']:.1f}, "
        f"accuracy {record['mlm_accuracy']:.1%} of {record['predicted_tokens']} tokens; {next_sentence}"
    )
