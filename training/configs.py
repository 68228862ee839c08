"""Settings of every step on the way, as typed data.

No TensorFlow here: the command line builds its options from these classes. Each field's help text is
its documentation; the defaults are the original BERT's unless the text says otherwise.
"""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any, Self

from keras_bert_impl.errors import InputError

_REQUIRED: Any = dataclasses.MISSING


def setting(default: Any = _REQUIRED, *, help: str) -> Any:
    """A dataclass field with its help text; without a default it must be given."""
    if isinstance(default, list | tuple):
        return dataclasses.field(default_factory=lambda: tuple(default), metadata={"help": help})
    return dataclasses.field(default=default, metadata={"help": help})


class Settings:
    """What every settings class can do."""

    @classmethod
    def from_dict(cls, values: dict[str, Any], name: str | None = None) -> Self:
        """Builds the settings; an unknown or missing key raises `InputError` with the known ones.

        Args:
            values: the fields.
            name: what error messages call the settings; the class's name when not given.
        """
        name = name or cls.__name__
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        known = [field.name for field in fields]
        if unknown := sorted(values.keys() - set(known)):
            raise InputError(f"Unknown `{name}` keys: {unknown}. Known keys: {known}")
        for field in fields:
            no_default = field.default is _REQUIRED and field.default_factory is _REQUIRED
            if no_default and field.name not in values:
                raise InputError(f"`{name}` needs the key {field.name!r}. Received: {sorted(values)}")
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields as plain JSON values."""
        return dataclasses.asdict(self)  # type: ignore[call-overload]


def _check_range(config: Any, name: str, low: float, high: float, *, low_open: bool = False) -> None:
    value = getattr(config, name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (low < value if low_open else low <= value) or not value <= high:
        rule = f"a number {'more than' if low_open else 'of at least'} {low}"
        if high < _ANY or (number and value > high):
            rule += f" and at most {high:g}"
        raise InputError(f"`{name}` must be {rule}. Received: {name}={value!r}")


_ANY = float(2**62)

# The hashes that every choice comes from know seeds of 64 bits; others would silently be taken for one of these.
_SEEDS = 2**64


def check_seed(seed: Any) -> None:
    """Raises `InputError` unless the seed is a whole number of 64 bits."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < _SEEDS:
        raise InputError(f"`seed` must be a whole number from 0 to {_SEEDS - 1}. Received: seed={seed!r}")


# Those whose abbreviations and sentence ends `sentencex` has rules for, and Chinese, whose ends it knows in any
# language. For other codes it falls back on one of these, or on English, without a word.
LANGUAGES = tuple(
    "am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn ml mr my nl pa pl pt ru sk ta te uk zh".split()
)


def _list_of_files(name: str, files: Any) -> tuple[str, ...]:
    if isinstance(files, str | bytes | os.PathLike):
        raise InputError(f"`{name}` must be a list of files, not a single name. Received: {name}={files!r}")
    return tuple(files)


_INPUTS = "files, directories, patterns or - for standard input: .txt, .jsonl, .parquet; .gz, .xz, .zst"
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


def _reading(name: str) -> Any:
    default, text = _READING[name]
    return setting(default, help=text)


def _check_word(config: Any, name: str, words: tuple[str, ...]) -> None:
    value = getattr(config, name)
    if value not in words:
        rule = f"{', '.join(words[:-1])} or {words[-1]}"
        raise InputError(f"`{name}` must be {rule}. Received: {name}={value!r}")


def _check_reading(config: Any) -> None:
    for name, words in _READING_WORDS.items():
        _check_word(config, name, words)
    if not isinstance(config.text_field, str) or not config.text_field:
        raise InputError(f"`text_field` must be a name. Received: text_field={config.text_field!r}")
    _check_range(config, "max_document_chars", 1000, 100_000_000)


