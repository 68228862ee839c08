"""What the signatures of every export have in common: texts to rows, and ids to the model's inputs."""

import abc
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_bert_impl.tokenization.in_graph import InGraphWordPiece
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..loaded_model import LoadedModel

Outputs = dict[str, tf.Tensor]

NO_POSITION = -1
"""Fills up rows of positions, where another text of the batch has more of them."""


class Rows(NamedTuple):
    """Texts as the model reads them.

    Attributes:
        inputs: the Keras model's; the padding mask says where ids are that fill rows up.
        num_tokens: int32, `(batch,)`; ids of the row, with `[CLS]` and `[SEP]`.
        truncated: bool, `(batch,)`; whether pieces were left out.
    """

    inputs: dict[str, tf.Tensor]
    num_tokens: tf.Tensor
    truncated: tf.Tensor

    @property
    def facts(self) -> Outputs:
        """The outputs that say how the texts were read."""
        return {"num_tokens": self.num_tokens, "truncated": self.truncated}


class Signatures(abc.ABC):
    """The functions behind the signatures of an export.

    Args:
        loaded: model and tokenizer.
        tokenizer: the in-graph form of the tokenizer.

    Attributes:
        text_inputs: names of the inputs of the text signature.
    """

    def __init__(self, loaded: LoadedModel, tokenizer: InGraphWordPiece) -> None:
        self._loaded = loaded
        self._model: Any = loaded.model
        self._special: WordPieceTokenizer = loaded.tokenizer
        self._fresh_parts = loaded.fresh_parts
        self._settings: Any = loaded.settings
        self._tokenizer = tokenizer
        self._max_length = loaded.max_length
        self.text_inputs = loaded.text_inputs

    @functools.cached_property
    def _unpadded(self) -> Any:
        """The model, in the form in which only the real tokens of a batch of mixed lengths cost anything."""
        return self._model.unpadded_form()

    @functools.cached_property
    def _tokens(self) -> list[str]:
        """The token of each id. Models are often given more rows than the vocabulary has tokens."""
        return [*self._special.vocabulary, *[""] * (self._model.config.vocab_size - self._special.vocab_size)]

    @property
    def truncation(self) -> str:
        """What becomes of texts that are too long."""
        if len(self.text_inputs) == 1:
            return f"a text of more than {self._max_length - 2} pieces keeps its first ones"
        return f"of two texts of more than {self._max_length - 3} pieces the longer one gives up its last ones first"

    def endpoints(self) -> dict[str, tuple[Any, list[tf.TensorSpec]]]:
        """Returns function and inputs of each signature, by name."""
        texts = [tf.TensorSpec([None], tf.string, name) for name in self.text_inputs]
        ids = [tf.TensorSpec([None, None], tf.int32, name) for name in ("token_ids", "segment_ids")]
        return {
            "serving_default": (self.answer_texts, texts),
            "token_ids": (self.answer_checked_ids, ids),
        }

    def attention_endpoint(self) -> tuple[Any, list[tf.TensorSpec]]:
        """Returns function and inputs of the signature that shows what the encoder looks at, for `endpoints`."""
        _, texts = self.endpoints()["serving_default"]
        return self.answer_with_attention, texts

    @abc.abstractmethod
    def answer_texts(self, *texts: tf.Tensor) -> Outputs:
        """Answers raw texts, string, `(batch,)`; of more than one in a row if there are several `text_inputs`."""

    @abc.abstractmethod
    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Answers ids that were made elsewhere.

        Args:
            token_ids: int32, `(batch, seq_len)`; with `[CLS]` and `[SEP]`, filled up with the padding id.
            segment_ids: int32, `(batch, seq_len)`; 0 for the first text and padding, 1 for the second.
        """

    def answer_with_attention(self, *texts: tf.Tensor) -> Outputs:
        """Gives the tokens of raw texts and what share each gathers from each.

        Args:
            texts: as for `answer_texts`.

        Returns:
            A dict:
                tokens: string, `(batch, seq_len)`; `""` fills rows up.
                attention: float32, `(batch, num_hidden_layers, num_attention_heads, seq_len, seq_len)`; 0 at padding.
                num_tokens: int32, `(batch,)`; ids of the row, with `[CLS]` and `[SEP]`.
                truncated: bool, `(batch,)`; whether the end of a text was left out.
        """
        rows = self.rows_of_texts(*texts)
        is_token = rows.inputs["padding_mask"] != 0
        probabilities = tf.cast(self._loaded.encoder.attention_probabilities(rows.inputs), tf.float32)
        of_token = tf.where(is_token[:, None, None, :, None], probabilities, 0.0)
        tokens = tf.gather(tf.constant(self._tokens), rows.inputs["token_ids"])
        return {"tokens": tf.where(is_token, tokens, ""), "attention": of_token, **rows.facts}

    def rows_of_texts(self, *texts: tf.Tensor) -> Rows:
        """Returns the rows that `answer_texts` reads."""
        return self.rows(*texts)

    def answer_checked_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Answers ids that the model has rows for, and refuses others."""
        with tf.control_dependencies(self._id_checks(token_ids, segment_ids)):
            return self.answer_ids(with_a_column(token_ids), with_a_column(segment_ids))

    def rows(self, text: tf.Tensor, text_pair: tf.Tensor | None = None) -> Rows:
        """Returns the rows of texts, or of pairs of texts; what is too long loses its end."""
        pieces = self._tokenizer(text)
        if text_pair is not None:
            return self._rows_of_pairs(pieces, self._tokenizer(text_pair))
        kept = pieces[:, : self._max_length - 2]
        return self.filled_up(kept, None, pieces.row_lengths() > kept.row_lengths())

    def filled_up(self, first: tf.RaggedTensor, second: tf.RaggedTensor | None, truncated: tf.Tensor) -> Rows:
        """Returns the rows of pieces that fit: int32, `(batch, pieces)`, those of a second text if there is one."""
        ones = tf.ones([first.nrows(), 1], tf.int32)
        sep = ones * self._special.sep_token_id
        rest = [] if second is None else [second, sep]
        rows = tf.concat([ones * self._special.cls_token_id, first, sep, *rest], axis=1)
        token_ids = with_a_column(rows.to_tensor(self._special.pad_token_id))
        num_tokens = tf.cast(rows.row_lengths(), tf.int32)
        columns = tf.range(tf.shape(token_ids)[1])[None]
        is_token = columns < num_tokens[:, None]
        is_second = is_token & (columns >= tf.cast(first.row_lengths(), tf.int32)[:, None] + 2)
        inputs = {
            "token_ids": token_ids,
            "segment_ids": tf.cast(is_second, tf.int32),
            "padding_mask": tf.cast(is_token, tf.int32),
        }
        return Rows(inputs, num_tokens, truncated)

    def model_inputs(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the Keras model's inputs for ids, of which those of the padding token are padding.

        So rows which a server has filled up to one length give the answers that they give alone.
        """
        padding_mask = tf.cast(token_ids != self._special.pad_token_id, tf.int32)
        return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}

    def at_tokens(self, values: tf.Tensor, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Returns what was computed for each position, float32, with 0 at padding.

        Args:
            values: `(batch, seq_len, …)`.
            inputs: the model's, for these positions.
        """
        # Of a row of padding alone the model reads the first position.
        is_token = inputs["padding_mask"] != 0
        for axis in range(2, values.shape.rank):
            is_token = tf.expand_dims(is_token, axis)
        return tf.where(is_token, tf.cast(values, tf.float32), 0.0)

    def _rows_of_pairs(self, first: tf.RaggedTensor, second: tf.RaggedTensor) -> Rows:
        """The longer text of a pair gives up its last pieces first."""
        room = self._max_length - 3
        lengths, pair_lengths = first.row_lengths(), second.row_lengths()
        # What is left of taking, one by one, the last piece of the longer text, and of the second where they are even.
        kept = keep(first, tf.maximum(room - pair_lengths, (room + 1) // 2))
        kept_pair = keep(second, tf.maximum(room - lengths, room // 2))
        truncated = (lengths > kept.row_lengths()) | (pair_lengths > kept_pair.row_lengths())
        return self.filled_up(kept, kept_pair, truncated)

    def _id_checks(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> list[tf.Operation]:
        """A GPU would answer ids outside the tables with zeros, and unequal shapes may broadcast."""
        config = self._model.config
        same_shape = tf.reduce_all(tf.equal(tf.shape(token_ids), tf.shape(segment_ids)))
        checks = [
            tf.debugging.Assert(same_shape, ["`token_ids` and `segment_ids` must have one shape"]),
            tf.debugging.Assert(
                tf.shape(token_ids)[1] <= config.max_position_embeddings,
                [f"`token_ids` must have at most {config.max_position_embeddings} columns"],
            ),
        ]
        for name, ids, size in (
            ("token_ids", token_ids, config.vocab_size),
            ("segment_ids", segment_ids, config.type_vocab_size),
        ):
            inside = tf.reduce_all((ids >= 0) & (ids < size))
            checks.append(tf.debugging.Assert(inside, [f"`{name}` must be at least 0 and less than {size}"]))
        return checks


def keep(rows: tf.RaggedTensor, most: tf.Tensor) -> tf.RaggedTensor:
    """Returns the rows without what they have beyond their `most`, int64, `(batch,)`."""
    columns = tf.ragged.range(rows.row_lengths())
    places = columns.values < tf.gather(most, columns.value_rowids())
    return tf.ragged.boolean_mask(rows, rows.with_values(places))


def slices(texts: tf.Tensor, starts: tf.RaggedTensor, ends: tf.RaggedTensor) -> tf.RaggedTensor:
    """Returns slices of texts.

    Args:
        texts: string, `(batch,)`, UTF-8.
        starts, ends: int32, `(batch, slices)`; characters.
    """
    row_splits, code_points, byte_starts = tf.raw_ops.UnicodeDecodeWithOffsets(
        input=texts, input_encoding="UTF-8", errors="replace", replacement_char=0xFFFD
    )
    # By bytes: a slice by characters would count from the beginning of the text for each.
    rows = starts.value_rowids()
    row_starts, row_ends = tf.gather(row_splits, rows), tf.gather(row_splits, rows + 1)
    sizes = tf.strings.length(tf.gather(texts, rows))

    def byte_place(characters: tf.Tensor) -> tf.Tensor:
        places = row_starts + tf.cast(characters, tf.int64)
        inside = places < row_ends
        found = tf.gather(
            tf.concat([byte_starts, [0]], axis=0), tf.where(inside, places, tf.size(code_points, tf.int64))
        )
        return tf.where(inside, tf.cast(found, tf.int32), sizes)

    begin, end = byte_place(starts.values), byte_place(ends.values)
    return starts.with_values(tf.strings.substr(tf.gather(texts, rows), begin, end - begin))


def with_a_column(ids: tf.Tensor) -> tf.Tensor:
    """Returns ids, of no rows and no columns with a column: models look at the first one, even of no rows."""
    shape = tf.shape(ids)
    return tf.pad(ids, [[0, 0], [0, tf.cast((shape[0] == 0) & (shape[1] == 0), tf.int32)]])


def every_row(names: Sequence[str], rows: tf.Tensor) -> tf.Tensor:
    """Returns the names once for each row of a tensor, `(batch, names)`: a server hands out every output by rows."""
    return tf.tile(tf.constant([list(names)]), [tf.shape(rows)[0], 1])
