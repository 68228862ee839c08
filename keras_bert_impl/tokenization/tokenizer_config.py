"""A tokenizer's options in the files that Hugging Face's tokenizers use."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError

CONFIG_FILE = "tokenizer_config.json"
FAST_FILE = "tokenizer.json"
ADDED_FILE = "added_tokens.json"  # of tokenizers saved by early versions
_ADDED_KEY = "added_tokens_decoder"
_LONGEST_KEY = "model_max_length"


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class _Key(NamedTuple):
    """A key of a file, and what its value must be."""

    name: str
    is_right: Callable[[Any], bool]
    rule: str


def _switch(name: str) -> _Key:
    return _Key(name, _is_switch, "true, false or null")


def _count(name: str) -> _Key:
    return _Key(name, _is_count, "a positive whole number")


def _token(name: str) -> _Key:
    return _Key(name, _is_token, "a token, that is, text that is not empty")


# Our option: its key in tokenizer_config.json.
_KEYS = {
    "lowercase": _switch("do_lower_case"),
    "strip_accents": _switch("strip_accents"),
    "split_cjk": _switch("tokenize_chinese_chars"),
    "max_chars_per_word": _count("max_input_chars_per_word"),
    "unk_token": _token("unk_token"),
    "cls_token": _token("cls_token"),
    "sep_token": _token("sep_token"),
    "pad_token": _token("pad_token"),
    "mask_token": _token("mask_token"),
}

# The same for tokenizer.json, in two of its sections.
_FAST_KEYS = {
    "normalizer": {
        "lowercase": _switch("lowercase"),
        "strip_accents": _switch("strip_accents"),
        "split_cjk": _switch("handle_chinese_chars"),
    },
    "model": {"max_chars_per_word": _count("max_input_chars_per_word"), "unk_token": _token("unk_token")},
}


def read_options(directory: Path) -> dict[str, Any]:
    """Returns the options found in `directory`, by our names; those of tokenizer_config.json come first.

    Raises:
        InputError: if a file is no JSON object or a value is not of its key's kind.
    """
    found: dict[str, Any] = {}
    fast = _read_json(directory / FAST_FILE)
    for section, keys in _FAST_KEYS.items():
        values = _part(fast, section, dict, directory / FAST_FILE) or {}
        found |= _checked(values, keys, directory / FAST_FILE, f"{section}.")
    found |= _checked(_read_json(directory / CONFIG_FILE), _KEYS, directory / CONFIG_FILE)
    if added := read_added_tokens(directory):
        found["added_tokens"] = tuple(added)
    return found


def read_added_tokens(directory: Path) -> dict[str, int]:
    """Returns the tokens that are kept whole in a text, special ones among them, with their ids, in order of id.

    They are those of tokenizer_config.json, else of tokenizer.json, else of added_tokens.json.

    Raises:
        InputError: if an entry has no text or id, an id is there twice, or a token is to be found as a whole word
            only, which this tokenizer has no rule for.
    """
    config = _read_json(directory / CONFIG_FILE)
    fast = _read_json(directory / FAST_FILE)
    in_config = _part(config, _ADDED_KEY, dict, directory / CONFIG_FILE)
    in_fast = _part(fast, "added_tokens", list, directory / FAST_FILE)
    if in_config:
        file, key = directory / CONFIG_FILE, _ADDED_KEY
        entries = list(in_config.items())
    elif in_fast:
        file, key = directory / FAST_FILE, "added_tokens"
        entries = [(token.get("id") if isinstance(token, dict) else None, token) for token in in_fast]
    else:
        file, key = directory / ADDED_FILE, "added_tokens"
        entries = [(number, {"content": token}) for token, number in _read_json(file).items()]
    ids: dict[str, int] = {}
    for number, token in entries:
        token_id = int(number) if isinstance(number, str) and number.isascii() and number.isdigit() else number
        content: Any = token.get("content") if isinstance(token, dict) else None
        if not _is_token(content) or not isinstance(token_id, int) or isinstance(token_id, bool) or token_id < 0:
            entry = {number: token} if isinstance(number, str | int) else token
            raise _wrong(key, "hold an id and a `content` for every token", file, entry)
        if token.get("single_word", False) is not False:
            raise _wrong(key, "be found anywhere in a text, not as single words only", file, content)
        if content in ids or token_id in ids.values():
            raise _wrong(key, "have every token and every id once", file, {number: content})
        ids[content] = token_id
    return {token: ids[token] for token in sorted(ids, key=ids.__getitem__)}


def with_added_tokens(vocabulary: Iterable[str], added: Mapping[str, int], directory: Path) -> list[str]:
    """Returns the vocabulary with the added tokens that it lacks at its end.

    Raises:
        InputError: if their ids do not fit those of the vocabulary.
    """
    tokens = list(vocabulary)
    id_of = {token: index for index, token in enumerate(tokens)}
    for token, token_id in added.items():
        if token not in id_of and token_id == len(tokens):
            id_of[token] = token_id
            tokens.append(token)
        if id_of.get(token) != token_id:
            raise InputError(
                "`added_tokens` must have the ids that the vocabulary gives them, or go on from its end. "
                f"Received: {str(directory)!r}, {token!r} with id {token_id}, where the vocabulary has "
                f"{id_of[token] if token in id_of else f'{len(tokens)} tokens without it'}"
            )
    return tokens


def read_fast_vocabulary(directory: Path) -> list[str]:
    """Returns the vocabulary in tokenizer.json, its added tokens included, in the order of their ids.

    Raises:
        InputError: if the file is damaged, or holds another model than WordPiece or ids with gaps.
    """
    file = directory / FAST_FILE
    fast = _read_json(file)
    model = _part(fast, "model", dict, file) or {}
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
    ids = {**vocab, **read_added_tokens(directory)}
    if not all(type(number) is int for number in ids.values()):
        raise _wrong("model.vocab", "give every token a whole number", file, next(iter(vocab.items()), None))
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise InputError(f"`{FAST_FILE}` must give the ids 0, 1, 2, … once each. Received: {str(file)!r}")
    return tokens


def write_options(options: Mapping[str, Any], added: Mapping[str, int], directory: Path) -> None:
    """Writes tokenizer_config.json; `options` has our names, `added` the added tokens with their ids."""
    config = {key.name: options[option] for option, key in _KEYS.items()}
    if added:
        rules = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": False}
        config[_ADDED_KEY] = {str(number): {"content": token, **rules} for token, number in added.items()}
    _write_json({**config, "tokenizer_class": "BertTokenizer"}, directory / CONFIG_FILE)


def write_longest_row(length: int, directory: Path) -> None:
    """Writes into tokenizer_config.json, if it is there and says nothing of it, how many ids the model takes.

    Hugging Face's tokenizers cut texts there.
    """
    file = directory / CONFIG_FILE
    if file.is_file() and _LONGEST_KEY not in (config := _read_json(file)):
        _write_json({**config, _LONGEST_KEY: length}, file)


def _write_json(config: Mapping[str, Any], path: Path) -> None:
    with atomic_file(path) as file:
        json.dump(config, file, indent=2, ensure_ascii=False)
        file.write("\n")


def _checked(values: Mapping[str, Any], keys: Mapping[str, _Key], file: Path, prefix: str = "") -> dict[str, Any]:
    """Returns the values that are given, by our names."""
    found = {}
    for option, key in keys.items():
        value = values.get(key.name)
        if key.is_right is _is_token and isinstance(value, dict):  # a token with its matching rules
            value = value.get("content", value)
        if value is None:
            continue
        if not key.is_right(value):
            raise _wrong(prefix + key.name, f"be {key.rule}", file, value)
        found[option] = value
    return found


def _part(content: Mapping[str, Any], key: str, kind: type, file: Path) -> Any:
    """Returns what a file has under a key, or None."""
    part = content.get(key)
    if part is not None and not isinstance(part, kind):
        raise _wrong(key, f"be a JSON {'object' if kind is dict else 'array'}", file, part)
    return part


def _wrong(key: str, rule: str, file: Path, value: Any) -> InputError:
    return InputError(f"`{key}` must {rule}. Received: {value!r}, in {str(file)!r}")


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path.name}` must be JSON. Received: {str(path)!r} ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"`{path.name}` must hold a JSON object. Received: {str(path)!r}")
    return content
