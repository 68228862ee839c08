"""Settings of `predict`."""

import dataclasses

from keras_bert_impl.errors import InputError

from .columns import check_columns, column_field
from .settings import ANY, Settings, check_range, check_word, setting

STANDARD_STREAM = "-"
ANSWER_FORMATS = ("jsonl", "csv", "tsv", "conll", "npy")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictConfig(Settings):
    """Let a model answer texts: one row out for each row in, in the same order."""

    model: str = setting(help="model directory, run directory or .tflite file")
    input: str = setting(STANDARD_STREAM, help="file of texts, with or without labels; - for standard input")
    output: str = setting(
        STANDARD_STREAM,
        help="file to write: .jsonl, .csv, .tsv, .conll (tags), .npy (vectors); - for standard output",
    )
    task: str | None = setting(
        None, help="embed: sentence vectors of any model; what the model was trained for when not given"
    )
    output_format: str = setting(
        "auto", help="jsonl, csv, tsv, conll (tags) or npy (vectors); auto: by the suffix of the output, else jsonl"
    )
    label_separator: str = setting(",", help="csv, tsv: what stands between several labels of a row")
    input_format: str = column_field("input_format")
    text_column: str | None = column_field("text_column")
    text_pair_column: str | None = column_field("text_pair_column")
    id_column: str | None = column_field("id_column")
    delimiter: str | None = column_field("delimiter")
    header: str = column_field("header")
    encoding: str | None = column_field("encoding")
    max_length: int | None = setting(None, help="most ids in a row; that of the training when not given")
    long_texts: str = setting(
        "truncate",
        help="classes, numbers, vectors: texts longer than a row are cut off, or taken in 'windows' and averaged",
    )
    pooling: str = setting("mean", help="embed: 'mean' of the tokens, of length 1; 'cls' or 'pooler'")
    n_best: int = setting(1, help="qa: answers for each question")
    null_threshold: float | None = setting(
        None, help="qa: how much better 'no answer' must score than an answer; what was chosen on dev when not given"
    )
    batch_size: int = setting(32, help="rows per batch")

    def __post_init__(self) -> None:
        for name in ("model", "input", "output"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value or "\0" in value:
                raise InputError(f"`{name}` must be a name. Received: {name}={value!r}")
        if self.task is not None:
            check_word(self, "task", ("embed", "classification", "multilabel", "regression", "tagging", "qa"))
        check_word(self, "output_format", ("auto", *ANSWER_FORMATS))
        if not isinstance(self.label_separator, str) or not self.label_separator:
            raise InputError(f"`label_separator` must be text. Received: label_separator={self.label_separator!r}")
        check_columns(self)
        if self.max_length is not None:
            check_range(self, "max_length", 8, 1_000_000)
        check_word(self, "long_texts", ("truncate", "windows"))
        check_word(self, "pooling", ("mean", "cls", "pooler"))
        check_range(self, "n_best", 1, 1000)
        if self.null_threshold is not None:
            check_range(self, "null_threshold", -ANY, ANY)
        check_range(self, "batch_size", 1, ANY)

    @property
    def label_column(self) -> None:
        """Labels are not read."""
        return None
