"""Which model a run trains, and whether a model fits the data."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.checkpoints.tokenizer_files import check_tokens_for_rows
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_masked_lm import BertMaskedLM
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.presets import get_preset
from keras_bert_impl.tokenization.tokenizer_config import read_options
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import DEFAULT_PHASES, PretrainConfig
from .phases import Phase
from .pretraining_data import PretrainingData, check_masks

PretrainingModel = BertPretrainer | BertMaskedLM


def choose_model(config: PretrainConfig, data: PretrainingData) -> BertConfig:
    """Returns the configuration of the model: that of `init`, else the preset's with `model`'s fields.

    Without `init`, the vocabulary size is the data's unless `model` gives one.

    Raises:
        InputError: if a field cannot be used.
    """
    if config.init is None:
        fields = {"vocab_size": data.tokenizer.vocab_size, **(config.model or {})}
        return get_preset(config.preset or "tiny", **fields)
    return open_checkpoint(config.init).config


def check_fit(config: PretrainConfig, model: BertConfig, phases: list[Phase], data: PretrainingData) -> None:
    """Raises `InputError` if the model, the phases and the data do not fit one another."""
    if model.type_vocab_size < 2:
        raise InputError(
            "`model` must have a `type_vocab_size` of at least 2, for pairs of sentences. "
            f"Received: type_vocab_size={model.type_vocab_size}"
        )
    for phase in phases:
        if phase.length not in data.lengths:
            raise InputError(
                "`phases` must have lengths that the data was prepared for: "
                f"{', '.join(map(str, data.lengths))}{_how_to_give_phases(config, data)}. "
                f"Received: length={phase.length}, data={config.data!r}"
            )
        if phase.packed and not data.packed_rows("train", phase.length):
            raise InputError(
                "`phases` must not be packed for TFRecord files, which hold one example a row. "
                f"Received: packed=True, data={config.data!r}"
            )
        if phase.length > model.max_position_embeddings:
            raise InputError(
                f"`phases` must not be longer than the model's `max_position_embeddings`, "
                f"{model.max_position_embeddings}. Received: length={phase.length}"
            )
    if data.tokenizer.vocab_size > model.vocab_size:
        raise InputError(
            "`data` must not have a larger vocabulary than the model. "
            f"Received: {data.tokenizer.vocab_size} tokens in {config.data!r}, vocab_size={model.vocab_size}"
        )
    check_tokens_for_rows(data.tokenizer, model)
    check_masks(config.masking, config.masked_share, data)
    if config.init is not None:
        check_same_tokens("init", config.init, data)


def make_model(config: PretrainConfig, model: BertConfig, data: PretrainingData) -> PretrainingModel:
    """Builds the model, fresh or with the weights of `init`; to be called in the strategy's scope.

    Data without next-sentence labels trains a `BertMaskedLM`, which has no part that would learn nothing. Pooler and
    next-sentence head that `init` has are kept as they are.
    """
    options: dict[str, Any] = {"dtype": config.dtype, "seed": config.seed}
    if config.init is None:
        return (BertPretrainer if data.next_sentence else BertMaskedLM)(model, **options)
    if data.next_sentence:
        return BertPretrainer.from_pretrained(config.init, allow_missing=config.allow_missing, **options)
    made = pretraining_class(config.init).from_pretrained(config.init, allow_missing=config.allow_missing, **options)
    if isinstance(made, BertPretrainer):
        for part in (made.encoder.get_layer("pooler"), made.nsp_head):
            part.trainable = False
    return made


def pretraining_class(path: str | os.PathLike[str]) -> type[PretrainingModel]:
    """Returns `BertPretrainer` for a model with a next-sentence head and the pooler it needs, else `BertMaskedLM`."""
    return BertPretrainer if {"pooler", "nsp_head"} <= set(open_checkpoint(path).parts) else BertMaskedLM


def check_same_tokens(argument: str, model: str | Path, data: PretrainingData) -> None:
    """Raises `InputError` if a model's tokenizer is known and is not the one the data was prepared with.

    Args:
        argument: what the message asks the user to change, `"init"` or `"data"`.
        model: model directory or run directory.
        data: the prepared data.
    """
    directory = model_directory(model)
    if not (directory / "vocab.txt").is_file():
        return
    tokenizer = WordPieceTokenizer.from_pretrained(directory)
    source = "of the model" if argument == "data" else "that the data was prepared with"
    model_is = f"{'model' if argument == 'data' else argument}={str(model)!r}"
    data_is = f"data={str(data.directory)!r}"
    theirs, ours = tokenizer.vocabulary, data.tokenizer.vocabulary
    if theirs != ours:
        pairs = zip(theirs, ours, strict=False)
        place = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(theirs), len(ours)))
        raise InputError(
            f"`{argument}` must have the vocabulary {source}. "
            f"Received: {data_is if argument == 'data' else model_is}, whose vocabulary differs from token {place} on"
        )
    # A directory that says nothing of it is taken to be right.
    if "lowercase" in read_options(directory) and tokenizer.lowercase != data.tokenizer.lowercase:
        raise InputError(
            f"`{argument}` must have the lower-casing {source}. Received: {model_is} with "
            f"lowercase={tokenizer.lowercase}, {data_is} with lowercase={data.tokenizer.lowercase}"
        )


def _how_to_give_phases(config: PretrainConfig, data: PretrainingData) -> str:
    # Whether they are packed has been decided meanwhile.
    if tuple(dataclasses.replace(phase, packed=None) for phase in config.phases) != DEFAULT_PHASES:
        return ""
    lengths = " and ".join(str(phase.length) for phase in DEFAULT_PHASES)
    example = json.dumps([{"length": data.lengths[0], "share": 1}])
    return f"; the default ones are of {lengths} tokens, others are given as in --phases '{example}'"
