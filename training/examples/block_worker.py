"""What is done with one block: sentences, tokens, pairs, shards. No TensorFlow here."""

import collections
import dataclasses
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..corpus.sentences import SentenceSplitter
from .blocks import Block
from .pairs import PairCounts, PairMaker
from .shards import SPLITS, example_ids, rows_of_pairs, shard_paths, write_array


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


@dataclasses.dataclass
class LengthCounts:
    """What a block gave at one length."""

    examples: int
    tokens: int
    random_next: int
    pairs: PairCounts


@dataclasses.dataclass
class BlockCounts:
    """What was found in a block and what it gave.

    Attributes:
        token_counts: occurrences of each token id, (vocab_size,).
        layouts: number of documents by the way their lines were taken.
        empty_documents: documents without a single token.
        long_sentences: sentences that were cut.
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
    lengths: dict[int, LengthCounts]


class BlockWorker:
    """Turns blocks into shards, one per sequence length."""

    def __init__(self, settings: BlockSettings):
        self.settings = settings
        self.tokenizer = WordPieceTokenizer.from_pretrained(settings.directory)
        self.splitter = SentenceSplitter(settings.sentences, settings.language, settings.max_sentence_chars)

    def __call__(self, block: Block) -> BlockCounts:
        """Writes the block's shards and returns its counts."""
        layouts: collections.Counter[str] = collections.Counter()
        cut_before = self.splitter.long_sentences
        documents: list[list[list[int]]] = []
        for document in block.documents:
            sentences, layout = self.splitter.split(document)
            layouts[layout] += 1
            all_ids = [self.tokenizer.encode_ids(sentence, keep_special_tokens=False) for sentence in sentences]
            documents.append([ids for ids in all_ids if ids])
        filled = [document for document in documents if document]
        token_counts = np.zeros(self.tokenizer.vocab_size, np.int64)
        for encoded in filled:
            token_counts += np.bincount(list(chain.from_iterable(encoded)), minlength=self.tokenizer.vocab_size)
        return BlockCounts(
            split=block.split,
            number=block.number,
            documents=len(documents),
            sentences=sum(map(len, filled)),
            token_counts=token_counts,
            layouts=layouts,
            empty_documents=len(documents) - len(filled),
            long_sentences=self.splitter.long_sentences - cut_before,
            lengths={length: self._write_shard(block, filled, length) for length in self.settings.lengths},
        )

    def _write_shard(self, block: Block, documents: Sequence[list[list[int]]], length: int) -> LengthCounts:
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
        return LengthCounts(
            examples=len(pairs),
            tokens=tokens.size,
            random_next=sum(pair.next_sentence_label for pair in pairs),
            pairs=counts,
        )
