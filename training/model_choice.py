"""Which model a run trains, and whether it fits the data."""

from pathlib import Path

from keras_bert_impl.checkpoints import hugging_face
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.presets import get_preset
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import PretrainConfig
from .evaluate import model_directory
from .examples.prepared_data import PreparedData
from .phases import Phase


def choose_model(config: PretrainConfig, data: PreparedData) -> BertConfig:
    """Returns the configuration of the model: that of `init`, else the preset's with `model`'s fields.

    Without `init`, the vocabulary size is the data's unless `model` gives one.

    Raises:
        InputError: if `init` is given with `model`, or a field cannot be used.
    """
    if config.init is None:
        return get_preset(config.preset, **{"vocab_size": data.tokenizer.vocab_size, **(config.model or {})})
    if config.model:
        raise InputError(
            "`model` cannot be given with `init`, whose model directory says what the model is. "
            f"Received: model={config.model!r}, init={config.init!r}"
        )
    return hugging_face.read_config(model_directory(config.init))[0]


def check_fit(config: PretrainConfig, model: BertConfig, phases: list[Phase], data: PreparedData) -> None:
    """Raises `InputError` if the model, the phases and the data do not fit one another."""
    for phase in phases:
        if phase.length not in data.lengths:
            raise InputError(
                "`phases` must have lengths that the data was prepared for: "
                f"{', '.join(map(str, data.lengths))}. Received: length={phase.length}, data={config.data!r}"
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
    if config.init is not None:
        _check_same_vocabulary(config.init, data)


def make_model(config: PretrainConfig, model: BertConfig) -> BertPretrainer:
    """Builds the model, fresh or with the weights of `init`; to be called in the strategy's scope."""
    if config.init is None:
        return BertPretrainer(model, dtype=config.dtype, seed=config.seed)
    return BertPretrainer.from_pretrained(model_directory(config.init), dtype=config.dtype, seed=config.seed)


def _check_same_vocabulary(init: str | Path, data: PreparedData) -> None:
    directory = model_directory(init)
    if not (directory / "vocab.txt").is_file():
        return
    theirs, ours = WordPieceTokenizer.from_pretrained(directory).vocabulary, data.tokenizer.vocabulary
    if theirs != ours:
        place = next(
            (i for i, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), min(len(theirs), len(ours))
        )
        raise InputError(
            "`init` must have the vocabulary that the data was prepared with. "
            f"Received: init={str(init)!r}, whose vocabulary differs from token {place} on"
        )
