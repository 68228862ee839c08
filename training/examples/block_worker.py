"""What is done with one block: sentences, tokens, pairs, shards. No TensorFlow here."""

import collections
import dataclasses
import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import PrepareConfig
from ..corpus.sentences import SentenceSplitter
from .blocks import Block
from .chunks import ChunkCounts, ChunkMaker
from .masking import MASKED_SHARE, max_predictions, wanted_predictions
from .packing import plan_rows
from .pairs import Pair, PairCounts, PairMaker
from .shards import (
    SPLITS,
    continued_of_pairs,
    continued_path,
    example_ids,
    row_size,
    rows_of_pairs,
    rows_path,
    shard_paths,
    write_array,
)
from .unknown_words import MOST_WORDS, UnknownWords, commonest
from .word_boundaries import PIECES, MarkingTokenizer
from .words import CONTINUES, continuing_tokens, unmarked


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlockSettings:
    """What is the same for every block.

    Attributes:
        directory: where the shards go; holds the tokenizer already.
        The others are those of `PrepareConfig`.
    """

    directory: str
    lengths: tuple[int, ...]
    seed: int
    passes: int
    sentences: str
    language: str
    max_sentence_chars: int
    short_seq_prob: float
    next_sentence_prob: float
    examples: str
    word_boundaries: str

    @classmethod
    def of(cls, config: PrepareConfig, directory: str | os.PathLike[str]) -> Self:
        """Returns the settings of a config for blocks whose shards go into a directory."""
        names = [field.name for field in dataclasses.fields(cls) if field.name != "directory"]
        return cls(directory=str(directory), **{name: getattr(config, name) for name in names})


@dataclasses.dataclass
class LengthCounts:
    """What a block gave at one length; `predictions` are those of an epoch at the usual share."""

    examples: int
    packed_rows: int
    tokens: int
    random_next: int
    predictions: int
    pairs: PairCounts
    chunks: ChunkCounts


@dataclasses.dataclass
class BlockCounts:
    """What was found in a block and what it gave.

    Attributes:
        token_counts: occurrences of each token id, (vocab_size,).
        layouts: number of documents by the way their lines were taken.
        empty_documents: documents without a single token.
        long_sentences: sentences that were cut.
        single_sentence_documents: documents of one sentence.
        upper_case_sentences: sentences with an upper-case letter.
        words: as `word_boundaries` takes them.
        unknown_words: the commonest words that the vocabulary does not know.
        unknown_characters: characters in unknown words that the vocabulary lacks.
        lengths: counts per sequence length.
    """

    split: str
    number: int
    documents: int
    sentences: int
    token_counts: np.ndarray
    layouts: collections.Counter[str]
    empty_documents: int
    long_sentences: int
    single_sentence_documents: int
    upper_case_sentences: int
    words: int
    unknown_words: collections.Counter[str]
    unknown_characters: collections.Counter[str]
    lengths: dict[int, LengthCounts]


class BlockWorker:
    """Turns blocks into shards, one per sequence length."""

    def __init__(self, settings: BlockSettings):
        self.settings = settings
        self.tokenizer = WordPieceTokenizer.from_pretrained(settings.directory)
        self.encode = MarkingTokenizer(self.tokenizer, settings.word_boundaries)
        self.continuing = continuing_tokens(self.tokenizer)
        self.splitter = SentenceSplitter(settings.sentences, settings.language, settings.max_sentence_chars)

    def __call__(self, block: Block) -> BlockCounts:
        """Writes the block's shards and returns its counts."""
        layouts: collections.Counter[str] = collections.Counter()
        cut_before = self.splitter.long_sentences
        unknown, upper_case, words = UnknownWords(self.tokenizer), 0, 0
        unknown_id, vocab_size = self.tokenizer.unk_token_id, self.tokenizer.vocab_size
        token_counts = np.zeros(vocab_size, np.int64)
        documents: list[list[list[int]]] = []
        for document in block.documents:
            sentences, layout = self.splitter.split(document)
            layouts[layout] += 1
            encoded = list(map(self.encode, sentences))
            ids, continues = unmarked(list(chain.from_iterable(encoded)))
            counts = np.bincount(ids, minlength=vocab_size)
            token_counts += counts
            words += ids.size - int((continues | self.continuing[ids]).sum())
            upper_case += sum(sentence != sentence.lower() for sentence in sentences)
            if counts[unknown_id]:
                for sentence, marked in zip(sentences, encoded, strict=True):
                    if unknown_id in marked or unknown_id | CONTINUES in marked:
                        unknown.add(sentence)
            documents.append([ids for ids in encoded if ids])
        filled = [document for document in documents if document]
        return BlockCounts(
            split=block.split,
            number=block.number,
            documents=len(documents),
            sentences=sum(map(len, filled)),
            token_counts=token_counts,
            layouts=layouts,
            empty_documents=len(documents) - len(filled),
            long_sentences=self.splitter.long_sentences - cut_before,
            single_sentence_documents=sum(len(document) == 1 for document in filled),
            upper_case_sentences=upper_case,
            words=words,
            unknown_words=commonest(unknown.words, MOST_WORDS),
            unknown_characters=unknown.characters,
            lengths={length: self._write_shard(block, filled, length) for length in self.settings.lengths},
        )

    def _write_shard(self, block: Block, documents: Sequence[list[list[int]]], length: int) -> LengthCounts:
        settings = self.settings
        pair_counts, chunk_counts = PairCounts(), ChunkCounts()
        if settings.examples == "chunks":
            pairs, chunk_counts = ChunkMaker(length).chunks_of_block(documents)
        else:
            pairs, pair_counts = self._pairs(block, documents, length)
        order, bounds = plan_rows([row_size(pair) for pair in pairs], length)
        pairs = [pairs[number] for number in order]
        ids = example_ids(settings.seed, block.split, length, block.number, len(pairs))
        tokens, examples = rows_of_pairs(
            pairs,
            ids,
            cls_token_id=self.tokenizer.cls_token_id,
            sep_token_id=self.tokenizer.sep_token_id,
            vocab_size=self.tokenizer.vocab_size,
        )
        tokens_path, examples_path = shard_paths(Path(settings.directory), block.split, length, block.number)
        write_array(tokens_path, tokens)
        write_array(examples_path, examples)
        write_array(rows_path(Path(settings.directory), block.split, length, block.number), bounds)
        if settings.word_boundaries != PIECES:
            path = continued_path(Path(settings.directory), block.split, length, block.number)
            write_array(path, continued_of_pairs(pairs, examples))
        most = max_predictions(length, MASKED_SHARE)
        return LengthCounts(
            examples=len(pairs),
            packed_rows=bounds.size - 1,
            tokens=tokens.size,
            random_next=sum(pair.next_sentence_label for pair in pairs),
            predictions=int(wanted_predictions(examples["length"], most, MASKED_SHARE).sum()),
            pairs=pair_counts,
            chunks=chunk_counts,
        )

    def _pairs(self, block: Block, documents: Sequence[list[list[int]]], length: int) -> tuple[list[Pair], PairCounts]:
        settings = self.settings
        maker = PairMaker(length, settings.short_seq_prob, settings.next_sentence_prob)
        pairs, counts = [], PairCounts()
        for number in range(settings.passes):
            key = np.random.SeedSequence(
                (settings.seed % 2**64, SPLITS.index(block.split), length, block.number, number)
            )
            made, found = maker.pairs_of_block(documents, np.random.Generator(np.random.Philox(key)))
            pairs += made
            counts += found
        return pairs, counts
