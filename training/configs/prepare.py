"""Settings of `prepare`."""

import dataclasses
from typing import Any

from keras_bert_impl.errors import InputError

from .masking import check_given_masks
from .reading import INPUTS, check_reading, reading_field
from .settings import ANY, Settings, check_defaults, check_range, check_seed, check_word, list_of_files, setting

# Those whose abbreviations and sentence ends `sentencex` has rules for, and Chinese, whose ends it knows in any
# language. For other codes it falls back on one of these, or on English, without a word.
LANGUAGES = tuple(
    "am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn ml mr my nl pa pl pt ru sk ta te uk zh".split()
)

# Settings that say how pairs are made.
PAIRS_ONLY = ("short_seq_prob", "next_sentence_prob", "passes")

# Settings of static masks and what they are when not given.
_STATIC_MASKS = {"epochs": 10, "masked_share": 0.15, "masking": "token", "max_ngram": 3, "max_predictions": None}

# What the original's script can be told too; all else it does in its own way.
REFERENCE_SETTINGS = {
    *("inputs", "vocab", "output", "lengths", "seed", "workers", "cased", "short_seq_prob", "format", "reference"),
    *("epochs", "masked_share", "masking", "max_predictions", "reference_limit"),
}

# More processes than any machine for this has cores; each takes some hundred megabytes.
MOST_WORKERS = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareConfig(Settings):
    """Turn text into pretraining examples: sentence pairs, unmasked, in random-access shards."""

    inputs: tuple[str, ...] = setting(help=INPUTS)
    vocab: str = setting(help="vocabulary file, or a model directory that has one")
    output: str = setting(help="directory to write; new or empty")
    lengths: tuple[int, ...] = setting((128, 512), help="sequence lengths, in tokens with the special ones")
    seed: int = setting(1, help="seed of every random choice")
    workers: int = setting(2, help="worker processes; the result does not depend on their number")
    cased: bool = setting(False, help="keep upper case and accents (ignored where a model directory says)")
    input_format: str = reading_field("input_format")
    documents: str = reading_field("documents")
    text_field: str = reading_field("text_field")
    on_bad_bytes: str = reading_field("on_bad_bytes")
    max_document_chars: int = reading_field("max_document_chars")
    language: str = setting("en", help="language code for the sentence splitter, such as en or zh")
    sentences: str = setting(
        "auto", help="'lines': a sentence per line; 'split': running text; 'auto': decided per document"
    )
    max_sentence_chars: int = setting(10_000, help="longer sentences are cut")
    near_duplicates: str = setting(
        "report",
        help="documents that are nearly the same: 'remove' all but the first; 'report': count them and keep them on "
        "one side of training and held-out part; 'off'",
    )
    exclude: tuple[str, ...] = setting(
        (), help="files such as test sets: documents that share a run of words with them are left out"
    )
    exclude_words: int = setting(13, help="length of such a run, in words")
    exclude_field: str | None = setting(
        None, help="field or column of the excluded files; that of text_field when not given"
    )
    held_out_share: float = setting(0.05, help="share of the documents kept out of training, for evaluation")
    word_boundaries: str = setting(
        "pieces",
        help="words that are masked whole: of 'pieces', as the vocabulary has them; 'spaces': what stands between "
        "spaces, for text that is cut into words already; 'jieba': Chinese words",
    )
    examples: str = setting(
        "pairs",
        help="'pairs' of sentences, for next-sentence prediction; 'chunks': full sentences of one document, without it",
    )
    short_seq_prob: float = setting(0.1, help="share of examples made shorter than the length")
    next_sentence_prob: float = setting(
        0.5,
        help="share of the chunks of two or more sentences whose second part is a random one; "
        "a chunk of a single sentence always takes one, except at 0",
    )
    passes: int = setting(1, help="times each document is cut into pairs anew (masks are new in every epoch anyway)")
    format: str | None = setting(
        None,
        help="'prepared', the default: unmasked examples, their masks drawn when they are read; 'tfrecord': the "
        "original's TFRecord files, with static masks",
    )
    epochs: int | None = setting(
        None, help="tfrecord: times every example is written, each time with other masks; 10 when not given"
    )
    masked_share: float | None = setting(None, help="tfrecord: share of the positions to predict; 0.15 when not given")
    masking: str | None = setting(None, help="tfrecord: 'token' (when not given), 'whole-word' or 'n-gram'")
    max_ngram: int | None = setting(None, help="tfrecord: most words of an n-gram; 3 when not given")
    max_predictions: int | None = setting(
        None,
        help="tfrecord: prediction slots of a row, at most the shortest length; "
        "masked_share of the length, rounded up, when not given",
    )
    reference: bool = setting(
        False, help="write the very instances of the original's script, as TFRecord files: in memory, on one core"
    )
    reference_limit: int | None = setting(
        None, help="reference: most megabytes of text times epochs to hold in memory; 200 when not given"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", list_of_files("inputs", self.inputs))
        object.__setattr__(self, "exclude", list_of_files("exclude", self.exclude))
        check_reading(self)
        if not isinstance(self.lengths, list | tuple) or not all(type(length) is int for length in self.lengths):
            raise InputError(f"`lengths` must be a list of whole numbers. Received: lengths={self.lengths!r}")
        object.__setattr__(self, "lengths", tuple(self.lengths))
        if not self.lengths or len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"`lengths` must be one or more different numbers. Received: lengths={self.lengths!r}")
        if min(self.lengths) < 8 or max(self.lengths) > 65535:
            raise InputError(f"`lengths` must be from 8 to 65535. Received: lengths={self.lengths!r}")
        check_word(self, "sentences", ("auto", "lines", "split"))
        check_word(self, "near_duplicates", ("off", "report", "remove"))
        check_word(self, "word_boundaries", ("pieces", "spaces", "jieba"))
        check_word(self, "examples", ("pairs", "chunks"))
        if self.language not in LANGUAGES:
            raise InputError(
                f"`language` must be one of {', '.join(LANGUAGES)}; for another one give that which ends its "
                f"sentences most alike. Received: language={self.language!r}"
            )
        check_seed(self.seed)
        check_range(self, "max_sentence_chars", 100, 1_000_000)
        if "-" in self.exclude:
            raise InputError("`exclude` must name files; standard input is for `inputs`. Received: '-'")
        check_range(self, "exclude_words", 1, 1000)
        check_range(self, "workers", 1, MOST_WORKERS)
        check_range(self, "passes", 1, ANY)
        check_range(self, "held_out_share", 0, 0.5)
        check_range(self, "short_seq_prob", 0, 1)
        check_range(self, "next_sentence_prob", 0, 1)
        if self.examples == "chunks":
            check_defaults(self, PAIRS_ONLY, "`examples` chunks, which fill the rows in one way")
        _check_records(self)

    @property
    def writes_records(self) -> bool:
        """Whether TFRecord files are written, with static masks."""
        return self.reference or self.format == "tfrecord"

    @property
    def static_masks(self) -> dict[str, Any]:
        """The settings of static masks, every one decided but `max_predictions`, which may be None."""
        given = {name: getattr(self, name) for name in _STATIC_MASKS}
        return {name: _STATIC_MASKS[name] if value is None else value for name, value in given.items()}


