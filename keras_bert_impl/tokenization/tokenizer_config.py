"""A tokenizer's options in the files that Hugging Face's tokenizers use."""

import json
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError

CONFIG_FILE = "tokenizer_config.json"
FAST_FILE = "tokenizer.json"

# Our option: its key in tokenizer_config.json.
_KEYS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "split_cjk": "tokenize_chinese_chars",
    "max_chars_per_word": "max_input_chars_per_word",
    "unk_token": "unk_token",
    "cls_token": "cls_token",
    "sep_token": "sep_token",
    "pad_token": "pad_token",
    "mask_token": "mask_token",
}


def read_options(directory: Path) -> dict[str, Any]:
    """Returns the options found in `directory`, by our names; those of tokenizer_config.json come first."""
    fast = _read_json(directory / FAST_FILE)
    normalizer = fast.get("normalizer") or {}
    model = fast.get("model") or {}
    found = {
        "lowercase": normalizer.get("lowercase"),
        "strip_accents": normalizer.get("strip_accents"),
        "split_cjk": normalizer.get("handle_chinese_chars"),
        "max_chars_per_word": model.get("max_input_chars_per_word"),
        "unk_token": model.get("unk_token"),
    }
    config = _read_json(directory / CONFIG_FILE)
    for option, key in _KEYS.items():
        value = config.get(key)
        if isinstance(value, dict):  # an added token with its matching rules
            value = value.get("content")
        if value is not None:
            found[option] = value
    return {option: value for option, value in found.items() if value is not None}


def read_fast_vocabulary(directory: Path) -> list[str]:
    """Returns the vocabulary in tokenizer.json, its added tokens included, in the order of their ids.

    Raises:
        InputError: if the file is damaged, or holds another model than WordPiece or ids with gaps.
    """
    file = directory / FAST_FILE
    fast = _read_json(file)
    model = fast.get("model") or {}
    vocab = model.get("vocab")
    if model.get("type", "WordPiece") != "WordPiece" or not isinstance(vocab, dict):
        raise InputError(
            f"`{FAST_FILE}` must hold a WordPiece vocabulary. Received: {str(file)!r}, type={model.get('type')!r}"
        )
    if model.get("continuing_subword_prefix", "##") != "##":
        raise InputError(
            f"`{FAST_FILE}` must mark pieces inside a word by '##'. "
            f"Received: {str(file)!r}, {model['continuing_subword_prefix']!r}"
        )
    ids = {**vocab, **{token["content"]: token["id"] for token in fast.get("added_tokens") or []}}
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise InputError(f"`{FAST_FILE}` must give the ids 0, 1, 2, … once each. Received: {str(file)!r}")
    return tokens


def write_options(options: dict[str, Any], directory: Path) -> None:
    """Writes tokenizer_config.json; `options` has our names."""
    config = {_KEYS[option]: value for option, value in options.items()}
    with atomic_file(directory / CONFIG_FILE) as file:
        json.dump({**config, "tokenizer_class": "BertTokenizer"}, file, indent=2, ensure_ascii=False)
        file.write("\n")


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"`{path.name}` must be JSON. Received: {str(path)!r} ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"`{path.name}` must hold a JSON object. Received: {str(path)!r}")
    return content
