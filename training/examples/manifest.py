"""What was prepared: every setting and count, for machines (the manifest) and for people (lines)."""

import collections
import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import PrepareConfig
from ..corpus.survey import DUPLICATE, EXCLUDED, HELD_OUT, NEAR_DUPLICATE, TRAIN, Survey
from ..corpus.wording import counted, size_in_words
from .block_worker import BlockCounts, LengthCounts
from .pairs import PairCounts
from .shards import FORMAT_NAME, FORMAT_VERSION, SPLITS

# Neither changes the result, so neither belongs in the manifest.
_NOT_RECORDED = ("workers", "output")
_NAMES = {"train": "training", "held_out": "held-out"}
# A vocabulary that was learnt from text like this one leaves less of it unknown.
_MOST_UNKNOWN = 0.01


class Counts:
    """The counts of all blocks, in whatever order they come.

    Attributes:
        tokens: per split, the occurrences of each token in its documents.
        sentences: per split.
        layouts: number of documents by the way their lines were taken.
        empty_documents: number of documents without a token.
        long_sentences: number of sentences that were cut.
    """

    def __init__(self, vocab_size: int):
        self.tokens = {split: np.zeros(vocab_size, np.int64) for split in SPLITS}
        self.sentences = dict.fromkeys(SPLITS, 0)
        self.layouts: collections.Counter[str] = collections.Counter()
        self.empty_documents = 0
        self.long_sentences = 0
        self._lengths: dict[tuple[str, int], dict[int, LengthCounts]] = collections.defaultdict(dict)

    def add(self, block: BlockCounts) -> None:
        """Adds a block."""
        self.tokens[block.split] += block.token_counts
        self.sentences[block.split] += block.sentences
        self.layouts += block.layouts
        self.empty_documents += block.empty_documents
        self.long_sentences += block.long_sentences
        for length, counts in block.lengths.items():
            self._lengths[block.split, length][block.number] = counts

    def of_length(self, split: str, length: int) -> list[LengthCounts]:
        """Returns the counts of each shard, in the shards' order."""
        shards = self._lengths[split, length]
        return [shards[number] for number in sorted(shards)]


def make_manifest(
    config: PrepareConfig, survey: Survey, counts: Counts, tokenizer: WordPieceTokenizer
) -> dict[str, Any]:
    """Returns the manifest, as plain JSON values."""
    settings = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in config.to_dict().items()
        if name not in _NOT_RECORDED
    }
    tokens = {split: int(counts.tokens[split].sum()) for split in SPLITS}
    unknown = sum(int(counts.tokens[split][tokenizer.unk_token_id]) for split in SPLITS)
    examples = {
        split: {str(length): _length_facts(counts.of_length(split, length), length) for length in config.lengths}
        for split in SPLITS
    }
    manifest: dict[str, Any] = {
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
            "excluded": survey.count(EXCLUDED),
            "duplicates_removed": survey.count(DUPLICATE),
            "near_duplicates_removed": survey.count(NEAR_DUPLICATE),
            "train": survey.count(TRAIN),
            "held_out": survey.count(HELD_OUT),
        },
        "near_duplicates": {
            "families": survey.families,
            "documents": None if survey.families is None else survey.near_duplicates,
        },
        "excluded": [
            {
                "path": file.source.path,
                "bytes": file.source.size,
                "sha256": file.source.sha256,
                "documents": file.source.documents,
                "documents_removed": file.removed,
            }
            for file in survey.excluded
        ],
        "text": {**dataclasses.asdict(survey.oddities), "long_sentences": counts.long_sentences},
        "documents_by_layout": {name: counts.layouts[name] for name in ("lines", "paragraphs", "wrapped")},
        "sentences": counts.sentences,
        "tokens": tokens,
        "unknown_tokens": unknown,
        "unknown_share": unknown / max(1, sum(tokens.values())),
        "examples": examples,
        "skipped": {
            "documents_without_tokens": counts.empty_documents,
            "truncated_tokens": {
                split: {length: facts["truncated_tokens"] for length, facts in of_split.items()}
                for split, of_split in examples.items()
            },
        },
    }
    manifest["notes"] = [*_warnings(manifest, tokenizer), *_notes(config, survey, manifest)]
    return manifest


def _length_facts(shards: list[LengthCounts], length: int) -> dict[str, Any]:
    examples = sum(shard.examples for shard in shards)
    tokens = sum(shard.tokens for shard in shards)
    random_next = sum(shard.random_next for shard in shards)
    pairs = PairCounts()
    for shard in shards:
        pairs += shard.pairs
    return {
        "examples": examples,
        "shards": [shard.examples for shard in shards],
        "tokens": tokens,
        "mean_fill": tokens / (length * examples) if examples else None,
        "random_next_share": random_next / examples if examples else None,
        "true_next_share": 1 - random_next / examples if examples else None,
        "single_sentence_chunks": pairs.single_sentence_chunks,
        "own_tokens": pairs.kept_tokens + pairs.truncated_tokens + pairs.unpaired_tokens,
        "kept_tokens": pairs.kept_tokens,
        "truncated_tokens": pairs.truncated_tokens,
        "unpaired_sentences": pairs.unpaired_sentences,
        "unpaired_tokens": pairs.unpaired_tokens,
    }