def _check_records(config: PrepareConfig) -> None:
    """Checks the settings of the form in which examples are written, and which of them go together."""
    if config.format is not None:
        check_word(config, "format", ("prepared", "tfrecord"))
    if config.reference and config.format == "prepared":
        raise InputError(
            "`reference` must go with `format` tfrecord, for it has the original's masks. "
            "Received: reference=True, format='prepared'"
        )
    if not config.reference and config.reference_limit is not None:
        raise InputError(
            f"`reference_limit` must go with `reference`. Received: reference_limit={config.reference_limit!r}"
        )
    if config.writes_records and config.examples == "chunks":
        raise InputError(
            "`examples` must be pairs for TFRecord files, every record of which has a next-sentence label. "
            "Received: examples='chunks'"
        )
    given = [name for name in _STATIC_MASKS if getattr(config, name) is not None]
    if given and not config.writes_records:
        raise InputError(
            f"`{given[0]}` must go with `format` tfrecord; prepared data gets its masks when it is read. "
            f"Received: {given[0]}={getattr(config, given[0])!r}"
        )
    for name in ("epochs", "max_predictions", "reference_limit"):
        if getattr(config, name) is not None:
            check_range(config, name, 1, ANY)
    if config.max_predictions is not None and config.max_predictions > min(config.lengths):
        raise InputError(
            f"`max_predictions` must be at most the shortest length, {min(config.lengths)}. "
            f"Received: max_predictions={config.max_predictions!r}"
        )
    check_given_masks(config, config.masking)
    if config.reference:
        _check_reference(config)


def _check_reference(config: PrepareConfig) -> None:
    if config.masking == "n-gram":
        raise InputError("`masking` must be token or whole-word for `reference`. Received: masking='n-gram'")
    others = {field.name for field in dataclasses.fields(config)} - REFERENCE_SETTINGS
    check_defaults(config, others, "`reference`, which does all as the original does")
