"""The vocabulary that belongs to a checkpoint."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary_file import load_vocabulary
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

_FILLED_UP = 256


def tokenizer_beside(
    checkpoint: Checkpoint,
    source: Any,
    vocab: str | os.PathLike[str] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> WordPieceTokenizer | None:
    """Returns the tokenizer whose files lie beside a checkpoint, or None.

    Args:
        checkpoint: the opened checkpoint.
        source: what it was opened from.
        vocab: a vocabulary file to take instead of the one beside the weights.
        say: takes a line where the files do not say whether the tokenizer lower-cases, and it is guessed: it does
            unless the vocabulary has upper-case letters.

    Raises:
        InputError: if a file of the tokenizer is damaged.
    """
    if vocab is not None:
        return _from_vocabulary(Path(vocab), say)
    if not isinstance(source, str | os.PathLike):
        return None
    path = model_directory(source)
    folder = path if path.is_dir() else path.parent
    if checkpoint.format == "keras_hub":
        from keras_bert_impl.checkpoints.keras_hub import keras_hub_tokenizer

        return keras_hub_tokenizer(folder)
    if checkpoint.format == "huggingface":
        return WordPieceTokenizer.from_pretrained(folder) if has_tokenizer(folder) else None
    return _from_vocabulary(folder / "vocab.txt", say) if (folder / "vocab.txt").is_file() else None


def check_rows_for_tokens(tokenizer: WordPieceTokenizer, config: BertConfig) -> None:
    """Raises `InputError` unless a model has a row for every token, and most rows a token.

    Tables are often filled up, to a multiple of 8 to 128. One with tokens for less than half its rows has a vocabulary
    that was cut off, or is another model's.
    """
    if tokenizer.vocab_size > config.vocab_size:
        raise InputError(
            "`model` must have a row for every token of its vocabulary. "
            f"Received: {tokenizer.vocab_size} tokens, {config.vocab_size} rows"
        )
    check_tokens_for_rows(tokenizer, config)


def check_tokens_for_rows(tokenizer: WordPieceTokenizer, config: BertConfig) -> None:
    """Raises `InputError` unless at least half the rows of a model's table have a token, which training asks, too."""
    if missing_tokens(tokenizer, config) and tokenizer.vocab_size < config.vocab_size / 2:
        raise InputError(
            "`model` must have tokens for at least half the rows of its table; this vocabulary was cut off, or is "
            f"another model's. Received: {tokenizer.vocab_size:,} tokens, {config.vocab_size:,} rows"
        )


def missing_tokens(tokenizer: WordPieceTokenizer, config: BertConfig) -> str | None:
    """Returns what is to be said where more rows of a table have no token than fill it up; None where not."""
    if config.vocab_size - tokenizer.vocab_size < _FILLED_UP:
        return None
    return (
        f"The vocabulary has {tokenizer.vocab_size:,} tokens for the {config.vocab_size:,} rows of the model's table: "
        "is it whole?"
    )


def has_tokenizer(folder: Path) -> bool:
    """Whether a directory has a vocabulary in one of the forms that `WordPieceTokenizer.from_pretrained` reads."""
    return any((folder / name).is_file() for name in ("vocab.txt", "tokenizer.json"))


def _from_vocabulary(file: Path, say: Callable[[str], None]) -> WordPieceTokenizer:
    vocabulary = load_vocabulary(file)
    cased = any(token != token.lower() for token in vocabulary if not token.startswith("["))
    kept = "has upper-case letters, so case is kept" if cased else "has no upper-case letter, so text is lower-cased"
    say(f"{file} {kept}.")
    return WordPieceTokenizer(vocabulary, lowercase=not cased)
