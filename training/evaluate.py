"""`evaluate`: how well a pretrained model predicts held-out documents, or a fine-tuned one labelled examples."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError

from .configs import EvaluateConfig
from .exact_step import PretrainingTrainer
from .examples.masking import MASKED_SHARE, NGRAM, TOKEN, WHOLE_WORD
from .examples.prepared_data import PreparedData
from .finetuning.output_places import check_output_places
from .held_out import HeldOut, describe
from .model_choice import PretrainingModel, check_same_tokens, pretraining_class
from .pretraining_data import PretrainingData, check_masks, open_data
from .run_directory import RunDirectory, write_json


def evaluate(config: EvaluateConfig, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Measures a model on the held-out part of prepared data, or a fine-tuned one on labelled examples.

    Args:
        config: the settings.
        say: takes each line of narration.

    Returns:
        For each length, as a string: `mlm_loss`, `mlm_accuracy` and `mlm_perplexity` over the predicted
        tokens, `unigram_loss` of the training counts plus one on the same tokens, `nsp_loss`,
        `nsp_accuracy`, the share of each NSP label, and how much was counted. With `input`, the metrics of the
        model's task by name.

    Raises:
        InputError: if the model or the data cannot be used, or do not fit one another.
    """
    if config.data is None:
        from .finetuning.evaluate import evaluate_labelled

        return evaluate_labelled(config, say=say).metrics
    check_output_places({"output": config.output or None}, [], config.model, config.data)
    data = open_data(config.data)
    lengths = _lengths(config, data)
    model = pretraining_class(config.model).from_pretrained(config.model)
    masks = _masks(config, data)
    _check_fit(model, data, lengths, config, masks)
    if isinstance(data, PreparedData):
        say(_describe_masks(masks))
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
            **masks,
        )
        with data.plain_errors():
            record = results[str(length)] = held_out.full_record(trainer)
        if not math.isfinite(record["mlm_loss"] + record.get("nsp_loss", 0)):
            raise InputError(f"`model` must give finite losses. Received: {config.model!r}, loss {record['mlm_loss']}")
        say(describe(length, record))
    if config.output:
        write_json(Path(config.output), results)
        say(f"Metrics: {config.output}")
    return results


def _masks(config: EvaluateConfig, data: PretrainingData) -> dict[str, Any]:
    """Returns `masked_share`, `masking` and `max_ngram`: as they are given, else the run's, else the usual ones."""
    masks: dict[str, Any] = {"masked_share": MASKED_SHARE, "masking": TOKEN, "max_ngram": 3}
    run = RunDirectory(config.model)
    if run.facts.is_file() and isinstance(data, PreparedData):
        trained = run.stored_config()
        masks = {name: getattr(trained, name) for name in masks}
    given = {name: getattr(config, name) for name in masks}
    return masks | {name: value for name, value in given.items() if value is not None}


def _describe_masks(masks: dict[str, Any]) -> str:
    kinds = {TOKEN: "tokens", WHOLE_WORD: "whole words", NGRAM: f"n-grams of up to {masks['max_ngram']} words"}
    return f"Masked: {kinds[masks['masking']]}, {masks['masked_share']:.0%} of the positions."


def _lengths(config: EvaluateConfig, data: PretrainingData) -> tuple[int, ...]:
    lengths = config.lengths or data.lengths
    if not any(data.count("held_out", length) for length in lengths):
        raise InputError(
            "`data` must have held-out examples to evaluate on; prepare it with a `held_out_share` above 0 and more "
            f"documents. Received: {config.data!r}, which has none"
        )
    return tuple(length for length in lengths if config.lengths or data.count("held_out", length))


def _check_fit(
    model: PretrainingModel,
    data: PretrainingData,
    lengths: tuple[int, ...],
    config: EvaluateConfig,
    masks: dict[str, Any],
) -> None:
    if data.tokenizer.vocab_size > model.config.vocab_size:
        raise InputError(
            "`data` must not have a larger vocabulary than the model. "
            f"Received: {data.tokenizer.vocab_size} tokens in the data, {model.config.vocab_size} in {config.model!r}"
        )
    check_same_tokens("data", config.model, data)
    check_masks(masks["masking"], masks["masked_share"], data)
    if max(lengths) > model.config.max_position_embeddings:
        raise InputError(
            "`lengths` must be at most the model's `max_position_embeddings`, "
            f"{model.config.max_position_embeddings}. Received: lengths={list(lengths)}"
        )