# What is masked together, the same in training and evaluation.
_MASKING: dict[str, tuple[Any, str]] = {
    "masking": ("token", "what is masked together: a 'token', a 'whole-word', or an 'n-gram' of words"),
    "max_ngram": (3, "most words of an n-gram; n of them are drawn with a probability in proportion to 1/n"),
}


def _masking(name: str) -> Any:
    default, text = _MASKING[name]
    return setting(default, help=text)


MASKING_KINDS = ("token", "whole-word", "n-gram")


def _check_masking(config: Any) -> None:
    _check_word(config, "masking", MASKING_KINDS)
    _check_range(config, "max_ngram", 1, 10)
    if config.max_ngram != _MASKING["max_ngram"][0]:
        _check_max_ngram(config, config.masking)


def _check_given_masks(config: Any, masking: str | None) -> None:
    """Checks settings of masks that may be left open; `masking` is what `max_ngram` has to go with."""
    if config.masked_share is not None:
        _check_range(config, "masked_share", 0, 1, low_open=True)
    if config.masking is not None:
        _check_word(config, "masking", MASKING_KINDS)
    if config.max_ngram is not None:
        _check_range(config, "max_ngram", 1, 10)
        _check_max_ngram(config, masking)


def _check_max_ngram(config: Any, masking: str | None) -> None:
    if masking != "n-gram":
        raise InputError(
            f"`max_ngram` must go with `masking` n-gram. Received: max_ngram={config.max_ngram}, masking={masking!r}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class VocabConfig(Settings):
    """Learn a WordPiece vocabulary from text, or add the words that one lacks."""

    inputs: tuple[str, ...] = setting(help=_INPUTS)
    output: str = setting(help="vocabulary file to write, one token per line")
    size: int = setting(30522, help="number of tokens, the special ones included")
    cased: bool = setting(False, help="keep upper case and accents")
    min_frequency: int = setting(2, help="a pair of pieces is merged, or a word added, only if it occurs this often")
    unused: int = setting(0, help="slots [unused0], [unused1], … to keep free, after [PAD]; 99 in the released ones")
    character_coverage: float = setting(1.0, help="share of the text whose characters get tokens, the commonest first")
    extend: str | None = setting(
        None, help="vocabulary file, or a model directory that has one: keep its tokens and add words at its end"
    )
    add: int | None = setting(
        None, help="extend: number of words to add, the commonest that it cuts into pieces or does not know"
    )
    input_format: str = _reading("input_format")
    documents: str = _reading("documents")
    text_field: str = _reading("text_field")
    on_bad_bytes: str = _reading("on_bad_bytes")
    max_document_chars: int = _reading("max_document_chars")

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", _list_of_files("inputs", self.inputs))
        _check_reading(self)
        _check_range(self, "size", 6, _ANY)
        _check_range(self, "min_frequency", 1, _ANY)
        _check_range(self, "unused", 0, _ANY)
        _check_range(self, "character_coverage", 0, 1, low_open=True)
        if (self.extend is None) != (self.add is None):
            raise InputError(f"`extend` and `add` must go together. Received: extend={self.extend!r}, add={self.add!r}")
        if self.extend is not None:
            _check_range(self, "add", 1, _ANY)
            _check_defaults(self, ("size", "unused", "character_coverage"), "`extend`")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareConfig(Settings):
    """Turn text into pretraining examples: sentence pairs, unmasked, in random-access shards."""

    inputs: tuple[str, ...] = setting(help=_INPUTS)
    vocab: str = setting(help="vocabulary file, or a model directory that has one")
    output: str = setting(help="directory to write; new or empty")
    lengths: tuple[int, ...] = setting((128, 512), help="sequence lengths, in tokens with the special ones")
    seed: int = setting(1, help="seed of every random choice")
    workers: int = setting(2, help="worker processes; the result does not depend on their number")
    cased: bool = setting(False, help="keep upper case and accents (ignored where a model directory says)")
    input_format: str = _reading("input_format")
    documents: str = _reading("documents")
    text_field: str = _reading("text_field")
    on_bad_bytes: str = _reading("on_bad_bytes")
    max_document_chars: int = _reading("max_document_chars")
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
        object.__setattr__(self, "inputs", _list_of_files("inputs", self.inputs))
        object.__setattr__(self, "exclude", _list_of_files("exclude", self.exclude))
        _check_reading(self)
        if not isinstance(self.lengths, list | tuple) or not all(type(length) is int for length in self.lengths):
            raise InputError(f"`lengths` must be a list of whole numbers. Received: lengths={self.lengths!r}")
        object.__setattr__(self, "lengths", tuple(self.lengths))
        if not self.lengths or len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"`lengths` must be one or more different numbers. Received: lengths={self.lengths!r}")
        if min(self.lengths) < 8 or max(self.lengths) > 65535:
            raise InputError(f"`lengths` must be from 8 to 65535. Received: lengths={self.lengths!r}")
        _check_word(self, "sentences", ("auto", "lines", "split"))
        _check_word(self, "near_duplicates", ("off", "report", "remove"))
        _check_word(self, "word_boundaries", ("pieces", "spaces", "jieba"))
        _check_word(self, "examples", ("pairs", "chunks"))
        if self.language not in LANGUAGES:
            raise InputError(
                f"`language` must be one of {', '.join(LANGUAGES)}; for another one give that which ends its "
                f"sentences most alike. Received: language={self.language!r}"
            )
        check_seed(self.seed)
        _check_range(self, "max_sentence_chars", 100, 1_000_000)
        if "-" in self.exclude:
            raise InputError("`exclude` must name files; standard input is for `inputs`. Received: '-'")
        _check_range(self, "exclude_words", 1, 1000)
        _check_range(self, "workers", 1, MOST_WORKERS)
        _check_range(self, "passes", 1, _ANY)
        _check_range(self, "held_out_share", 0, 0.5)
        _check_range(self, "short_seq_prob", 0, 1)
        _check_range(self, "next_sentence_prob", 0, 1)
        if self.examples == "chunks":
            _check_defaults(self, PAIRS_ONLY, "`examples` chunks, which fill the rows in one way")
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


