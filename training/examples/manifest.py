"""What was prepared: every setting and count, for machines (the manifest) and for people (lines)."""

import collections
import dataclasses
import json
import math
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import PAIRS_ONLY, REFERENCE_SETTINGS, PrepareConfig
from ..corpus.survey import DUPLICATE, EXCLUDED, HELD_OUT, NEAR_DUPLICATE, TRAIN, Survey
from ..corpus.wording import counted, percent
from .block_worker import BlockCounts, LengthCounts
from .corpus_warnings import corpus_warnings
from .masking import MASKED_SHARE, max_predictions
from .packing import PACKED_FROM
from .pairs import PairCounts
from .prepared_data import MANIFEST
from .record_counts import mask_facts
from .shards import FORMAT_NAME, FORMAT_VERSION, SPLITS
from .unknown_words import beginning, commonest
from .word_boundaries import PIECES

# None of them changes the result, so none belongs in the manifest.
_NOT_RECORDED = ("workers", "output", "reference_limit")
NAMES = {"train": "training", "held_out": "held-out"}
# How many unknown words and characters are named.
_NAMED = 10


class Counts:
    """The counts of all blocks, in whatever order they come.

    Attributes:
        tokens: per split, the occurrences of each token in its documents.
        words: per split, as `word_boundaries` takes them.
        sentences: per split.
        layouts: number of documents by the way their lines were taken.
        empty_documents: number of documents without a token.
        long_sentences: number of sentences that were cut.
        single_sentence_documents: number of documents with one sentence.
        upper_case_sentences: number of sentences with an upper-case letter.
        unknown_words, unknown_characters: what the vocabulary does not know; of words, a block's commonest.
    """

    def __init__(self, vocab_size: int):
        self.tokens = {split: np.zeros(vocab_size, np.int64) for split in SPLITS}
        self.words = dict.fromkeys(SPLITS, 0)
        self.sentences = dict.fromkeys(SPLITS, 0)
        self.layouts: collections.Counter[str] = collections.Counter()
        self.empty_documents = 0
        self.long_sentences = 0
        self.single_sentence_documents = 0
        self.upper_case_sentences = 0
        self.unknown_words: collections.Counter[str] = collections.Counter()
        self.unknown_characters: collections.Counter[str] = collections.Counter()
        self._lengths: dict[tuple[str, int], dict[int, LengthCounts]] = collections.defaultdict(dict)

    def add(self, block: BlockCounts) -> None:
        """Adds a block."""
        self.tokens[block.split] += block.token_counts
        self.words[block.split] += block.words
        self.sentences[block.split] += block.sentences
        self.layouts += block.layouts
        self.empty_documents += block.empty_documents
        self.long_sentences += block.long_sentences
        self.single_sentence_documents += block.single_sentence_documents
        self.upper_case_sentences += block.upper_case_sentences
        self.unknown_words.update(block.unknown_words)
        self.unknown_characters.update(block.unknown_characters)
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
    tokens = {split: int(counts.tokens[split].sum()) for split in SPLITS}
    unknown = sum(int(counts.tokens[split][tokenizer.unk_token_id]) for split in SPLITS)
    next_sentence = config.examples == "pairs"
    examples = {
        split: {
            str(length): _length_facts(counts.of_length(split, length), length, next_sentence)
            for length in config.lengths
        }
        for split in SPLITS
    }
    manifest: dict[str, Any] = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "settings": recorded_settings(config),
        "vocabulary": {"size": tokenizer.vocab_size, "lowercase": tokenizer.lowercase},
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
        "text": {
            "characters": survey.size,
            **dataclasses.asdict(survey.oddities),
            "long_sentences": counts.long_sentences,
            "upper_case_sentences": counts.upper_case_sentences,
        },
        "single_sentence_documents": counts.single_sentence_documents,
        "documents_by_layout": {name: counts.layouts[name] for name in ("lines", "paragraphs", "wrapped")},
        "sentences": counts.sentences,
        "words": counts.words,
        "tokens": tokens,
        "unknown_tokens": unknown,
        "unknown_share": unknown / max(1, sum(tokens.values())),
        "unknown_characters": [
            {"character": char, "code_point": f"U+{ord(char):04X}", "count": count}
            for char, count in commonest(counts.unknown_characters, _NAMED).items()
        ],
        "unknown_words": [
            {"word": beginning(word), "count": count} for word, count in commonest(counts.unknown_words, _NAMED).items()
        ],
        "unigram_entropy": _entropy(counts.tokens["train"]),
        "next_sentence": next_sentence,
        "examples": examples,
        "skipped": {
            "documents_without_tokens": counts.empty_documents,
            "truncated_tokens": {
                split: {length: facts["truncated_tokens"] for length, facts in of_split.items()}
                for split, of_split in examples.items()
            },
        },
    }
    manifest["notes"] = [*corpus_warnings(manifest, tokenizer), *_notes(config, survey, manifest)]
    return manifest


