"""Answers to questions, as slices of the text that they are asked about."""

import tensorflow as tf

from keras_bert_impl.tasks.answer_spans import CONSIDERED
from keras_bert_impl.tokenization.in_graph import InGraphWordPiece

from ..loaded_model import LoadedQuestionAnswerer
from .signatures import Outputs, Rows, Signatures, keep, slices

# Odd, so that the powers of the first have inverses among 64-bit numbers.
_BASE, _OF_LENGTH, _OF_ROW = 6364136223846793005, 7046029254386353131, 3935559000370003845
_NEVER = float("-inf")


class QuestionAnsweringSignatures(Signatures):
    """The signatures of a model that finds answers, of at most `max_answer_length` pieces, in one row."""

    def __init__(self, loaded: LoadedQuestionAnswerer, tokenizer: InGraphWordPiece) -> None:
        super().__init__(loaded, tokenizer)
        self._max_question_length = loaded.cutter.max_question_length
        self._max_answer_length = min(self._settings.max_answer_length, self._max_length)

    @property
    def truncation(self) -> str:
        """What becomes of texts that are too long."""
        return (
            f"a question of more than {self._max_question_length} pieces keeps its first ones, and a context those for "
            f"which a row of {self._max_length} then has room"
        )

    def answer_texts(self, question: tf.Tensor, context: tf.Tensor) -> Outputs:
        """Answers questions.

        Args:
            question: string, `(batch,)`.
            context: string, `(batch,)`; the text of each, of which only the beginning is read if it is long.

        Returns:
            A dict:
                answer: string, `(batch,)`; `context[start:end]`, or `""` for no answer.
                start, end: int32, `(batch,)`; characters of the context.
                probability: float32, `(batch,)`; softmax of the scores of the best answers, and of "no answer" where
                    there may be none.
                score: float32, `(batch,)`; sum of the logits of the start and the end.
                num_tokens: int32, `(batch,)`; ids of the row, with `[CLS]` and `[SEP]`.
                truncated: bool, `(batch,)`; whether the end of the question or of the context was left out.
            Where there may be no answer, so that whoever reads a text in stretches can choose among theirs:
                null_score: float32, `(batch,)`; that of "no answer".
                null_threshold: float32, `(batch,)`; by how much it must be better to be given; the same in every row.
                best_start, best_end, best_probability, best_score: of the best answer, whether it is given or not; 0
                    in a context without words.
        """
        rows, starts, ends, context_place = self._rows_of_questions(question, context)
        logits = self._unpadded(rows.inputs, training=False)
        null_scores = logits["start_logits"][:, 0] + logits["end_logits"][:, 0]
        scores = self._pair_scores(logits, context_place, tf.cast(starts.row_lengths(), tf.int32))
        # Of equal scores the one that begins first comes first, and of those the shorter.
        scores, pairs = tf.math.top_k(scores, tf.shape(scores)[1])
        first = pairs // self._max_answer_length
        last = first + pairs % self._max_answer_length
        # What is beyond the text's pieces, one place at least, has no score.
        starts, ends = (tf.pad(places.to_tensor(), [[0, 0], [0, 1]]) for places in (starts, ends))
        inside = tf.shape(starts)[1] - 1
        starts = tf.gather(starts, tf.minimum(first, inside), batch_dims=1)
        ends = tf.gather(ends, tf.minimum(last, inside), batch_dims=1)

        is_found = tf.math.is_finite(scores)
        is_new = is_found & _comes_first(_text_keys(context, starts, ends))
        is_considered = is_new & (tf.cumsum(tf.cast(is_new, tf.int32), axis=1) <= CONSIDERED)
        any_found = is_found[:, 0]
        may_be_none = self._settings.may_have_no_answer
        null_counts = ~any_found | may_be_none
        is_none = ~any_found | (may_be_none & (null_scores - scores[:, 0] > self._settings.null_threshold))
        all_scores = tf.concat(
            [tf.where(is_considered, scores, _NEVER), tf.where(null_counts, null_scores, _NEVER)[:, None]], axis=1
        )
        probabilities = tf.nn.softmax(all_scores)
        best_start, best_end = (tf.where(any_found, places[:, 0], 0) for places in (starts, ends))
        starts, ends = (tf.where(is_none, 0, places[:, 0]) for places in (starts, ends))
        answers = slices(context, *(tf.RaggedTensor.from_tensor(places[:, None]) for places in (starts, ends)))
        outputs = {
            "answer": answers.values,
            "start": starts,
            "end": ends,
            "probability": tf.where(is_none, probabilities[:, -1], probabilities[:, 0]),
            "score": tf.where(is_none, null_scores, scores[:, 0]),
            **rows.facts,
        }
        if may_be_none:
            threshold = tf.constant(self._settings.null_threshold, tf.float32)
            outputs |= {
                "null_score": null_scores,
                "null_threshold": tf.fill(tf.shape(null_scores), threshold),
                "best_start": best_start,
                "best_end": best_end,
                "best_score": tf.where(any_found, scores[:, 0], 0.0),
                "best_probability": tf.where(any_found, probabilities[:, 0], 0.0),
            }
        return outputs

    def answer_ids(self, token_ids: tf.Tensor, segment_ids: tf.Tensor) -> Outputs:
        """Answers ids.

        Returns:
            A dict:
                start_logits, end_logits: float32, `(batch, seq_len)`; 0 at padding.
        """
        inputs = self.model_inputs(token_ids, segment_ids)
        logits = self._unpadded(inputs, training=False)
        return {name: self.at_tokens(values, inputs) for name, values in logits.items()}

    def rows_of_texts(self, *texts: tf.Tensor) -> Rows:
        """Returns the rows that `answer_texts` reads."""
        return self._rows_of_questions(*texts)[0]

    def _rows_of_questions(
        self, question: tf.Tensor, context: tf.Tensor
    ) -> tuple[Rows, tf.RaggedTensor, tf.RaggedTensor, tf.Tensor]:
        """Returns rows, the first and after the last character of each piece of the text, and where it begins.

        As `keras_bert_impl.tasks.answer_windows` cuts them, of whose windows this is the first.
        """
        pieces = self._tokenizer(question, keep_special_tokens=False)
        kept = pieces[:, : self._max_question_length]
        texts = self._tokenizer.with_offsets(context, keep_special_tokens=False, include_marks=True)
        room = self._max_length - 3 - kept.row_lengths()
        ids, starts, ends = (keep(part, room) for part in texts)
        truncated = (pieces.row_lengths() > kept.row_lengths()) | (texts[0].row_lengths() > ids.row_lengths())
        return self.filled_up(kept, ids, truncated), starts, ends, tf.cast(kept.row_lengths(), tf.int32) + 2

    def _pair_scores(self, logits: Outputs, context_place: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
        """Returns the score of each first piece with each length of answer, minus infinity for what is none.

        float32, `(batch, pieces * max_answer_length)`; of one piece at least.
        """
        places = tf.range(tf.maximum(tf.reduce_max(counts), 1))
        is_piece = places[None] < counts[:, None]
        columns = tf.where(is_piece, context_place[:, None] + places[None], 0)
        starts, ends = (
            tf.where(is_piece, tf.gather(logits[name], columns, batch_dims=1), _NEVER)
            for name in ("start_logits", "end_logits")
        )
        longer = tf.range(self._max_answer_length)
        ends = tf.pad(ends, [[0, 0], [0, self._max_answer_length - 1]], constant_values=_NEVER)
        scores = starts[:, :, None] + tf.gather(ends, places[:, None] + longer[None], axis=1)
        return tf.reshape(scores, [tf.shape(scores)[0], -1])


def _text_keys(texts: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor) -> tf.Tensor:
    """Returns numbers, int64, that are the same for slices of a text that read the same, and else different.

    Polynomials of the characters, modulo 2**64: a slice's is a difference of two of the beginning of the text.
    """
    row_splits, code_points = tf.raw_ops.UnicodeDecode(
        input=texts, input_encoding="UTF-8", errors="replace", replacement_char=0xFFFD
    )
    size = tf.size(code_points)
    powers, inverses = (
        tf.math.cumprod(tf.fill([size + 1], tf.constant(base, tf.int64)), exclusive=True)
        for base in (_BASE, pow(_BASE, -1, 2**64) - 2**64)
    )
    sums = tf.cumsum((tf.cast(code_points, tf.int64) + 1) * powers[:-1])
    sums = tf.concat([[tf.constant(0, tf.int64)], sums], axis=0)
    starts, ends = tf.cast(starts, tf.int64), tf.cast(ends, tf.int64)
    row_starts = row_splits[:-1, None]
    first = row_starts + starts
    slice_sums = (tf.gather(sums, row_starts + ends) - tf.gather(sums, first)) * tf.gather(inverses, first)
    rows = tf.range(tf.size(texts, tf.int64))[:, None]
    return slice_sums + (ends - starts) * _OF_LENGTH + rows * _OF_ROW


def _comes_first(keys: tf.Tensor) -> tf.Tensor:
    """Returns whether each number, of `(batch, numbers)`, has not been there before."""
    flat = tf.reshape(keys, [-1])
    places = tf.range(tf.size(flat))
    different, indices = tf.unique(flat)
    first_places = tf.math.unsorted_segment_min(places, indices, tf.size(different))
    return tf.reshape(tf.gather(first_places, indices) == places, tf.shape(keys))
