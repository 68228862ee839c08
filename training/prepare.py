"""From text to prepared data: sentence pairs, unmasked, in random-access shards."""

import collections
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.atomic import atomic_directory, check_new_directory
from keras_bert_impl.errors import InputError
from keras_bert_impl.progress import progress_bar
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .configs import PrepareConfig
from .corpus.readers import find_files
from .corpus.survey import DUPLICATE, HELD_OUT, TRAIN, Survey, survey_corpus
from .examples.block_worker import BlockCounts, BlockSettings
from .examples.blocks import block_size, blocks_of_documents
from .examples.prepared_data import MANIFEST, TOKEN_COUNTS
from .examples.shards import FORMAT_NAME, FORMAT_VERSION, SPLITS, write_array
from .examples.worker_pool import work_through

# Neither changes the result, so neither belongs in the manifest.
_NOT_RECORDED = ("workers", "output")


def prepare(config: PrepareConfig, say: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """Writes a prepared directory, whole or not at all.

    Text is read twice and never held as a whole: once to find duplicates and choose what is held out, once to
    cut it into blocks that worker processes turn into shards.

    Args:
        config: the settings.
        say: receives each line of what is told on the way.

    Returns:
        The manifest: every setting and count.

    Raises:
        InputError: if an input, the vocabulary or the output cannot be used.
    """
    target = check_new_directory(config.output, "output")
    tokenizer = load_tokenizer(config.vocab, cased=config.cased)
    files = find_files(config.inputs)
    with progress_bar(sum(file.size for file in files), "byte", "Reading text") as bar:
        survey = survey_corpus(files, seed=config.seed, held_out_share=config.held_out_share, advance=bar.update)
    for line in _survey_lines(survey):
        say(line)
    with _writing(target), atomic_directory(target) as folder:
        tokenizer.save_pretrained(folder)
        blocks = _make_shards(config, survey, folder)
        manifest = _manifest(config, survey, tokenizer, blocks)
        _check_examples(config, manifest)
        write_array(folder / TOKEN_COUNTS, _token_counts(blocks, "train", tokenizer.vocab_size))
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST).write_text(text, encoding="utf-8")
    for line in (*_example_lines(manifest), *manifest["notes"], f"Prepared data: {target}"):
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


def _make_shards(config: PrepareConfig, survey: Survey, folder: Path) -> list[BlockCounts]:
    settings = BlockSettings(
        directory=str(folder),
        lengths=config.lengths,
        seed=config.seed,
        passes=config.passes,
        sentences=config.sentences,
        language=config.language,
        short_seq_prob=config.short_seq_prob,
        next_sentence_prob=config.next_sentence_prob,
    )
    counts = []
    kept = survey.count(TRAIN) + survey.count(HELD_OUT)
    with progress_bar(kept, "document", "Making examples") as bar:
        blocks = blocks_of_documents(survey.documents(), block_size(survey.size))
        with contextlib.closing(work_through(settings, blocks, config.workers)) as results:
            for result in results:
                counts.append(result)
                bar.update(result.documents)
    return sorted(counts, key=lambda block: (SPLITS.index(block.split), block.number))


def _manifest(
    config: PrepareConfig, survey: Survey, tokenizer: WordPieceTokenizer, blocks: list[BlockCounts]
) -> dict[str, Any]:
    settings = {name: value for name, value in config.to_dict().items() if name not in _NOT_RECORDED}
    counts = _token_counts(blocks, None, tokenizer.vocab_size)
    unknown = int(counts[tokenizer.unk_token_id])
    layouts = sum((block.layouts for block in blocks), collections.Counter())
    manifest = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "settings": settings,
        "vocabulary": {"size": tokenizer.vocab_size},
        "files": [
            {"path": file.path, "bytes": file.size, "sha256": file.sha256, "documents": file.documents}
            for file in survey.files
        ],
        "documents": {
            "read": survey.fates.size,
            "duplicates_removed": survey.count(DUPLICATE),
            "train": survey.count(TRAIN),
            "held_out": survey.count(HELD_OUT),
        },
        "documents_by_layout": {name: layouts[name] for name in ("lines", "paragraphs", "wrapped")},
        "sentences": {split: sum(b.sentences for b in blocks if b.split == split) for split in SPLITS},
        "tokens": {split: int(_token_counts(blocks, split, tokenizer.vocab_size).sum()) for split in SPLITS},
        "unknown_tokens": unknown,
        "unknown_share": unknown / max(1, int(counts.sum())),
        "examples": {
            split: {str(length): _length_facts(blocks, split, length) for length in config.lengths} for split in SPLITS
        },
        "skipped": {"documents_without_tokens": sum(block.empty_documents for block in blocks)},
    }
    manifest["notes"] = _notes(config, manifest)
    return manifest