def save_manifest(manifest: dict[str, Any], directory: Path) -> None:
    """Writes the manifest into a directory."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    (directory / MANIFEST).write_text(text, encoding="utf-8")


def recorded_settings(config: PrepareConfig) -> dict[str, Any]:
    """Returns the settings that have a say in the result, all decided."""
    left_out = set(_NOT_RECORDED)
    decided = {"format": "tfrecord" if config.writes_records else "prepared"}
    if config.writes_records:
        decided |= config.static_masks
        if decided["masking"] != "n-gram":
            left_out.add("max_ngram")
    else:
        left_out |= config.static_masks.keys()
    if config.reference:
        left_out |= config.to_dict().keys() - REFERENCE_SETTINGS
    if config.examples == "chunks":
        left_out.update(PAIRS_ONLY)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in {**config.to_dict(), **decided}.items()
        if name not in left_out
    }


def _length_facts(shards: list[LengthCounts], length: int, next_sentence: bool) -> dict[str, Any]:
    examples = sum(shard.examples for shard in shards)
    packed_rows = sum(shard.packed_rows for shard in shards)
    tokens = sum(shard.tokens for shard in shards)
    facts = {
        "examples": examples,
        "shards": [shard.examples for shard in shards],
        "tokens": tokens,
        "mean_fill": tokens / (length * examples) if examples else None,
        "packed_rows": packed_rows,
        "packed_fill": tokens / (length * packed_rows) if packed_rows else None,
        "expected_masks": _expected_masks(sum(shard.predictions for shard in shards), length),
    }
    return facts | (_pair_facts(shards, examples) if next_sentence else _chunk_facts(shards))


def _expected_masks(predictions: int, length: int) -> dict[str, Any]:
    """Returns what to expect of an epoch of training: the tokens to predict, by what stands in their place."""
    masked = (8 * predictions + 5) // 10
    replaced = (predictions - masked) // 2
    return {
        "masked_share": MASKED_SHARE,
        "max_predictions": max_predictions(length, MASKED_SHARE),
        **mask_facts(masked, replaced, predictions - masked - replaced),
    }


def _entropy(counts: np.ndarray) -> dict[str, float | None]:
    """Returns the mean surprise of a token to one who knows how often each occurs."""
    if not counts.any():
        return {"nats": None, "bits": None}
    shares = counts[counts > 0] / counts.sum()
    nats = float(0 - (shares * np.log(shares)).sum())  # A minus sign alone would make -0 of 0.
    return {"nats": nats, "bits": nats / math.log(2)}


def _chunk_facts(shards: list[LengthCounts]) -> dict[str, Any]:
    kept = sum(shard.chunks.kept_tokens for shard in shards)
    return {
        "own_tokens": kept,
        "kept_tokens": kept,
        "truncated_tokens": 0,
        "cut_sentences": sum(shard.chunks.cut_sentences for shard in shards),
    }


def _pair_facts(shards: list[LengthCounts], examples: int) -> dict[str, Any]:
    random_next = sum(shard.random_next for shard in shards)
    pairs = PairCounts()
    for shard in shards:
        pairs += shard.pairs
    return {
        "random_next_share": random_next / examples if examples else None,
        "true_next_share": 1 - random_next / examples if examples else None,
        "single_sentence_chunks": pairs.single_sentence_chunks,
        "own_tokens": pairs.kept_tokens + pairs.truncated_tokens + pairs.unpaired_tokens,
        "kept_tokens": pairs.kept_tokens,
        "truncated_tokens": pairs.truncated_tokens,
        "unpaired_sentences": pairs.unpaired_sentences,
        "unpaired_tokens": pairs.unpaired_tokens,
    }


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
        may_be_random = manifest["next_sentence"] and config.next_sentence_prob > 0
        if documents[split] == 1 and may_be_random and len(without) < len(config.lengths):
            unpaired = [manifest["examples"][split][str(length)]["unpaired_sentences"] for length in config.lengths]
            left_out = f", and {counted(max(unpaired), 'single sentence')} without a successor left out"
            left_out += in_passes(manifest)
            notes.append(
                f"The {NAMES[split]} part is a single document, so no second part is random: every pair is "
                f"a true successor (label 0){left_out if max(unpaired) else ''}."
            )
        if documents[split] and without and manifest["next_sentence"]:
            notes.append(
                f"The {NAMES[split]} part has {counted(documents[split], 'document')} but no example of length "
                f"{', '.join(without)}: it takes {least_text(config)}."
            )
    if empty := manifest["skipped"]["documents_without_tokens"]:
        notes.append(f"Documents without a token, skipped: {empty:,}.")
    return notes


def least_text(config: PrepareConfig) -> str:
    """Returns the least that gives an example."""
    if config.examples == "chunks":
        return "text"
    return "a document of two sentences" + (", or two documents" if config.next_sentence_prob > 0 else "")


def in_passes(manifest: dict[str, Any]) -> str:
    """Returns what to say beside counts over several passes through the text."""
    passes = manifest["settings"].get("passes", 1)
    return f" in {passes} passes" if passes > 1 else ""


def _shown(char: str) -> str:
    """Returns a character and a space, nothing for one that does not show by itself."""
    return f"{char} " if char.isprintable() and not unicodedata.category(char).startswith("M") else ""


def survey_line(survey: Survey) -> str:
    """Returns what is said after the first reading."""
    read, duplicates = survey.fates.size, survey.count(DUPLICATE)
    left_out = f", {counted(duplicates, 'exact duplicate')} of others left out" if duplicates else ""
    if removed := survey.count(NEAR_DUPLICATE):
        left_out += f", {counted(removed, 'near-duplicate')} left out"
    elif near := survey.near_duplicates:
        left_out += f", {counted(near, 'near-duplicate')} of others kept on one side"
    if excluded := survey.count(EXCLUDED):
        left_out += f", {excluded:,} left out that share text with excluded files"
    return (
        f"Documents: {read:,} in {counted(survey.size, 'character')} of text{left_out}; "
        f"{survey.count(TRAIN):,} for training, {survey.count(HELD_OUT):,} held out."
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
    tokens, sentences = manifest["tokens"], sum(manifest["sentences"].values())
    lowered = ""
    if manifest["vocabulary"]["lowercase"] and (upper_case := manifest["text"]["upper_case_sentences"]):
        lowered = f" ({percent(upper_case / max(1, sentences))} have upper-case letters, which are lower-cased)"
    yield (
        f"Sentences: {sentences:,}{lowered}; tokens: {sum(tokens.values()):,}, "
        f"{percent(manifest['unknown_share'], 2)} of them unknown."
    )
    words = sum(manifest["words"].values())
    if words and (boundaries := manifest["settings"]["word_boundaries"]) != PIECES:
        yield f"Words ({boundaries}): {words:,}, of {sum(tokens.values()) / words:.2f} tokens each on average."
    if characters := manifest["unknown_characters"]:
        named = ", ".join(f"{_shown(fact['character'])}{fact['code_point']} ({fact['count']:,})" for fact in characters)
        yield f"Characters that the vocabulary lacks: {named}."
    if unknown := manifest["unknown_words"]:
        named = ", ".join(f"{fact['word']} ({fact['count']:,})" for fact in unknown)
        yield f"Words that become the unknown token: {named}."
    entropy = manifest["unigram_entropy"]
    if entropy["nats"] is not None:
        yield (
            f"Unigram entropy of the training tokens: {entropy['nats']:.3f} nats ({entropy['bits']:.3f} bits) a token."
        )
    for split in SPLITS:
        for length, facts in manifest["examples"][split].items():
            if facts["examples"]:
                cut_off = ""
                if truncated := facts["truncated_tokens"]:
                    cut_off = (
                        f"; {counted(truncated, 'token')} ({percent(truncated / facts['own_tokens'], 1)}) cut off "
                        "because a pair was longer than the length"
                    )
                if facts.get("cut_sentences"):
                    cut_off = f"; {counted(facts['cut_sentences'], 'sentence')} longer than a row, cut into several"
                packed = ""
                # Only where pretraining packs them by itself.
                is_packed = split == "train" and int(length) >= PACKED_FROM
                if is_packed and facts.get("packed_rows", facts["examples"]) < facts["examples"]:
                    rows = counted(facts["packed_rows"], "row")
                    packed = f", packed into {rows} filled to {percent(facts['packed_fill'])}"
                labels = ""
                if manifest["next_sentence"]:
                    labels = f", second part random in {percent(facts['random_next_share'])}"
                yield (
                    f"Length {length}, {NAMES[split]}{in_passes(manifest)}: {counted(facts['examples'], 'example')}, "
                    f"rows filled to {percent(facts['mean_fill'])}{packed}{labels}{cut_off}."
                )
    expected = {length: facts.get("expected_masks") for length, facts in manifest["examples"]["train"].items()}
    for length, masks in expected.items():
        if masks and masks["predictions"]:
            yield (
                f"Masks of an epoch at length {length}{in_passes(manifest)}, at a share of "
                f"{percent(masks['masked_share'])}: about {counted(masks['predictions'], 'token')} to predict, "
                f"{masks['mask']:,} as [MASK], {masks['random']:,} as another token, {masks['unchanged']:,} unchanged."
            )
    if not manifest["next_sentence"]:
        yield "The examples are chunks of full sentences, without next-sentence prediction."
        return
    single = {
        length: sum(manifest["examples"][split][length]["single_sentence_chunks"] for split in SPLITS)
        for length in manifest["examples"]["train"]
    }
    wanted = manifest["settings"]["next_sentence_prob"]
    if any(single.values()) and wanted < 1:
        chunks = ", ".join(f"{number:,} at length {length}" for length, number in single.items())
        if manifest["documents"]["held_out"]:
            chunks += ", training and held-out part together"
        yield (
            f"A random second part is drawn for {percent(wanted)} of the chunks of two or more sentences, and for "
            "every chunk of a single sentence, which has no second part of its own "
            f"({chunks}{',' * bool(in_passes(manifest))}{in_passes(manifest)})."
        )
