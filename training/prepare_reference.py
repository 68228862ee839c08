"""From text to TFRecord files of the original's very instances."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.errors import InputError
from keras_bert_impl.progress import progress_bar
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import PrepareConfig
from .corpus.compression import unpacked_chunks
from .corpus.input_files import SourceFile, format_of_name
from .corpus.wording import counted, size_in_words
from .examples.manifest import save_manifest
from .examples.masking import max_predictions
from .examples.record_counts import RecordCounts
from .examples.record_manifest import make_reference_manifest, record_lines, reference_line
from .examples.reference_instances import ReferenceSettings, instances_of_lines
from .examples.tfrecord_writing import rows_of_instances, write_tfrecords
from .output_errors import writing
from .static_records import record_paths
from .unfinished import Unfinished

_DEFAULT_LIMIT = 200


def prepare_reference(
    config: PrepareConfig,
    files: list[SourceFile],
    tokenizer: WordPieceTokenizer,
    unfinished: Unfinished,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Writes the records and their manifest, and returns it; see `examples.reference_instances`.

    Args:
        config: the settings, `reference` among them.
        files: text files, plain or packed: a sentence on each line, a blank line between documents.
        tokenizer: the vocabulary.
        unfinished: where the output is made.
        say: receives each line of what is told on the way.

    Raises:
        InputError: if a file is no text, or they are too large to be held in memory.
    """
    for file in files:
        if file.texts is not None or format_of_name(file.path) not in (None, "txt"):
            raise InputError(f"`inputs` must be text files for `reference`. Received: {file.path!r}")
    folder, masks = unfinished.records, config.static_masks
    _check_size(files, config)
    with writing():
        tokenizer.save_pretrained(folder)
    facts, times = {}, 0
    for length in config.lengths:
        settings = ReferenceSettings(
            length=length,
            max_predictions=masks["max_predictions"] or max_predictions(length, masks["masked_share"]),
            masked_share=masks["masked_share"],
            whole_words=masks["masking"] == "whole-word",
            dupe_factor=masks["epochs"],
            short_seq_prob=config.short_seq_prob,
            seed=config.seed,
        )
        with progress_bar(None, "document", f"Making the original's instances of length {length}") as bar:

            def advance(total: int, bar: Any = bar) -> None:
                nonlocal times
                bar.total = times = total
                bar.update()

            instances = instances_of_lines(_lines(files), tokenizer, settings, advance)
        if not instances:
            raise InputError(f"`inputs` must hold text. Received: {[file.path for file in files]}, which hold none")
        counts = RecordCounts(length, tokenizer.mask_token_id)
        rows = counts.counted(rows_of_instances(instances, settings))
        with writing():
            write_tfrecords(rows, record_paths(folder / "train" / str(length), len(instances)))
        facts[str(length)] = {**counts.facts(), "tokens": counts.tokens}
    manifest = make_reference_manifest(config, files, times // masks["epochs"], facts, tokenizer)
    with writing():
        save_manifest(manifest, folder)
    unfinished.complete(folder)
    for line in (reference_line(manifest), *record_lines(manifest), f"The original's instances: {config.output}"):
        say(line)
    return manifest


def _check_size(files: list[SourceFile], config: PrepareConfig) -> None:
    """Notes sizes and digests of the files, and refuses more text than is to be held in memory."""
    epochs = config.static_masks["epochs"]
    limit = (config.reference_limit or _DEFAULT_LIMIT) * 1_000_000
    size = 0
    for file in files:
        if file.place is None and Path(file.path).exists():
            file.size = Path(file.path).stat().st_size
        with contextlib.closing(file.open()) as raw:
            file.sha256 = hashlib.file_digest(raw, "sha256").hexdigest()
        with contextlib.closing(file.open()) as raw:
            size += sum(map(len, unpacked_chunks(raw, file.path)))
    if size * epochs > limit:
        raise InputError(
            f"`inputs` must be small enough to be held in memory for `reference`: {limit // 1_000_000:,} MB of text "
            f"times epochs, unless `reference_limit` says otherwise. Received: {size_in_words(size)} in "
            f"{counted(epochs, 'epoch')}, {size_in_words(size * epochs)}"
        )


def _lines(files: list[SourceFile]) -> Iterator[str]:
    """Yields the lines of all files as the original has them: only a line feed ends one."""
    for file in files:
        rest = b""
        with contextlib.closing(file.open()) as raw:
            for chunk in unpacked_chunks(raw, file.path):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield _decoded(line, file)
        if rest:
            yield _decoded(rest, file)


def _decoded(line: bytes, file: SourceFile) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"`inputs` must be UTF-8 text. Received: {file.path!r}, with the line {line[:40]!r}") from None
