"""Settings of how text is read, the same for every step that has inputs."""

from typing import Any

from keras_bert_impl.errors import InputError

from .settings import check_range, check_word, setting

INPUTS = "files, directories, patterns or - for standard input: .txt, .jsonl, .parquet; .gz, .xz, .bz2, .zst"
# How text is read: the fields of `corpus.readers.Reading`, the same in every class that has inputs.
_READING: dict[str, tuple[Any, str]] = {
    "input_format": ("auto", "txt, jsonl or parquet; auto: by the suffix, txt for an unknown one"),
    "documents": (
        "blank-lines",
        "a document of a .txt file is what stands between 'blank-lines', the whole 'file', or a 'line'",
    ),
    "text_field": ("text", "field (.jsonl) or column (.parquet) that holds the text of a document"),
    "on_bad_bytes": ("error", "what is not UTF-8: 'error', or 'replace' by U+FFFD"),
    "max_document_chars": (1_000_000, "longer documents and lines are cut"),
}
_READING_WORDS = {
    "input_format": ("auto", "txt", "jsonl", "parquet"),
    "documents": ("blank-lines", "file", "line"),
    "on_bad_bytes": ("error", "replace"),
}


def reading_field(name: str) -> Any:
    """Returns the field of a setting."""
    default, text = _READING[name]
    return setting(default, help=text)


def check_reading(config: Any) -> None:
    """Checks the settings of reading."""
    for name, words in _READING_WORDS.items():
        check_word(config, name, words)
    if not isinstance(config.text_field, str) or not config.text_field:
        raise InputError(f"`text_field` must be a name. Received: text_field={config.text_field!r}")
    check_range(config, "max_document_chars", 1000, 100_000_000)