# Settings that say how pairs are made.
PAIRS_ONLY = ("short_seq_prob", "next_sentence_prob", "passes")


def _check_defaults(config: Any, names: Iterable[str], reason: str) -> None:
    for field in dataclasses.fields(config):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        if field.name in names and getattr(config, field.name) != default:
            raise InputError(
                f"`{field.name}` must be left as it is with {reason}. "
                f"Received: {field.name}={getattr(config, field.name)!r}"
            )


# Settings of static masks and what they are when not given.
_STATIC_MASKS = {"epochs": 10, "masked_share": 0.15, "masking": "token", "max_ngram": 3, "max_predictions": None}
# What the original's script can be told too; all else it does in its own way.
REFERENCE_SETTINGS = {
    *("inputs", "vocab", "output", "lengths", "seed", "workers", "cased", "short_seq_prob", "format", "reference"),
    *("epochs", "masked_share", "masking", "max_predictions", "reference_limit"),
}
# More processes than any machine for this has cores; each takes some hundred megabytes.
MOST_WORKERS = 256


def _check_records(config: PrepareConfig) -> None:
    """Checks the settings of the form in which examples are written, and which of them go together."""
    if config.format is not None:
        _check_word(config, "format", ("prepared", "tfrecord"))
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
            _check_range(config, name, 1, _ANY)
    if config.max_predictions is not None and config.max_predictions > min(config.lengths):
        raise InputError(
            f"`max_predictions` must be at most the shortest length, {min(config.lengths)}. "
            f"Received: max_predictions={config.max_predictions!r}"
        )
    _check_given_masks(config, config.masking)
    if config.reference:
        _check_reference(config)


