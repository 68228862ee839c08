"""Learn a WordPiece vocabulary from text."""

from collections.abc import Callable, Iterator
from pathlib import Path

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.vocabulary import learn_vocabulary

from .configs import VocabConfig
from .corpus.readers import SourceFile, find_files, read_documents
from .corpus.reading_progress import reading_progress
from .corpus.wording import counted


def learn_vocab(config: VocabConfig, say: Callable[[str], None] = lambda line: None) -> Path:
    """Learns a vocabulary and writes it, one token per line, the special ones first.

    Args:
        config: the settings.
        say: receives each line of what is told on the way.

    Returns:
        The path of the vocabulary file.

    Raises:
        InputError: if an input is missing, not text or empty, or the output cannot be written.
    """
    output = Path(config.output)
    if output.is_dir():
        raise InputError(f"`output` must be a file. Received: {str(output)!r}, which is a directory")
    files = find_files(config.inputs)
    if output.exists() and any(output.samefile(file.path) for file in files):
        raise InputError(f"`output` must not be one of `inputs`. Received: {str(output)!r}")
    with reading_progress(files) as advance:
        vocabulary = learn_vocabulary(
            _lines(files, advance),
            size=config.size,
            lowercase=not config.cased,
            strip_accents=not config.cased,
            min_frequency=config.min_frequency,
            say=say,
        )
    try:
        with atomic_file(output) as file:
            file.writelines(f"{token}\n" for token in vocabulary)
    except OSError as error:
        raise InputError(f"`output` could not be written: {error.strerror}. Received: {str(output)!r}") from None
    documents = sum(file.documents for file in files)
    tokens = counted(len(vocabulary), "token")
    say(f"Learned a vocabulary of {tokens} from {counted(documents, 'document')}: {output}")
    return output


def _lines(files: list[SourceFile], advance: Callable[[int], None]) -> Iterator[str]:
    for document in read_documents(files, advance):
        yield from document.lines
    if not any(file.documents for file in files):
        raise InputError(f"`inputs` must hold text. Received: {[file.path for file in files]}, which hold none")
