"""The tokenizer's three forms beside the peers, on the same text with the same vocabulary, one thread each."""

import os

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tensorflow as tf
import tensorflow_text
from tokenizers import BertWordPieceTokenizer

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.in_graph_text_ops import TextOpsWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .row import Row, interleaved
from .texts import documentation, vocabulary


def measure() -> list[Row]:
    texts = documentation().read_text(encoding="utf-8").split("\n\n")
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    vocab = vocabulary()
    theirs = BertWordPieceTokenizer(str(vocab), lowercase=True)

    def python() -> None:
        tokenizer = WordPieceTokenizer.from_vocab_file(vocab)  # with an empty cache
        for text in texts:
            tokenizer.encode_ids(text)

    def rust() -> None:
        for text in texts:
            theirs.encode(text, add_special_tokens=False)

    graph = tf.function(InGraphWordPiece(WordPieceTokenizer.from_vocab_file(vocab)))
    with_text_ops = tf.function(TextOpsWordPiece(WordPieceTokenizer.from_vocab_file(vocab)))
    fast = tensorflow_text.FastBertTokenizer(
        vocab.read_text(encoding="utf-8").splitlines(), lower_case_nfd_strip_accents=True
    )
    batches = [tf.constant(texts[i : i + 256]) for i in range(0, len(texts), 256)]

    def in_graph() -> None:
        for batch in batches:
            graph(batch)

    def text_ops() -> None:
        for batch in batches:
            with_text_ops(batch)

    def tf_text() -> None:
        for batch in batches:
            fast.tokenize(batch)

    ours, peer, ours_graph, ours_text_ops, peer_graph = interleaved(
        [python, rust, in_graph, text_ops, tf_text], rounds=3
    )
    return [
        Row("tokenizer, Python", "MB/s", megabytes / ours, "tokenizers", megabytes / peer, 1.0, more_is_better=True),
        Row(
            "tokenizer, in graph",
            "MB/s",
            megabytes / ours_graph,
            "FastBertTokenizer (not BERT's lower-casing)",
            megabytes / peer_graph,
        ),
        Row(
            "tokenizer, in graph with tensorflow-text",
            "MB/s",
            megabytes / ours_text_ops,
            "FastBertTokenizer (not BERT's lower-casing)",
            megabytes / peer_graph,
        ),
    ]