def _check_reference(config: PrepareConfig) -> None:
    if config.masking == "n-gram":
        raise InputError("`masking` must be token or whole-word for `reference`. Received: masking='n-gram'")
    others = {field.name for field in dataclasses.fields(config)} - REFERENCE_SETTINGS
    _check_defaults(config, others, "`reference`, which does all as the original does")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseConfig(Settings):
    """One stretch of pretraining at one sequence length."""

    length: int = setting(help="sequence length, in tokens")
    share: float = setting(help="share of all steps")
    batch_size: int | None = setting(None, help="rows per step over all replicas; the run's when not given")
    packed: bool | None = setting(
        None, help="whether a row holds several examples; when not given, from length 256 on, save for TFRecord files"
    )

    def __post_init__(self) -> None:
        counts = [self.length] if self.batch_size is None else [self.length, self.batch_size]
        whole = all(type(count) is int and count > 0 for count in counts)
        if not whole or type(self.share) not in (int, float):
            raise InputError(
                "`phases` must have whole numbers from 1 on as length and batch_size, and numbers as share. "
                f"Received: length={self.length!r}, share={self.share!r}, batch_size={self.batch_size!r}"
            )
        if self.packed not in (None, True, False):
            raise InputError(f"`phases` must have true or false as packed. Received: packed={self.packed!r}")


DEFAULT_PHASES = (PhaseConfig(length=128, share=0.9), PhaseConfig(length=512, share=0.1))


