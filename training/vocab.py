"""Learn a WordPiece vocabulary from text."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary import learn_vocabulary
from keras_bert_impl.tokenization.vocabulary_extension import extend_vocabulary_words
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import VocabConfig
from .corpus.oddities import Oddities
from .corpus.readers import Reading, SourceFile, read_documents
from .corpus.reading_progress import reading_progress
from .corpus.sources import open_sources
from .corpus.wording import counted
from .examples.corpus_warnings import lower_casing_notes
from .prepare import load_tokenizer


def learn_vocab(config: VocabConfig, say: Callable[[str], None] = lambda line: None, *, texts: Any = None) -> Path:
    """Learns a vocabulary, or extends one, and writes it, one token per line.

    A learnt one begins with the special tokens. An extended one has its old tokens where they were, and the new words
    behind them, the commonest first.

    Args:
        config: the settings.
        say: receives each line of what is told on the way.
        texts: documents beside those of `config.inputs`, as for `prepare`.

    Returns:
        The path of the vocabulary file.

    Raises:
        InputError: if an input is missing, not text or empty, the vocabulary to extend cannot be used or lacks no word
            of the text, or the output cannot be written.
    """
    output = Path(config.output)
    if output.is_dir():
        raise InputError(f"`output` must be a file. Received: {str(output)!r}, which is a directory")
    tokenizer = None if config.extend is None else load_tokenizer(config.extend, cased=config.cased)
    for line in () if tokenizer is None else lower_casing_notes(tokenizer):
        say(line)
    with _sources(config, texts, say) as files, reading_progress(files) as advance:
        if output.exists() and any(Path(file.path).exists() and output.samefile(file.path) for file in files):
            raise InputError(f"`output` must not be one of `inputs`. Received: {str(output)!r}")
        lines = _lines(files, advance, Reading.of(config))
        vocabulary = _learnt(config, lines, say) if tokenizer is None else _extended(config, tokenizer, lines, say)
    try:
        with atomic_file(output) as file:
            file.writelines(f"{token}\n" for token in vocabulary)
    except OSError as error:
        raise InputError(f"`output` could not be written: {error.strerror}. Received: {str(output)!r}") from None
    for line in Oddities.sum(file.oddities for file in files).notes(config.max_document_chars):
        say(line)
    source = f"from {counted(sum(file.documents for file in files), 'document')}: {output}"
    if tokenizer is None:
        say(f"Learned a vocabulary of {counted(len(vocabulary), 'token')} {source}")
    else:
        words = counted(len(vocabulary) - tokenizer.vocab_size, "word")
        say(f"Added {words} to the {tokenizer.vocab_size:,} tokens of {config.extend} {source}")
    return output


def _learnt(config: VocabConfig, lines: Iterator[str], say: Callable[[str], None]) -> list[str]:
    return learn_vocabulary(
        lines,
        size=config.size,
        lowercase=not config.cased,
        strip_accents=not config.cased,
        min_frequency=config.min_frequency,
        unused=config.unused,
        character_coverage=config.character_coverage,
        say=say,
    )


def _extended(
    config: VocabConfig, tokenizer: WordPieceTokenizer, lines: Iterator[str], say: Callable[[str], None]
) -> list[str]:
    assert config.add is not None
    words = extend_vocabulary_words(tokenizer, lines, config.add, config.min_frequency, say=say)
    if not words:
        raise InputError(
            f"`inputs` must have words that `extend` lacks, each at least {config.min_frequency} times. "
            f"Received: {list(config.inputs)}, which have none"
        )
    if len(words) < config.add:
        say(
            f"the text has only {counted(len(words), 'word')} that the vocabulary lacks and that occur at least "
            f"{config.min_frequency} times, not {config.add:,}"
        )
    return [*tokenizer.vocabulary, *words]


def _sources(
    config: VocabConfig, texts: Any, say: Callable[[str], None]
) -> contextlib.AbstractContextManager[list[SourceFile]]:
    return open_sources(config.inputs, texts, text_field=config.text_field, once=True, say=say)


def _lines(files: list[SourceFile], advance: Callable[[int], None], reading: Reading) -> Iterator[str]:
    for document in read_documents(files, advance, reading):
        yield from document.lines
    if not any(file.documents for file in files):
        raise InputError(f"`inputs` must hold text. Received: {[file.path for file in files]}, which hold none")
