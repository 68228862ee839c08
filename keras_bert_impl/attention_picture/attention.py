"""What a model's heads look at in a text."""

from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np

from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.checkpoints.tokenizer_files import check_rows_for_tokens, tokenizer_beside
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.tasks.rows import batch_inputs, text_row


class Attention(NamedTuple):
    """The attention of every head of every layer over one row of tokens.

    Attributes:
        model: the model's name.
        texts: the text, or both texts of a pair.
        tokens: the row as the model reads it, `[CLS]` and `[SEP]` included.
        second_text: index of the second text's first token; None without one.
        probabilities: float32, `(layers, heads, tokens, tokens)`; a row sums to 1.
        cut: a sentence that says what was cut off; empty if nothing was.
    """

    model: str
    texts: tuple[str, ...]
    tokens: list[str]
    second_text: int | None
    probabilities: np.ndarray
    cut: str


def attention_of(path: Path, texts: tuple[str, ...]) -> Attention:
    """Reads a text, or a pair of texts, with a model in any format that `open_checkpoint` opens.

    Raises:
        InputError: if the path has no encoder or no vocabulary that fits, or a text has no token.
    """
    checkpoint = open_checkpoint(path)
    tokenizer = tokenizer_beside(checkpoint, path)
    if tokenizer is None:
        raise InputError(
            f"`model` must be a model or run directory with a vocabulary. Received: {str(path)!r}, which has none"
        )
    parts = [tokenizer.encode_ids(text) for text in texts]
    for name, text, part in zip(("text", "text_pair"), texts, parts, strict=False):
        if not part:
            raise InputError(f"`{name}` must have at least one token. Received: {text!r}")
    encoder = BertEncoder.from_pretrained(checkpoint, pooler=False, return_attention=True, dtype="float32")
    config = encoder.config
    check_rows_for_tokens(tokenizer, config)
    if len(parts) > config.type_vocab_size:
        raise InputError(
            f"`text_pair` needs a model with two segments. Received: type_vocab_size={config.type_vocab_size}"
        )

    if config.max_position_embeddings < 1 + 2 * len(parts):
        raise InputError(
            f"`model` must have positions for {1 + 2 * len(parts)} tokens. "
            f"Received: max_position_embeddings={config.max_position_embeddings}"
        )
    row = text_row(tokenizer, config.max_position_embeddings, *texts)
    outputs = encoder(batch_inputs([row], tokenizer.pad_token_id))
    return Attention(
        model=path.resolve().name,
        texts=texts,
        tokens=[tokenizer.id_to_token(token_id) for token_id in row.token_ids],
        second_text=row.segment_ids.index(1) if len(parts) > 1 else None,
        probabilities=keras.ops.convert_to_numpy(outputs["attention_probabilities"])[0],
        cut=_sentence(sum(map(len, parts)), len(row.token_ids) - 1 - len(parts), config.max_position_embeddings),
    )


def _sentence(given: int, kept: int, positions: int) -> str:
    if kept == given:
        return ""
    return f"Cut to the {positions} tokens that the model has positions for: {given - kept} of {given} left out."
