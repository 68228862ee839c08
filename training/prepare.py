"""From text to prepared data: sentence pairs, unmasked, in random-access shards."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_directory, check_new_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.progress import progress_bar
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import PrepareConfig
from .corpus.exclusion import Exclusion
from .corpus.input_files import SourceFile, find_files
from .corpus.readers import Reading
from .corpus.reading_progress import reading_progress
from .corpus.sources import open_sources
from .corpus.survey import HELD_OUT, TRAIN, Survey, survey_corpus
from .examples.block_worker import BlockSettings
from .examples.blocks import block_size, blocks_of_documents
from .examples.manifest import Counts, exclusion_lines, make_manifest, summary_lines, survey_line
from .examples.prepared_data import MANIFEST, TOKEN_COUNTS
from .examples.shards import write_array
from .examples.worker_pool import work_through


def prepare(
    config: PrepareConfig, say: Callable[[str], None] = lambda line: None, *, texts: Any = None
) -> dict[str, Any]:
    """Writes a prepared directory, whole or not at all.

    Text is read twice and never held as a whole: once to find duplicates and choose what is held out, once to
    cut it into blocks that worker processes turn into shards.

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
    target = check_new_directory(config.output, "output")
    tokenizer = load_tokenizer(config.vocab, cased=config.cased)
    with open_sources(config.inputs, texts, text_field=config.text_field, say=say) as files:
        return _prepare(config, files, tokenizer, target, say)


def _prepare(
    config: PrepareConfig,
    files: list[SourceFile],
    tokenizer: WordPieceTokenizer,
    target: Path,
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
    with _writing(target), atomic_directory(target) as folder:
        tokenizer.save_pretrained(folder)
        counts = _make_shards(config, survey, folder, tokenizer.vocab_size)
        manifest = make_manifest(config, survey, counts, tokenizer)
        _check_examples(config, manifest)
        write_array(folder / TOKEN_COUNTS, counts.tokens["train"])
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")
    for line in (*summary_lines(manifest), *manifest["notes"], f"Prepared data: {target}"):
        say(line)
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
    reading = dataclasses.replace(
        Reading.of(config), input_format="auto", text_field=config.exclude_field or config.text_field
    )
    files = find_files(config.exclude, argument="exclude", say=say)
    return Exclusion(files, config.exclude_words, reading)


def _make_shards(config: PrepareConfig, survey: Survey, folder: Path, vocab_size: int) -> Counts:
    settings = BlockSettings(
        directory=str(folder),
        lengths=config.lengths,
        seed=config.seed,
        passes=config.passes,
        sentences=config.sentences,
        language=config.language,
        max_sentence_chars=config.max_sentence_chars,
        short_seq_prob=config.short_seq_prob,
        next_sentence_prob=config.next_sentence_prob,
    )
    counts = Counts(vocab_size)
    kept = survey.count(TRAIN) + survey.count(HELD_OUT)
    with progress_bar(kept, "document", "Making examples") as bar:
        blocks = blocks_of_documents(survey.documents(), block_size(survey.size))
        with contextlib.closing(work_through(settings, blocks, config.workers)) as results:
            for result in results:
                counts.add(result)
                bar.update(result.documents)
    return counts


def _check_examples(config: PrepareConfig, manifest: dict[str, Any]) -> None:
    for length in config.lengths:
        if not manifest["examples"]["train"][str(length)]["examples"]:
            raise InputError(
                "`inputs` must hold a document of two sentences, or two documents. "
                f"Received: {list(config.inputs)}, which give no sentence pair of length {length}"
            )


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Says in one sentence why the output could not be written."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"`output` could not be written: {error.strerror or error}. Received: {str(target)!r}; "
            "nothing was left behind"
        ) from error
