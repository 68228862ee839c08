"""From text to prepared data: sentence pairs, unmasked, in random-access shards."""

import contextlib
import dataclasses
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import check_new_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.progress import progress_bar
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import PrepareConfig
from .corpus.chinese_words import check_jieba
from .corpus.exclusion import Exclusion
from .corpus.input_files import SourceFile, find_files
from .corpus.readers import Reading
from .corpus.reading_progress import reading_progress
from .corpus.sources import open_sources
from .corpus.survey import HELD_OUT, TRAIN, Survey, survey_corpus
from .corpus.wording import counted
from .examples.block_worker import BlockSettings
from .examples.blocks import block_size, blocks_of_documents
from .examples.manifest import (
    Counts,
    exclusion_lines,
    least_text,
    make_manifest,
    save_manifest,
    summary_lines,
    survey_line,
)
from .examples.prepared_data import TOKEN_COUNTS, PreparedData
from .examples.record_manifest import make_record_manifest, record_lines
from .examples.shards import write_array
from .examples.word_boundaries import JIEBA
from .examples.worker_pool import StoppedError, work_through
from .output_errors import OutputError, writing
from .unfinished import Unfinished, unfinished_output

# Where things lie and how the work is laid out has no influence on the shards; for the content there are digests.
_FREE = ("inputs", "vocab", "exclude", "output", "workers", "reference_limit")
_VERSIONS = ("keras_bert_impl", "numpy", "sentencex")


def prepare(
    config: PrepareConfig, say: Callable[[str], None] = lambda line: None, *, texts: Any = None
) -> dict[str, Any]:
    """Writes a prepared directory, whole or not at all.

    Text is read twice and never held as a whole: once to find duplicates and choose what is held out, once to
    cut it into blocks that worker processes turn into shards. After a stop in the middle the same settings go on from
    the finished shards; see `unfinished`.

    Args:
        config: the settings.
        say: receives each line of what is told on the way.
        texts: documents beside those of `config.inputs`, which may then be empty: an iterable of strings, or of
            mappings with the column `config.text_field`, such as a Hugging Face `datasets.Dataset`. What can be gone
            through once only (a generator) is put into a temporary file.

    Returns:
        The manifest: every setting and count.

    Raises:
        InputError: if an input, the vocabulary or the output cannot be used.
    """
    with writing_output(config):
        check_new_directory(config.output, "output")
    tokenizer = load_tokenizer(config.vocab, cased=config.cased)
    if config.word_boundaries == JIEBA:
        check_jieba()
    with contextlib.ExitStack() as stack:
        with writing_output(config):
            unfinished = stack.enter_context(unfinished_output(config.output))
        facts = _facts(config, tokenizer)
        unfinished.check(facts)
        with open_sources(config.inputs, texts, text_field=config.text_field, say=say) as files:
            if not config.reference:
                return _prepare(config, files, tokenizer, unfinished, facts, say)
            from .prepare_reference import prepare_reference  # opens TensorFlow

            with _telling_what_is_kept(config, unfinished, say):
                unfinished.begin(facts)
                return prepare_reference(config, files, tokenizer, unfinished, say)


def _prepare(
    config: PrepareConfig,
    files: list[SourceFile],
    tokenizer: WordPieceTokenizer,
    unfinished: Unfinished,
    facts: dict[str, Any],
    say: Callable[[str], None],
) -> dict[str, Any]:
    exclusion = _exclusion(config, say)
    with reading_progress(files) as advance:
        survey = survey_corpus(
            files,
            seed=config.seed,
            held_out_share=config.held_out_share,
            advance=advance,
            reading=Reading.of(config),
            near_duplicates=config.near_duplicates,
            exclusion=exclusion,
        )
    for line in (*exclusion_lines(survey), survey_line(survey)):
        say(line)
    with _telling_what_is_kept(config, unfinished, say):
        unfinished.begin({**facts, "text": _digest_of_survey(survey)})
        with writing():
            tokenizer.save_pretrained(unfinished.data)
        counts = _make_shards(config, survey, unfinished, tokenizer.vocab_size, say)
        with writing():
            manifest = write_manifest(unfinished.data, config, survey, counts, tokenizer)
        if config.writes_records:
            manifest = _with_records(config, manifest, unfinished)
        unfinished.complete(unfinished.records if config.writes_records else unfinished.data)
    form, records = ("TFRecord files", record_lines(manifest)) if config.writes_records else ("Prepared data", ())
    for line in (*summary_lines(manifest), *records, *manifest["notes"], f"{form}: {config.output}"):
        say(line)
    return manifest


@writing()
def _with_records(config: PrepareConfig, manifest: dict[str, Any], unfinished: Unfinished) -> dict[str, Any]:
    """Writes the TFRecord files of prepared data and their manifest, and returns that."""
    from .static_records import write_static_records  # opens TensorFlow

    data = PreparedData(unfinished.data)
    data.tokenizer.save_pretrained(unfinished.records)
    manifest = make_record_manifest(manifest, write_static_records(config, data, unfinished))
    save_manifest(manifest, unfinished.records)
    return manifest


