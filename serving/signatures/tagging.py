"""A tag for every word of raw texts, or of texts that come in words."""

from typing import Any

import tensorflow as tf

from .signatures import NO_POSITION, Outputs, Rows, Signatures, every_row, slices


class TaggingSignatures(Signatures):
    """The signatures of a classifier of tokens: besides texts and ids, lists of words are answered."""

    @property
    def truncation(self) -> str:
        """What becomes of texts that are too long."""
        return f"a text of more than {self._max_length - 2} pieces keeps its first words"

    def endpoints(self) -> dict[str, tuple[Any, list[tf.TensorSpec]]]:
        """Returns function and inputs of each signature, by name."""
        words = [tf.TensorSpec([None, None], tf.string, "words")]
        return {**super().endpoints(), "words": (self.answer_words, words)}

    def answer_texts(self, text: tf.Tensor) -> Outputs:
        """Finds the words of raw texts and tags them.

        Args:
            text: string, `(batch,)`.

        Returns:
            What `answer_words` gives, and:
                words: string, `(batch, words)`; as the tokenizer finds them; `""` fills rows up.
                start, end: int32, `(batch, words)`; characters, so that `text[start:end]` is the word; -1 fills up.
        """
        words, starts, ends = self._words(text)
        outputs, is_read = self._answers(words)
        outputs["words"] = tf.ragged.boolean_mask(words, is_read).to_tensor("")
        for name, places in (("start", starts), ("end", ends)):
            outputs[name] = tf.ragged.boolean_mask(places, is_read).to_tensor(NO_POSITION)
        return outputs

    def answer_words(self, words: tf.Tensor) -> Outputs:
        """Tags texts that come in words, each of which is cut into pieces by itself.

        Args:
            words: string, `(batch, words)`; `""` fills rows up.

        Returns:
            A dict:
                tags: string, `(batch, words)`; `""` fills up, and stands where a word was left out.
                probabilities: float32, `(batch, words)`; that of each tag, else 0.
                num_tokens: int32, `(batch,)`; ids of the row, with `[CLS]` and `[SEP]`.
                truncated: bool, `(batch,)`; whether words, or the end of one, were left out.
        """
        places = tf.where(words != "", tf.range(tf.shape(words)[1])[None] + 1, 0)
        counts = tf.reduce_max(tf.pad(places, [[0, 0], [1, 0]]), axis=1)
        outputs, _ = self._answers(tf.RaggedTensor.from_tensor(words, lengths=counts))
        width = tf.shape(words)[1] - tf.shape(outputs["tags"])[1]
        for name in ("tags", "probabilities"):
            outputs[name] = tf.pad(outputs[name], [[0, 0], [0, width]])
        return outputs

    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Answers ids.

        Returns:
            A dict:
                labels: string, `(batch, labels)`; the names, the same in every row.
                logits: float32, `(batch, seq_len, labels)`; 0 at padding.
        """
        inputs = self.model_inputs(token_ids, segment_ids)
        logits = self.at_tokens(self._unpadded(inputs, training=False), inputs)
        return {"labels": every_row(self._model.labels, logits), "logits": logits}

    def rows_of_texts(self, *texts: tf.Tensor) -> Rows:
        """Returns the rows that `answer_texts` reads."""
        row_pieces, _, _, truncated = self._pieces_read(self._words(*texts)[0])
        return self.filled_up(row_pieces, None, truncated)

    def _words(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
        """Returns the words of texts, where they start and where they end."""
        starts, ends = self._tokenizer.word_offsets(text)
        # Every word takes a place at least. That there were more shows in the one that is too many.
        starts, ends = starts[:, : self._max_length], ends[:, : self._max_length]
        return slices(text, starts, ends), starts, ends

    def _answers(self, words: tf.RaggedTensor) -> tuple[Outputs, tf.RaggedTensor]:
        """Returns the tags of words, string, `(batch, words)`, and which of them were read."""
        row_pieces, word_pieces, is_read, truncated = self._pieces_read(words)
        rows = self.filled_up(row_pieces, None, truncated)
        probabilities = tf.nn.softmax(self._unpadded(rows.inputs, training=False))
        # Pieces stand behind [CLS], in their order.
        columns = tf.ragged.range(row_pieces.row_lengths()).values + 1
        of_pieces = tf.gather_nd(probabilities, tf.stack([row_pieces.value_rowids(), columns], axis=1))
        if self._settings.labelled_pieces == "first":
            of_words = tf.gather(of_pieces, word_pieces.row_starts())
        else:
            of_words = tf.math.segment_mean(of_pieces, word_pieces.value_rowids())
        tags = tf.gather(tf.constant(list(self._model.labels)), tf.argmax(of_words, axis=-1))
        read = tf.ragged.boolean_mask(is_read, is_read)
        outputs = {
            "tags": read.with_values(tags).to_tensor(""),
            "probabilities": read.with_values(tf.reduce_max(of_words, axis=-1)).to_tensor(0.0),
            **rows.facts,
        }
        return outputs, is_read

    def _pieces_read(
        self, words: tf.RaggedTensor
    ) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        """Returns the pieces of the words that have room in a row, as `keras_bert_impl.tasks.word_windows` cuts them.

        Args:
            words: string, `(batch, words)`.

        Returns:
            The pieces read, by rows and by words; for all words whether they are read; for rows whether some are not.
        """
        room = self._max_length - 2
        pieces = self._tokenizer(words.values)
        lengths = pieces.row_lengths()
        # The unknown token stands for words without pieces, such as a lone control character.
        is_empty = tf.cast(lengths == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(is_empty)], self._special.unk_token_id)
        pieces = tf.concat([pieces[:, :room], tf.RaggedTensor.from_row_lengths(unknown, is_empty)], axis=1)
        edges = tf.concat([[tf.constant(0, tf.int64)], tf.cumsum(pieces.row_lengths())], axis=0)
        row_edges = tf.gather(tf.gather(edges, words.row_starts()), words.value_rowids())
        is_read = edges[1:] - row_edges <= room
        left_out = tf.cast(~is_read | (lengths > room), tf.int32)
        truncated = tf.math.unsorted_segment_sum(left_out, words.value_rowids(), words.nrows()) > 0
        word_pieces = tf.ragged.boolean_mask(pieces, is_read)
        is_read = words.with_values(is_read)
        row_splits = tf.gather(word_pieces.row_splits, tf.ragged.boolean_mask(is_read, is_read).row_splits)
        row_pieces = tf.RaggedTensor.from_row_splits(word_pieces.values, row_splits, validate=False)
        return row_pieces, word_pieces, is_read, truncated
