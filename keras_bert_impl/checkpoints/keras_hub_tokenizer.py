"""The tokenizer of a KerasHub preset."""

import os
from pathlib import Path
from typing import Any

from keras_bert_impl.checkpoints.keras_hub_config import class_and_values
from keras_bert_impl.checkpoints.keras_hub_names import TOKENIZER_FILE, VOCABULARY_FILE
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import CONTINUATION, WordPieceTokenizer

# Our option: KerasHub's key and its default.
_SWITCHES = {
    "lowercase": ("lowercase", False),
    "strip_accents": ("strip_accents", False),
    "split_cjk": ("split_on_cjk", True),
}
LONGEST_WORD = 100
"""Bytes of the longest word that KerasHub cuts into pieces; it has no option for it."""


def keras_hub_tokenizer(path: str | os.PathLike[str]) -> WordPieceTokenizer | None:
    """Returns the tokenizer of a preset directory, or None if it has none.

    It has the vocabulary and the options of KerasHub's, and yet is the original BERT's: KerasHub folds the case of
    some letters otherwise, counts the bytes and not the letters of long words, and keeps control characters.

    Raises:
        InputError: if it is no `BertTokenizer`, its vocabulary is absent or damaged, or it cuts text otherwise than
            a BERT does.
    """
    folder = Path(path)
    file = folder / TOKENIZER_FILE
    if not file.is_file():
        return None
    name, values = class_and_values(file)
    if name != "BertTokenizer":
        raise InputError(f"`path` must hold a KerasHub BertTokenizer. Received: {str(file)!r}, of class {name!r}")
    for key, required in (("split", True), ("suffix_indicator", CONTINUATION)):
        if values.get(key, required) != required:
            raise InputError(
                f"`path` must hold a tokenizer with {key}={required!r}. Received: {str(file)!r}, {key}={values[key]!r}"
            )
    options: dict[str, Any] = {ours: values.get(theirs, default) for ours, (theirs, default) in _SWITCHES.items()}
    options["unk_token"] = values.get("oov_token", "[UNK]")
    for option, value in options.items():
        if not isinstance(value, str if option == "unk_token" else bool):
            raise InputError(f"`path` must hold a usable tokenizer. Received: {str(file)!r}, {option}={value!r}")
    return WordPieceTokenizer.from_vocab_file(folder / VOCABULARY_FILE, max_chars_per_word=LONGEST_WORD, **options)


def keras_hub_tokenizer_config(tokenizer: WordPieceTokenizer) -> dict[str, Any]:
    """Returns the arguments of the `BertTokenizer` that has the vocabulary and the options of ours.

    Raises:
        InputError: if KerasHub could not read its vocabulary back, or has no argument for one of its options.
    """
    for option in ("cls", "sep", "pad", "mask"):
        token = getattr(tokenizer, f"{option}_token")
        if token != f"[{option.upper()}]":
            raise InputError(
                f"`tokenizer` must call its special tokens as KerasHub does. Received: {option}_token={token!r}"
            )
    if tokenizer.added_tokens:
        raise InputError(
            "`tokenizer` must have no added tokens, which KerasHub would cut into pieces. "
            f"Received: added_tokens={list(tokenizer.added_tokens)!r}"
        )
    if lost := [token for token in tokenizer.vocabulary if token != token.rstrip() or "\r" in token or "\n" in token]:
        raise InputError(
            "`tokenizer` must have no token that ends with white space, which KerasHub takes off. "
            f"Received: {lost[0]!r}"
        )
    strip_accents = tokenizer.lowercase if tokenizer.strip_accents is None else tokenizer.strip_accents
    return {
        "vocabulary": None,  # KerasHub reads it from its file
        "sequence_length": None,
        "lowercase": tokenizer.lowercase,
        "strip_accents": strip_accents,
        "split": True,
        # KerasHub takes this argument, though its own presets leave it out.
        **({} if tokenizer.split_cjk else {"split_on_cjk": False}),
        "suffix_indicator": CONTINUATION,
        "oov_token": tokenizer.unk_token,
        "special_tokens": None,
        "special_tokens_in_strings": False,
    }