def _length_facts(blocks: list[BlockCounts], split: str, length: int) -> dict[str, Any]:
    of_length = [block.lengths[length] for block in blocks if block.split == split]
    examples = sum(counts.examples for counts in of_length)
    tokens = sum(counts.tokens for counts in of_length)
    random_next = sum(counts.random_next for counts in of_length)
    return {
        "examples": examples,
        "shards": [counts.examples for counts in of_length],
        "tokens": tokens,
        "mean_fill": tokens / (length * examples) if examples else None,
        "random_next_share": random_next / examples if examples else None,
        "true_next_share": 1 - random_next / examples if examples else None,
        "unpaired_sentences": sum(counts.unpaired_sentences for counts in of_length),
    }


def _token_counts(blocks: list[BlockCounts], split: str | None, vocab_size: int) -> np.ndarray:
    total = np.zeros(vocab_size, np.int64)
    for block in blocks:
        if split in (None, block.split):
            total += block.token_counts
    return total


def _notes(config: PrepareConfig, manifest: dict[str, Any]) -> list[str]:
    """Returns a sentence for everything that is not as one would expect."""
    notes = []
    documents = manifest["documents"]
    if documents["held_out"] == 0 and config.held_out_share > 0:
        notes.append("There is one document only, so nothing is held out for evaluation.")
    for split in SPLITS:
        if documents[split] == 1 and config.next_sentence_prob > 0:
            unpaired = [manifest["examples"][split][str(length)]["unpaired_sentences"] for length in config.lengths]
            notes.append(
                f"The {split.replace('_', '-')} part is a single document, so no second part is random: every pair is "
                f"a true successor (label 0), and {max(unpaired):,} single sentences without a successor are left out."
            )
    if empty := manifest["skipped"]["documents_without_tokens"]:
        notes.append(f"{empty:,} documents have no token and were skipped.")
    return notes


def _check_examples(config: PrepareConfig, manifest: dict[str, Any]) -> None:
    for length in config.lengths:
        if not manifest["examples"]["train"][str(length)]["examples"]:
            raise InputError(
                "`inputs` must hold a document of two sentences, or two documents. "
                f"Received: {list(config.inputs)}, which give no sentence pair of length {length}"
            )


def _survey_lines(survey: Survey) -> list[str]:
    read, duplicates = survey.fates.size, survey.count(DUPLICATE)
    size = sum(file.size for file in survey.files) / 1e6
    return [
        f"Read {read:,} documents, {size:,.1f} MB, from {len(survey.files):,} files; "
        f"{duplicates:,} exact duplicates removed.",
        f"{survey.count(TRAIN):,} documents are for training, {survey.count(HELD_OUT):,} are held out.",
    ]


def _example_lines(manifest: dict[str, Any]) -> Iterator[str]:
    tokens = manifest["tokens"]
    yield (
        f"{sum(manifest['sentences'].values()):,} sentences, {sum(tokens.values()):,} tokens, "
        f"{manifest['unknown_share']:.2%} of them unknown."
    )
    for split in SPLITS:
        for length, facts in manifest["examples"][split].items():
            if facts["examples"]:
                yield (
                    f"Length {length}, {split.replace('_', '-')}: {facts['examples']:,} examples, "
                    f"rows filled to {facts['mean_fill']:.0%}, second part random in {facts['random_next_share']:.0%}."
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