def _warnings(manifest: dict[str, Any], tokenizer: WordPieceTokenizer) -> Iterator[str]:
    """Yields a sentence for everything that speaks for another vocabulary."""
    if manifest["unknown_share"] > _MOST_UNKNOWN:
        yield (
            f"Warning: {manifest['unknown_share']:.1%} of the tokens are unknown to the vocabulary; "
            "take one that fits, or learn one from this text with `keras-bert vocab`."
        )
    upper_case = sum(
        token != token.lower()
        for number, token in enumerate(tokenizer.vocabulary)
        if number not in tokenizer.special_token_ids
    )
    if tokenizer.lowercase and upper_case:
        yield (
            f"Warning: {counted(upper_case, 'token')} of the vocabulary (of {tokenizer.vocab_size:,}) can never occur, "
            "for they have upper-case letters and the text is lower-cased; if the vocabulary is a cased one, "
            "give --cased."
        )


def _notes(config: PrepareConfig, survey: Survey, manifest: dict[str, Any]) -> list[str]:
    """Returns a sentence for everything that is not as one would expect."""
    notes = list(survey.oddities.notes(config.max_document_chars))
    if cut := manifest["text"]["long_sentences"]:
        notes.append(f"Longer than {config.max_sentence_chars:,} characters and cut: {counted(cut, 'sentence')}.")
    documents = manifest["documents"]
    if documents["held_out"] == 0 and config.held_out_share > 0:
        reason = "There is one document only"
        if documents["train"] > 1:
            reason = "The documents are near-duplicates of one another, in families too large for the held-out part"
        notes.append(f"{reason}, so nothing is held out for evaluation.")
    for split in SPLITS:
        without = [length for length, facts in manifest["examples"][split].items() if not facts["examples"]]
        if documents[split] == 1 and config.next_sentence_prob > 0 and len(without) < len(config.lengths):
            unpaired = [manifest["examples"][split][str(length)]["unpaired_sentences"] for length in config.lengths]
            left_out = f", and {counted(max(unpaired), 'single sentence')} without a successor left out"
            notes.append(
                f"The {_NAMES[split]} part is a single document, so no second part is random: every pair is "
                f"a true successor (label 0){left_out if max(unpaired) else ''}."
            )
        if documents[split] and without:
            notes.append(
                f"The {_NAMES[split]} part has {counted(documents[split], 'document')} but no example of length "
                f"{', '.join(without)}: it takes a document of two sentences, or two documents."
            )
    if empty := manifest["skipped"]["documents_without_tokens"]:
        notes.append(f"Documents without a token, skipped: {empty:,}.")
    return notes


def survey_line(survey: Survey) -> str:
    """Returns what is said after the first reading."""
    read, duplicates = survey.fates.size, survey.count(DUPLICATE)
    size = size_in_words(sum(file.size for file in survey.files))
    left_out = f", {counted(duplicates, 'exact duplicate')} of others left out" if duplicates else ""
    if removed := survey.count(NEAR_DUPLICATE):
        left_out += f", {counted(removed, 'near-duplicate')} left out"
    elif near := survey.near_duplicates:
        left_out += f", {counted(near, 'near-duplicate')} of others kept on one side"
    if excluded := survey.count(EXCLUDED):
        left_out += f", {excluded:,} left out that share text with excluded files"
    return (
        f"Documents: {read:,} in {size} of text{left_out}; {survey.count(TRAIN):,} for training, "
        f"{survey.count(HELD_OUT):,} held out."
    )


def exclusion_lines(survey: Survey) -> Iterator[str]:
    """Yields what is said of each excluded file."""
    for file in survey.excluded:
        yield (
            f"Excluded {file.source.path}: {counted(file.source.documents, 'document')}; "
            f"{counted(file.removed, 'document')} of the corpus left out for it."
        )


def summary_lines(manifest: dict[str, Any]) -> Iterator[str]:
    """Yields what is said of the examples."""
    tokens = manifest["tokens"]
    yield (
        f"Sentences: {sum(manifest['sentences'].values()):,}; tokens: {sum(tokens.values()):,}, "
        f"{manifest['unknown_share']:.2%} of them unknown."
    )
    for split in SPLITS:
        for length, facts in manifest["examples"][split].items():
            if facts["examples"]:
                cut_off = ""
                if truncated := facts["truncated_tokens"]:
                    cut_off = (
                        f"; {counted(truncated, 'token')} ({truncated / facts['own_tokens']:.1%}) cut off "
                        "because a pair was longer than the length"
                    )
                yield (
                    f"Length {length}, {_NAMES[split]}: {counted(facts['examples'], 'example')}, "
                    f"rows filled to {facts['mean_fill']:.0%}, "
                    f"second part random in {facts['random_next_share']:.0%}{cut_off}."
                )
    single = {
        length: sum(manifest["examples"][split][length]["single_sentence_chunks"] for split in SPLITS)
        for length in manifest["examples"]["train"]
    }
    wanted = manifest["settings"]["next_sentence_prob"]
    if any(single.values()) and wanted < 1:
        chunks = ", ".join(f"{number:,} at length {length}" for length, number in single.items())
        yield (
            f"A random second part is drawn for {wanted:.0%} of the chunks of two or more sentences, and for every "
            f"chunk of a single sentence, which has no second part of its own ({chunks})."
        )