def load_tokenizer(vocab: str | os.PathLike[str], *, cased: bool = False) -> WordPieceTokenizer:
    """Opens a vocabulary file, or the tokenizer of a model, run or prepared directory.

    Args:
        vocab: path of the file or directory.
        cased: for a file only: keep upper case and accents. A directory says so itself.
    """
    path = Path(vocab)
    if not path.is_dir():
        return WordPieceTokenizer.from_vocab_file(path, lowercase=not cased)
    return WordPieceTokenizer.from_pretrained(path / "model" if (path / "model").is_dir() else path)


def _exclusion(config: PrepareConfig, say: Callable[[str], None]) -> Exclusion | None:
    if not config.exclude:
        return None
    files = find_files(config.exclude, argument="exclude", say=say)
    return Exclusion(files, config.exclude_words, reading_of_excluded(config))


def reading_of_excluded(config: PrepareConfig) -> Reading:
    """Returns how the excluded files are read."""
    return dataclasses.replace(
        Reading.of(config), input_format="auto", text_field=config.exclude_field or config.text_field
    )


def _make_shards(
    config: PrepareConfig, survey: Survey, unfinished: Unfinished, vocab_size: int, say: Callable[[str], None]
) -> Counts:
    settings = BlockSettings.of(config, unfinished.data)
    counts = Counts(vocab_size)
    finished, documents = set(), 0
    for result in unfinished.blocks():
        counts.add(result)
        finished.add((result.split, result.number))
        documents += result.documents
    if finished:
        say(
            f"Found finished: {counted(len(finished), 'block')} with {counted(documents, 'document')}; "
            "their shards are not made again."
        )
    kept = survey.count(TRAIN) + survey.count(HELD_OUT)
    with progress_bar(kept, "document", "Making examples", initial=documents) as bar:
        blocks = (
            block
            for block in blocks_of_documents(survey.documents(), block_size(survey.size))
            if (block.split, block.number) not in finished
        )
        with contextlib.closing(work_through(settings, blocks, config.workers, hold=[unfinished.lock])) as results:
            for result in results:
                unfinished.add(result)
                counts.add(result)
                bar.update(result.documents)
    return counts


def write_manifest(
    folder: Path, config: PrepareConfig, survey: Survey, counts: Counts, tokenizer: WordPieceTokenizer
) -> dict[str, Any]:
    """Writes what lies beside the shards, the manifest last, and returns that."""
    manifest = make_manifest(config, survey, counts, tokenizer)
    _check_examples(config, manifest)
    write_array(folder / TOKEN_COUNTS, counts.tokens["train"])
    save_manifest(manifest, folder)
    return manifest


def _check_examples(config: PrepareConfig, manifest: dict[str, Any]) -> None:
    for length in config.lengths:
        if not manifest["examples"]["train"][str(length)]["examples"]:
            example = "chunk" if config.examples == "chunks" else "sentence pair"
            documents = manifest["documents"]
            if documents["held_out"]:
                raise InputError(
                    f"`inputs` must leave the training part {least_text(config)}; give more text, or `held_out_share` "
                    f"0 to hold nothing out. Received: {list(config.inputs)}, with {documents['held_out']:,} of "
                    f"{counted(documents['train'] + documents['held_out'], 'document')} held out; the training part "
                    f"gives no {example} of length {length}"
                )
            gone = documents["read"] - documents["train"]
            without = f" without {counted(gone, 'duplicate or excluded document')}" if gone else ""
            raise InputError(
                f"`inputs` must hold {least_text(config)}. Received: {list(config.inputs)}, which{without} give no "
                f"{example} of length {length}"
            )


def _facts(config: PrepareConfig, tokenizer: WordPieceTokenizer) -> dict[str, Any]:
    """Returns what the shards depend on besides the text, as JSON values."""
    settings = {name: value for name, value in config.to_dict().items() if name not in _FREE}
    vocabulary = json.dumps([tokenizer.vocabulary, tokenizer.options])
    versions = (*_VERSIONS, JIEBA) if config.word_boundaries == JIEBA else _VERSIONS
    return {
        "settings": json.loads(json.dumps(settings)),
        "vocabulary": hashlib.sha256(vocabulary.encode()).hexdigest(),
        "versions": {name: importlib.metadata.version(name) for name in versions},
    }


def _digest_of_survey(survey: Survey) -> str:
    digest = hashlib.sha256(survey.fates.tobytes())
    for file in survey.files:
        digest.update(f"{file.sha256}\n".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def _telling_what_is_kept(config: PrepareConfig, unfinished: Unfinished, say: Callable[[str], None]) -> Iterator[None]:
    """Says what a stop leaves for the next time."""
    try:
        yield
    except StoppedError as error:
        raise StoppedError(f"{error}; {unfinished.what_is_kept()}") from error
    except OutputError as error:
        raise StoppedError(
            f"`output` could not be written: {error.strerror or error}. Received: {config.output!r}; "
            f"{unfinished.what_is_kept()}"
        ) from error
    except KeyboardInterrupt:
        say(f"Stopped; {unfinished.what_is_kept()}.")
        raise


@contextlib.contextmanager
def writing_output(config: PrepareConfig) -> Iterator[None]:
    """Says in one sentence why the output could not be begun."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"`output` could not be written: {error.strerror or error}. Received: {config.output!r}; "
            "nothing was left behind"
        ) from error
