"""Settings of `evaluate`."""

import dataclasses

from keras_bert_impl.errors import InputError

from .columns import COLUMN_SETTINGS, check_columns, column_field
from .masking import check_given_masks
from .settings import ANY, Settings, check_defaults, check_range, check_seed, list_of_files, setting

_OF_PRETRAINING = ("lengths", "examples", "masked_share", "masking", "max_ngram", "seed")
_OF_LABELLED = (*COLUMN_SETTINGS, "label_separator", "predictions")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(Settings):
    """Measure a pretrained model on held-out examples, or a fine-tuned one on labelled examples."""

    model: str = setting(help="model directory or run directory")
    data: str | None = setting(None, help="directory that `prepare` wrote; or else `input`")
    input: tuple[str, ...] = setting((), help="files of labelled examples, for a fine-tuned model; or else `data`")
    lengths: tuple[int, ...] | None = setting(None, help="sequence lengths; all that the data has when not given")
    batch_size: int = setting(32, help="examples, or rows, per batch")
    examples: int = setting(0, help="held-out examples per length; 0 for all")
    masked_share: float | None = setting(
        None, help="share of the positions to predict; that of the run when not given, 0.15 for a model directory"
    )
    masking: str | None = setting(
        None, help="'token', 'whole-word' or 'n-gram'; that of the run when not given, 'token' for a model directory"
    )
    max_ngram: int | None = setting(None, help="n-gram: most words of one; that of the run, or 3, when not given")
    seed: int = setting(1, help="seed of the masks")
    output: str | None = setting(None, help="file to write the metrics to, as JSON")
    predictions: str | None = setting(
        None, help="input: file to write the answers to, as JSON lines, each with the right answer beside it"
    )
    input_format: str = column_field("input_format")
    text_column: str | None = column_field("text_column")
    text_pair_column: str | None = column_field("text_pair_column")
    label_column: str | None = column_field("label_column")
    id_column: str | None = column_field("id_column")
    delimiter: str | None = column_field("delimiter")
    header: str = column_field("header")
    encoding: str | None = column_field("encoding")
    label_separator: str = setting(",", help="multilabel: what stands between the labels of a row")

    def __post_init__(self) -> None:
        object.__setattr__(self, "input", list_of_files("input", self.input))
        if (self.data is None) == (not self.input):
            raise InputError(
                "`data` of a pretrained model, or `input` of a fine-tuned one, must be given, and not both. "
                f"Received: data={self.data!r}, input={list(self.input)}"
            )
        if self.input:
            check_defaults(self, _OF_PRETRAINING, "`input`, labelled examples")
        else:
            check_defaults(self, _OF_LABELLED, "`data`, pretraining examples")
        check_columns(self)
        if not isinstance(self.label_separator, str) or not self.label_separator:
            raise InputError(f"`label_separator` must be text. Received: label_separator={self.label_separator!r}")
        if self.lengths is not None and len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"`lengths` must be different numbers. Received: lengths={list(self.lengths)}")
        check_range(self, "batch_size", 1, ANY)
        check_seed(self.seed)
        check_range(self, "examples", 0, ANY)
        check_given_masks(self, "n-gram" if self.masking is None else self.masking)
