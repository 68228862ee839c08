"""Fine-tuning for a tag of each word: named entities, parts of speech."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.losses import token_losses
from keras_bert_impl.models.bert_token_classifier import BertTokenClassifier
from keras_bert_impl.tasks.examples import TaggedSentence
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tasks.tag_spans import OUTSIDE, tag_form, tag_spans, with_marks
from keras_bert_impl.tasks.tagging import WordTagging
from keras_bert_impl.tasks.word_answers import word_notes
from keras_bert_impl.tasks.word_windows import sentence_rows, window_sizes

from ...configs.finetune import METRICS
from ...corpus.wording import counted
from ..data.labels import describe_first, label_counts
from ..metrics.tagging import need_seqeval
from ..task import Evaluation, FinetuningTask, TrainingRows
from .tag_evaluation import evaluate_tags

_USUAL_LENGTH = 128
_NAMED_TAGS = 30


class TaggingTask(FinetuningTask[TaggedSentence]):
    """A tag for each word.

    Every word of every sentence counts once in the loss, in the window where it has most context, whatever the number
    of its pieces: with `labelled_pieces` "first" its first piece has its label, with "all" each has, with the weight
    1 / pieces. With `class_weights` "balanced" a word's weight is that of its tag: words / (tags * words of the tag).
    For that a batch's loss is divided by what its rows weigh on average, not by what they weigh: rows of like length
    are trained on together, and a word of short sentences would count for several of long ones.
    """

    per_token = ("label", "weight")
    metric_names = METRICS["tagging"]

    _tag_weights: Mapping[str, float]
    _tagging: WordTagging | None = None

    def read(self, files: Sequence[str | Path], argument: str) -> list[TaggedSentence]:
        """Reads tagged sentences; says what was odd."""
        from ..data.tagged_files import read_tagged_sentences

        return read_tagged_sentences(files, self.config, argument=argument, labelled=True, say=self.say)

    def prepare(self, train: Sequence[TaggedSentence], dev: Sequence[TaggedSentence]) -> None:
        """Finds the tags and settings, says them with counts, and refuses what nothing can be learned from.

        Raises:
            InputError: if there is no word, all have one tag, a sentence has no tags, the rows would have more ids than
                the model positions, windows would leave words out, or seqeval is not installed.
        """
        need_seqeval()
        for argument, sentences in (("train", train), ("dev", dev)):
            for sentence in sentences:
                if sentence.tags is None or len(sentence.tags) != len(sentence.words):
                    words, tags = counted(len(sentence.words), "word"), counted(len(sentence.tags or ()), "tag")
                    raise InputError(
                        f"`{argument}` must have a tag for every word. Received: {words} and {tags} in "
                        f"{sentence.place or 'a sentence'}"
                    )
        counts, dev_counts = label_counts(train), label_counts(dev)
        if len(counts) < 2:
            raise InputError(
                "`train` must have words of two or more tags, since one alone teaches nothing. "
                f"Received: {counted(sum(counts.values()), 'word')}, all {next(iter(counts), '')!r}"
            )
        self._checkpoint = open_checkpoint(self.config.model)
        self.settings = self._found_settings()
        self.labels = self._own_order(counts)
        self._tag_weights = self._found_weights(counts)
        self._say_counts("train", train, counts)
        if dev:
            self._say_counts("dev", dev, dev_counts)
        if unknown := {tag: count for tag, count in dev_counts.items() if tag not in counts}:
            self.say(
                f"dev has tags that train lacks: {_named(unknown, sum(dev_counts.values()))}. Nothing can be learned "
                "of them; the words are tagged and counted as wrong."
            )
        self._say_head()
        texts = [" ".join(sentence.words) for sentence in (*train, *dev)]
        self._say_letter_case(texts)

    def make_model(self, seed: int) -> BertTokenClassifier:
        """Reads the model to start from, with a fresh head where it has none for these tags."""
        return self._read_model(BertTokenClassifier, "classifier", seed, labels=self.labels)

    def rows(self, examples: Sequence[TaggedSentence]) -> TrainingRows:
        """Turns sentences into rows; says how many are taken in several, and which words were not read whole."""
        room, stride = self._window()
        numbers = {tag: number for number, tag in enumerate(self.labels)}
        every_piece = self.settings.labelled_pieces == "all"
        token_ids, segment_ids, labels, weights = [], [], [], []
        cut = unknown = in_windows = 0
        for sentence in examples:
            found = sentence_rows(self.tokenizer, sentence.words, room, stride)
            cut += found.cut_words
            unknown += found.unknown_words
            in_windows += len(found.rows) > 1
            tags = sentence.tags or ()
            for row in found.rows:
                label, weight = np.zeros(len(row.row.token_ids), "int32"), np.zeros(len(row.row.token_ids), "float32")
                for word, start, end in row.words:
                    last = end if every_piece else start + 1
                    # A tag that the model lacks, as dev may have, weighs nothing.
                    label[start:last] = numbers.get(tags[word], 0)
                    weight[start:last] = self._tag_weights.get(tags[word], 0.0) / (last - start)
                token_ids.append(np.array(row.row.token_ids, "int32"))
                segment_ids.append(np.array(row.row.segment_ids, "int32"))
                labels.append(label)
                weights.append(weight)
        if in_windows:
            self.say(
                f"{in_windows:,} of {counted(len(examples), 'sentence')} {'is' if in_windows == 1 else 'are'} longer "
                f"than {self.settings.max_length} ids and read in overlapping windows; there are "
                f"{counted(len(token_ids), 'row')}."
            )
        for note in word_notes(cut, unknown, room):
            self.say(note)
        sums = np.array([weight.sum() for weight in weights], "float32")
        usual = sums.sum() / max(1, np.count_nonzero(sums))
        row_weights = list(np.where(sums > 0, usual, 0).astype("float32"))
        return TrainingRows(token_ids, segment_ids, {"label": labels, "weight": weights, "row_weight": row_weights})

    def loss_sums(self, outputs: Any, targets: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the weighted sum of the cross entropies of the labelled pieces, and the sum of the rows' weights."""
        weights = ops.cast(targets["weight"], "float32")
        return ops.sum(weights * token_losses(outputs, targets["label"])), ops.sum(targets["row_weight"])

    def evaluate(self, model: Any, examples: Sequence[TaggedSentence]) -> Evaluation:
        """Lets the model tag the words and compares."""
        if self._tagging is None or self._tagging.model is not model:
            # Kept, since it compiles the model.
            self._tagging = WordTagging(model=model, tokenizer=self.tokenizer, settings=self.settings)
        return self.measure(self._tagging, examples)

    def measure(self, answers: Any, examples: Sequence[TaggedSentence]) -> Evaluation:
        """Compares tags of words."""
        return evaluate_tags(answers, examples, batch_size=self.config.batch_size)

    def _found_settings(self) -> TaskSettings:
        length = self._row_length(_USUAL_LENGTH)
        window_sizes(length, self.config.stride)
        return TaskSettings(
            task="tagging",
            max_length=length,
            stride=self.config.stride,
            labelled_pieces=self.config.labelled_pieces,
        )

    def _window(self) -> tuple[int, int]:
        assert self.settings.max_length is not None
        return window_sizes(self.settings.max_length, self.settings.stride)

    def _found_weights(self, counts: Mapping[str, int]) -> dict[str, float]:
        if self.config.class_weights != "balanced":
            return dict.fromkeys(counts, 1.0)
        total = sum(counts.values())
        weights = {tag: total / (len(counts) * count) for tag, count in counts.items()}
        self.say(f"Weights of the tags in the loss: {', '.join(f'{tag}: {w:.3g}' for tag, w in weights.items())}.")
        return weights

    def _own_order(self, counts: Mapping[str, int]) -> tuple[str, ...]:
        """Returns the tags in the order of the head that is kept, else `O` first, then those of each label together."""
        head = self._checkpoint.labels if self._checkpoint.architecture == BertTokenClassifier.architecture else ()
        self._keeps_head = not self.config.fresh_head and set(head) == counts.keys()
        if self._keeps_head:
            return tuple(head)
        if tag_form(counts) != "marks":
            return tuple(counts)
        return tuple(sorted(counts, key=lambda tag: (tag != OUTSIDE, tag[2:], tag[:1])))

    def _say_head(self) -> None:
        head = self._checkpoint.labels
        if self._keeps_head:
            self.say("The model's head for these tags is kept.")
        elif head and not self.config.fresh_head:
            self.say(f"A fresh head is trained, since the model's own is for others ({_listed(head)}).")
        else:
            self.say("A fresh head is trained.")

    def _say_counts(self, argument: str, sentences: Sequence[TaggedSentence], counts: Mapping[str, int]) -> None:
        words = sum(counts.values())
        named = {tag: counts[tag] for tag in (*self.labels, *counts) if tag in counts}
        said = f"{argument}: {counted(len(sentences), 'sentence')}, {counted(words, 'word')}; {_named(named, words)}"
        form = tag_form(counts)
        if form != "words":
            spans = sum(len(tag_spans(with_marks(sentence.tags or (), form))) for sentence in sentences)
            said += f"; {counted(spans, 'span')}"
        self.say(f"{said}.")


def _named(counts: Mapping[str, int], total: int) -> str:
    return describe_first(counts, total, _NAMED_TAGS, "tag")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED_TAGS
    return ", ".join(names[:_NAMED_TAGS]) + (f" and {more:,} more" if more > 0 else "")
