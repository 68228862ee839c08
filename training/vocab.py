"""Learn a WordPiece vocabulary from text."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary import learn_vocabulary

from .configs import VocabConfig
from .corpus.oddities import Oddities
from .corpus.readers import Reading, SourceFile, read_documents
from .corpus.reading_progress import reading_progress
from .corpus.sources import open_sources
from .corpus.wording import counted


def learn_vocab(config: VocabConfig, say: Callable[[str], None] = lambda line: None, *, texts: Any = None) -> Path:
    """Learns a vocabulary and writes it, one token per line, the special ones first.

    Args:
        config: the settings.
        say: receives each line of what is told on the way.
        texts: documents beside those of `config.inputs`, as for `prepare`.

    Returns:
        The path of the vocabulary file.

    Raises:
        InputError: if an input is missing, not text or empty, or the output cannot be written.
    """
    output = Path(config.output)
    if output.is_dir():
        raise InputError(f"`output` must be a file. Received: {str(output)!r}, which is a directory")
    with _sources(config, texts, say) as files, reading_progress(files) as advance:
        if output.exists() and any(Path(file.path).exists() and output.samefile(file.path) for file in files):
            raise InputError(f"`output` must not be one of `inputs`. Received: {str(output)!r}")
        vocabulary = learn_vocabulary(
            _lines(files, advance, Reading.of(config)),
            size=config.size,
            lowercase=not config.cased,
            strip_accents=not config.cased,
            min_frequency=config.min_frequency,
            unused=config.unused,
            character_coverage=config.character_coverage,
            say=say,
        )
    try:
        with atomic_file(output) as file:
            file.writelines(f"{token}\n" for token in vocabulary)
    except OSError as error:
        raise InputError(f"`output` could not be written: {error.strerror}. Received: {str(output)!r}") from None
    for line in Oddities.sum(file.oddities for file in files).notes(config.max_document_chars):
        say(line)
    documents = sum(file.documents for file in files)
    tokens = counted(len(vocabulary), "token")
    say(f"Learned a vocabulary of {tokens} from {counted(documents, 'document')}: {output}")
    return output


def _sources(
    config: VocabConfig, texts: Any, say: Callable[[str], None]
) -> contextlib.AbstractContextManager[list[SourceFile]]:
    return open_sources(config.inputs, texts, text_field=config.text_field, once=True, say=say)


def _lines(files: list[SourceFile], advance: Callable[[int], None], reading: Reading) -> Iterator[str]:
    for document in read_documents(files, advance, reading):
        yield from document.lines
    if not any(file.documents for file in files):
        raise InputError(f"`inputs` must hold text. Received: {[file.path for file in files]}, which hold none")
