"""Settings of how tables of texts are read, the same for every step that has such input."""

from typing import Any

from keras_bert_impl.errors import InputError

from .settings import check_word, setting

TABLE_FORMATS = ("auto", "tsv", "csv", "jsonl", "parquet", "conll", "squad")
HEADER = ("auto", "yes", "no")
_COLUMNS: dict[str, tuple[Any, str]] = {
    "input_format": (
        "auto",
        "tsv, csv, jsonl, parquet, conll (a word and its tag on a line) or squad (JSON); auto: by suffix and content",
    ),
    "text_column": (None, "column of the text, or the question, by name or number from 1; a usual name if not given"),
    "text_pair_column": (None, "column of the second text, or the context; a usual name when not given; '' for none"),
    "label_column": (None, "column of the label, the tag or the answer; a usual name when not given"),
    "id_column": (None, "column of the row's own name; a usual name when not given; '' for none"),
    "delimiter": (None, "tsv, csv: one character between columns; found out when not given"),
    "header": ("auto", "tsv, csv: whether the first line names the columns: auto, yes or no"),
    "encoding": (None, "of text files; UTF-8 and what a byte order mark says when not given"),
}
COLUMN_SETTINGS = tuple(_COLUMNS)


def column_field(name: str) -> Any:
    """Returns the field of a setting."""
    default, text = _COLUMNS[name]
    return setting(default, help=text)


def check_columns(config: Any) -> None:
    """Checks the settings of reading tables."""
    check_word(config, "input_format", TABLE_FORMATS)
    check_word(config, "header", HEADER)
    for name in ("text_column", "text_pair_column", "label_column", "id_column"):
        value = getattr(config, name)
        optional = name in ("text_pair_column", "id_column")
        if value is not None and (not isinstance(value, str) or (not value and not optional)):
            raise InputError(
                f"`{name}` must be the name or the number of a column, as text. Received: {name}={value!r}"
            )
    if config.delimiter is not None and (not isinstance(config.delimiter, str) or len(config.delimiter) != 1):
        raise InputError(f"`delimiter` must be one character. Received: delimiter={config.delimiter!r}")
    if config.encoding is not None:
        try:
            "".encode(config.encoding)
        except (LookupError, TypeError) as error:
            raise InputError(
                f"`encoding` must be one that Python knows. Received: encoding={config.encoding!r}"
            ) from error
