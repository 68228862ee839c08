"""`evaluate`: how well a pretrained model predicts held-out documents."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError

from .configs import EvaluateConfig
from .exact_step import PretrainingTrainer
from .held_out import HeldOut, describe
from .model_choice import PretrainingModel, check_same_tokens, pretraining_class
from .pretraining_data import PretrainingData, check_masking, open_data
from .run_directory import write_json


def evaluate(config: EvaluateConfig, say: Callable[[str], None] = lambda line: None) -> dict[str, dict[str, Any]]:
    """Measures a model on the held-out part of prepared data.

    Args:
        config: the settings.
        say: takes each line of narration.

    Returns:
        For each length, as a string: `mlm_loss`, `mlm_accuracy` and `mlm_perplexity` over the predicted
        tokens, `unigram_loss` of the training counts plus one on the same tokens, `nsp_loss`,
        `nsp_accuracy`, the share of each NSP label, and how much was counted.

    Raises:
        InputError: if the model or the data cannot be used, or do not fit one another.
    """
    if config.output and Path(config.output).is_dir():
        raise InputError(f"`output` must be a file. Received: {config.output!r}, which is a directory")
    data = open_data(config.data)
    lengths = _lengths(config, data)
    model = pretraining_class(config.model).from_pretrained(config.model)
    _check_fit(model, data, lengths, config)
    trainer = PretrainingTrainer(model)
    trainer.compile()
    results = {}
    for length in lengths:
        held_out = HeldOut(
            data,
            length,
            batch_size=config.batch_size,
            limit=config.examples,
            seed=config.seed,
            masked_share=config.masked_share,
            masking=config.masking,
            max_ngram=config.max_ngram,
        )
        record = results[str(length)] = held_out.full_record(trainer)
        if not math.isfinite(record["mlm_loss"] + record.get("nsp_loss", 0)):
            raise InputError(f"`model` must give finite losses. Received: {config.model!r}, loss {record['mlm_loss']}")
        say(describe(length, record))
    if config.output:
        write_json(Path(config.output), results)
        say(f"Metrics: {config.output}")
    return results


def _lengths(config: EvaluateConfig, data: PretrainingData) -> tuple[int, ...]:
    lengths = config.lengths or data.lengths
    if not any(data.count("held_out", length) for length in lengths):
        raise InputError(
            "`data` must have held-out examples to evaluate on; prepare it with a `held_out_share` above 0 and more "
            f"documents. Received: {config.data!r}, which has none"
        )
    return tuple(length for length in lengths if config.lengths or data.count("held_out", length))


def _check_fit(
    model: PretrainingModel, data: PretrainingData, lengths: tuple[int, ...], config: EvaluateConfig
) -> None:
    if data.tokenizer.vocab_size > model.config.vocab_size:
        raise InputError(
            "`data` must not have a larger vocabulary than the model. "
            f"Received: {data.tokenizer.vocab_size} tokens in the data, {model.config.vocab_size} in {config.model!r}"
        )
    check_same_tokens("data", config.model, data)
    check_masking(config.masking, data)
    if max(lengths) > model.config.max_position_embeddings:
        raise InputError(
            "`lengths` must be at most the model's `max_position_embeddings`, "
            f"{model.config.max_position_embeddings}. Received: lengths={list(lengths)}"
        )