def _phase(value: Any) -> PhaseConfig:
    if isinstance(value, PhaseConfig):
        return value
    if not isinstance(value, dict):
        raise InputError(f"`phases` must be a list of {{length, share, batch_size, packed}}. Received: {value!r}")
    return PhaseConfig.from_dict(value, name="phases")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainConfig(Settings):
    """Pretrain BERT with masked language modelling and next-sentence prediction."""

    data: str = setting(help="directory that `prepare` wrote")
    run: str = setting(help="run directory; given again, the run goes on from its last checkpoint")
    preset: str | None = setting(
        None, help="size of the model: tiny (when not given), mini, small, medium, base or large"
    )
    model: dict[str, Any] | None = setting(None, help="fields of BertConfig that replace the preset's, as JSON")
    init: str | None = setting(
        None,
        help="model directory whose weights the run starts from; it says the size too, instead of preset and model",
    )
    allow_missing: tuple[str, ...] = setting(
        (), help="init: parts of pooler, mlm_head and nsp_head that it may lack and that then start fresh"
    )
    steps: int = setting(1_000_000, help="training steps over all phases")
    batch_size: int = setting(256, help="rows per step over all replicas; one holds an example, or if packed several")
    phases: tuple[PhaseConfig, ...] = setting(
        DEFAULT_PHASES, help="stretches of the run, as a list of {length, share, batch_size, packed}"
    )
    micro_batches: int = setting(1, help="parts that a replica's batch is worked through in; saves memory")
    learning_rate: float = setting(1e-4, help="highest learning rate, reached after the warm-up")
    warmup_steps: int | None = setting(None, help="steps of linear warm-up; 1 % of the steps when not given")
    weight_decay: float = setting(0.01, help="decoupled, times the learning rate; not on biases and LayerNorm")
    beta_1: float = setting(0.9, help="Adam's decay of the mean gradient")
    beta_2: float = setting(0.999, help="Adam's decay of the mean squared gradient")
    epsilon: float = setting(1e-6, help="Adam's addend to the root")
    bias_correction: bool = setting(False, help="Adam's correction of the first steps; the original has none")
    clip_norm: float = setting(1.0, help="largest global norm of the whole batch's gradient; 0 for no clipping")
    masked_share: float = setting(0.15, help="share of the positions to predict")
    masking: str = _masking("masking")
    max_ngram: int = _masking("max_ngram")
    replicas: int | None = setting(
        None, help="replicas under MirroredStrategy; every GPU, else one. More on a CPU makes logical devices"
    )
    dtype: str = setting("float32", help="float32 or mixed_bfloat16")
    seed: int = setting(1, help="seed of initial values, dropout, order and masks")
    steps_per_execution: int = setting(1, help="steps per call of the compiled function")
    log_every: int | None = setting(
        None, help="steps between lines of metrics; a two-hundredth of the steps, at most 100, when not given"
    )
    evaluate_every: int | None = setting(None, help="steps between evaluations; a tenth of the steps when not given")
    evaluation_examples: int = setting(2000, help="held-out examples per length in an evaluation; 0 for all")
    checkpoint_every: int | None = setting(None, help="steps between checkpoints; those of evaluate_every if not given")
    keep_checkpoints: int = setting(3, help="last checkpoints kept")

    def __post_init__(self) -> None:
        phases = tuple(_phase(phase) for phase in self.phases)
        object.__setattr__(self, "phases", phases)
        object.__setattr__(self, "allow_missing", tuple(self.allow_missing))
        if self.init is None and self.allow_missing:
            raise InputError(f"`allow_missing` must go with `init`. Received: allow_missing={self.allow_missing!r}")
        if self.init is not None and (self.preset or self.model):
            name = "preset" if self.preset else "model"
            raise InputError(
                f"`{name}` cannot be given with `init`, whose model directory says what the model is. "
                f"Received: {name}={getattr(self, name)!r}, init={self.init!r}"
            )
        for name in ("steps", "batch_size", "micro_batches", "steps_per_execution", "keep_checkpoints"):
            _check_range(self, name, 1, _ANY)
        for name in ("warmup_steps", "evaluation_examples", "clip_norm", "weight_decay"):
            if getattr(self, name) is not None:
                _check_range(self, name, 0, _ANY)
        for name in ("replicas", "log_every", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) is not None:
                _check_range(self, name, 1, _ANY)
        _check_range(self, "learning_rate", 0, 10, low_open=True)
        _check_range(self, "epsilon", 0, 1, low_open=True)
        _check_range(self, "masked_share", 0, 1, low_open=True)
        _check_masking(self)
        check_seed(self.seed)
        for name in ("beta_1", "beta_2"):
            _check_range(self, name, 0, 1)
        if self.dtype not in ("float32", "mixed_bfloat16"):
            # float16 would need its loss scaled.
            raise InputError(f"`dtype` must be float32 or mixed_bfloat16. Received: dtype={self.dtype!r}")
        if not phases or abs(sum(phase.share for phase in phases) - 1) > 1e-6 or min(p.share for p in phases) <= 0:
            shares = [phase.share for phase in phases]
            raise InputError(f"`phases` must have positive shares that add up to 1. Received: shares={shares}")
        for phase in phases:
            batch_size = phase.batch_size or self.batch_size
            parts = (self.replicas or 1) * self.micro_batches
            if batch_size % parts:
                raise InputError(
                    "`batch_size` must be a multiple of `replicas` times `micro_batches`. "
                    f"Received: batch_size={batch_size}, replicas={self.replicas or 1}, "
                    f"micro_batches={self.micro_batches}"
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(Settings):
    """Measure a pretrained model on held-out examples."""

    model: str = setting(help="model directory or run directory")
    data: str = setting(help="directory that `prepare` wrote")
    lengths: tuple[int, ...] | None = setting(None, help="sequence lengths; all that the data has when not given")
    batch_size: int = setting(32, help="examples per batch")
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

    def __post_init__(self) -> None:
        if self.lengths is not None and len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"`lengths` must be different numbers. Received: lengths={list(self.lengths)}")
        _check_range(self, "batch_size", 1, _ANY)
        check_seed(self.seed)
        _check_range(self, "examples", 0, _ANY)
        _check_given_masks(self, "n-gram" if self.masking is None else self.masking)
