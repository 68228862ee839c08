"""A small BERT with its vocabulary; and an export that has nothing to do with BERT, with a server for it."""

import string
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keras_bert_impl.config import BertConfig
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

if TYPE_CHECKING:
    from keras_bert_impl.serving.local_server import LocalServer


@pytest.fixture(scope="session")
def small_tokenizer() -> WordPieceTokenizer:
    words = "the a of and sat on mat cat dog is in to hello world play ##ing ##ed ##s 今 天 气 い ##ろ".split()
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters, *[f"##{x}" for x in letters]]
    return WordPieceTokenizer(list(dict.fromkeys(vocabulary)))


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory, small_tokenizer: WordPieceTokenizer) -> Path:
    """A run directory with a model of 24 positions, whose weights are large enough to tell answers apart."""
    from keras_bert_impl.models.bert_pretrainer import BertPretrainer

    config = BertConfig(
        vocab_size=small_tokenizer.vocab_size + 3,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=24,
        initializer_range=0.3,
    )
    run = tmp_path_factory.mktemp("small_run")
    BertPretrainer(config, seed=5).save_pretrained(run / "model", tokenizer=small_tokenizer)
    (run / "config.json").write_text("{}")
    return run


@pytest.fixture(scope="session")
def small_export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 3: a string signature with several outputs, a numeric one with two inputs, one of a single output."""
    import keras
    import tensorflow as tf

    weight = tf.Variable(2.0)

    def texts(text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "length": tf.strings.length(text),
            "upper": tf.strings.upper(text),
            "raw_bytes": text,
            "scaled": tf.cast(tf.strings.length(text), tf.float32) * 0.1 * weight,
            "long": tf.strings.length(text) > 3,
        }

    def pairs(token_ids: tf.Tensor, segment_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        table = tf.constant([0.1, 0.2, 0.3, 0.4])
        return {"value": tf.gather(table, token_ids) * weight + tf.cast(segment_ids, tf.float32)}

    def decimals(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": x * weight}

    archive = keras.export.ExportArchive()
    archive.track(tf.train.Checkpoint(weight=weight))
    archive.add_endpoint("serving_default", texts, [tf.TensorSpec([None], tf.string, "text")])
    ids = [tf.TensorSpec([None, None], tf.int32, name) for name in ("token_ids", "segment_ids")]
    archive.add_endpoint("pairs", pairs, ids)
    archive.add_endpoint("decimals", decimals, [tf.TensorSpec([None, None], tf.float32, "x")])
    target = tmp_path_factory.mktemp("small") / "export"
    archive.write_out(str(target / "3"), verbose=False)
    (target / "12.partial").mkdir()
    (target / "99").mkdir()  # a version without content is not one
    return target


@pytest.fixture(scope="session")
def small_local_server(small_export: Path) -> Iterator["LocalServer"]:
    """Serves a model named `small` by both protocols."""
    from keras_bert_impl.serving.local_server import LocalServer

    with LocalServer(small_export, model_name="small", grpc_port=0) as server:
        yield server


@pytest.fixture(scope="session")
def small_server(small_local_server: "LocalServer") -> str:
    """URL of a model named `small`."""
    return small_local_server.url
