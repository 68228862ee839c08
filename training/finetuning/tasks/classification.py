"""Fine-tuning for texts and pairs of texts: one label of several, labels of which several may hold, or a number."""

import abc
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from keras import ops

from keras_bert_impl.checkpoints.checkpoint import are_plain_labels
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_classifier import BertClassifier
from keras_bert_impl.tasks.classification import PROBLEM_TYPES, TextClassification
from keras_bert_impl.tasks.examples import TextExample
from keras_bert_impl.tasks.rows import text_row
from keras_bert_impl.tasks.settings import TaskSettings

from ...configs.finetune import METRICS
from ...corpus.wording import counted, percent
from ..data.labels import describe_first, label_counts
from ..data.tables import read_text_examples
from ..metrics.classification import need_scikit_learn
from ..task import Evaluation, FinetuningTask, TrainingRows
from .text_evaluation import evaluate_texts, labels_of, listed, numbers_of

_USUAL_LENGTH = 128
_USUAL_NUMBER_NAME = "score"
_NAMED_LABELS = 10
# So many different fractions are seldom names of classes.
_MANY_NUMBERS = 8


class TextTask(FinetuningTask[TextExample]):
    """What the tasks on texts share: rows, the model, and answers beside the right ones.

    A subclass finds the labels, and says what is to be learned, what it costs to be wrong, and how it is measured.

    Attributes:
        task: its name in settings.
    """

    task: str

    _answers: TextClassification | None = None

    def read(self, files: Sequence[str | Path], argument: str) -> list[TextExample]:
        """Reads labelled examples; says what was odd."""
        # A model that exists already may have been trained on pairs.
        pair = True if hasattr(self, "settings") and self.settings.pair else self.pair
        return read_text_examples(files, self.config, argument=argument, kind=self.task, pair=pair, say=self.say)

    def prepare(self, train: Sequence[TextExample], dev: Sequence[TextExample]) -> None:
        """Finds the labels and settings, says them with counts, and refuses what nothing can be learned from.

        Raises:
            InputError: if scikit-learn is not installed, there are no examples, they are all alike, the ones are pairs
                and the others are not, or rows would have more ids than the model positions.
        """
        need_scikit_learn()
        if not train:
            raise InputError("`train` must have one or more labelled examples. Received: none")
        for argument, examples in (("train", train), ("dev", dev)):
            if unlabelled := [example.place for example in examples if example.label is None]:
                raise InputError(
                    f"`{argument}` must have a label in every row. "
                    f"Received: {counted(len(unlabelled), 'row')} without, the first {unlabelled[0] or 'of no place'}"
                )
        self._checkpoint = open_checkpoint(self.config.model)
        length = self._row_length(_USUAL_LENGTH)
        pair = train[0].text_pair is not None
        for argument, examples in (("train", train), ("dev", dev)):
            if others := [example.place for example in examples if (example.text_pair is not None) != pair]:
                what, odd = ("pairs of texts", "text") if pair else ("texts alone", "pair")
                where = "as `train` has" if argument == "dev" else "or none"
                raise InputError(
                    f"`{argument}` must have {what}, {where}. Received: {counted(len(others), odd)}"
                    f"{' alone' if pair else ''}, the first {others[0] or 'of no place'}"
                )
        self.settings = TaskSettings(task=self.task, max_length=length, pair=pair)
        self.labels = self._find_labels(train, dev)
        self._say_head()
        texts = [example.text + (example.text_pair or "") for example in (*train, *dev)]
        self._say_letter_case(texts)

    def make_model(self, seed: int) -> BertClassifier:
        """Reads the model to start from, with a fresh head where it has none for these labels."""
        return self._read_model(
            BertClassifier,
            "classifier",
            seed,
            labels=self.labels,
            problem_type=PROBLEM_TYPES[self.task],
            allow_missing=("pooler",),
        )

    def rows(self, examples: Sequence[TextExample]) -> TrainingRows:
        """Turns examples into rows; says how many texts were cut off."""
        assert self.settings.max_length is not None
        rows = [text_row(self.tokenizer, self.settings.max_length, e.text, e.text_pair) for e in examples]
        if cut := sum(row.truncated for row in rows):
            self.say(
                f"{cut:,} of {counted(len(rows), 'text')} ({percent(cut / len(rows))}) "
                f"{'is' if cut == 1 else 'are'} longer than {self.settings.max_length} ids and cut off at the end."
            )
        return TrainingRows(
            token_ids=[np.array(row.token_ids, "int32") for row in rows],
            segment_ids=[np.array(row.segment_ids, "int32") for row in rows],
            targets=self._targets(examples),
        )

    def evaluate(self, model: Any, examples: Sequence[TextExample]) -> Evaluation:
        """Lets the model answer and compares."""
        if self._answers is None or self._answers.model is not model:
            # Kept, since it compiles the model.
            self._answers = TextClassification(model=model, tokenizer=self.tokenizer, settings=self.settings)
        return self.measure(self._answers, examples)

    def measure(self, answers: Any, examples: Sequence[TextExample]) -> Evaluation:
        """Compares answers to texts."""
        return evaluate_texts(answers, examples, batch_size=self.config.batch_size)

    @abc.abstractmethod
    def _find_labels(self, train: Sequence[TextExample], dev: Sequence[TextExample]) -> tuple[str, ...]:
        """Returns the names of the outputs and says how many examples there are of each."""

    @abc.abstractmethod
    def _targets(self, examples: Sequence[TextExample]) -> dict[str, Any]:
        """Returns what is to be learned from each example, with its `weight`."""

    def _own_order(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Returns the labels in the order of the head that is kept, else as they are."""
        head = self._checkpoint.labels if self._checkpoint.architecture == BertClassifier.architecture else ()
        stated = self._checkpoint.settings.get("problem_type", PROBLEM_TYPES["classification"])
        same_kind = stated == PROBLEM_TYPES[self.task] or (len(head) == 1 and self.task == "regression")
        # One number is the same number under another name.
        named = set(head) == set(labels) or (self.task == "regression" and not are_plain_labels(head))
        self._keeps_head = (
            not self.config.fresh_head and same_kind and len(head) == len(labels) and (named or are_plain_labels(head))
        )
        return tuple(head) if self._keeps_head and named else tuple(labels)

    def _say_counts(self, train: dict[str, int], dev: dict[str, int], train_total: int, dev_total: int) -> None:
        self.say(f"train: {counted(train_total, 'example')}; {_first_counts(train, train_total)}.")
        if dev_total:
            self.say(f"dev: {counted(dev_total, 'example')}; {_first_counts(dev, dev_total)}.")
        if unknown := {name: count for name, count in dev.items() if name not in train}:
            self.say(
                f"dev has labels that train lacks: {_first_counts(unknown, dev_total)}. Nothing is learned of them; "
                "the examples are predicted and counted as wrong."
            )

    def _say_head(self) -> None:
        head = self._checkpoint.labels
        if not self._keeps_head:
            why = ""
            if head and self.config.fresh_head:
                why = ", as asked"
            elif head:
                why = f", since the model's own is for others ({listed(head)})"
            self.say(f"A fresh head for {listed(self.labels)} is trained{why}.")
        elif set(head) != set(self.labels) and self.task != "regression":
            renamed = ", ".join(f"{old} is {new}" for old, new in zip(head, self.labels, strict=True))
            self.say(f"The model's head is kept and its numbered labels are named: {renamed}.")
        else:
            self.say(f"The model's head for {listed(self.labels)} is kept.")
        if "pooler" not in self._checkpoint.parts:
            self.say("The model has no pooler; a fresh one is trained.")


class ClassificationTask(TextTask):
    """One label of several."""

    task = "classification"
    metric_names = METRICS["classification"]

    _class_weights: dict[str, float]

    def loss_sums(self, outputs: Any, targets: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the weighted sum of the cross entropies and the sum of the weights."""
        weight = ops.cast(targets["weight"], "float32")
        right = ops.one_hot(targets["label"], len(self.labels), dtype="float32")
        losses = -ops.sum(right * ops.log_softmax(ops.cast(outputs, "float32")), axis=-1)
        return ops.sum(weight * losses), ops.sum(weight)

    def _find_labels(self, train: Sequence[TextExample], dev: Sequence[TextExample]) -> tuple[str, ...]:
        counts, dev_counts = label_counts(train), label_counts(dev)
        if len(counts) < 2:
            raise InputError(
                "`train` must have examples of two or more labels, since one alone teaches nothing. "
                f"Received: {counted(len(train), 'example')}, all {next(iter(counts), '')!r}"
            )
        labels = self._own_order(list(counts))
        if self.config.metric == "f1" and len(labels) != 2:
            raise InputError(
                "`metric` f1 must go with two labels; with more there are f1_macro and f1_micro. "
                f"Received: {len(labels)} labels"
            )
        self._say_counts(counts, dev_counts, len(train), len(dev))
        if len(counts) >= _MANY_NUMBERS and _are_fractions(counts):
            self.say("The labels look like numbers: the task regression learns them as such (--task regression).")
        if len(labels) == 2:
            self.say(f"F1 is that of {labels[1]!r}.")
        balanced = self.config.class_weights == "balanced"
        self._class_weights = {
            name: len(train) / (len(counts) * count) if balanced else 1.0 for name, count in counts.items()
        }
        if balanced:
            said = ", ".join(f"{name}: {weight:.3g}" for name, weight in self._class_weights.items())
            self.say(f"Weights of the labels in the loss: {said}.")
        return labels

    def _targets(self, examples: Sequence[TextExample]) -> dict[str, Any]:
        numbers = {name: number for number, name in enumerate(self.labels)}
        names = [str(example.label) for example in examples]
        # A label that the model lacks, as dev may have, weighs nothing.
        return {
            "label": np.array([numbers.get(name, 0) for name in names], "int32"),
            "weight": np.array([self._class_weights.get(name, 0.0) for name in names], "float32"),
        }


class MultilabelTask(TextTask):
    """Labels of which several may hold, or none."""

    task = "multilabel"
    metric_names = METRICS["multilabel"]

    def loss_sums(self, outputs: Any, targets: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the weighted sum of the mean sigmoid cross entropies of the labels, and the sum of the weights."""
        weight = ops.cast(targets["weight"], "float32")
        scores, holds = ops.cast(outputs, "float32"), ops.cast(targets["labels"], "float32")
        losses = ops.maximum(scores, 0) - scores * holds + ops.log1p(ops.exp(-ops.absolute(scores)))
        return ops.sum(weight * ops.mean(losses, axis=-1)), ops.sum(weight)

    def _find_labels(self, train: Sequence[TextExample], dev: Sequence[TextExample]) -> tuple[str, ...]:
        counts, dev_counts = label_counts(train), label_counts(dev)
        if len({frozenset(labels_of(example)) for example in train}) < 2:
            raise InputError(
                "`train` must have examples with different labels, since the same ones everywhere teach nothing. "
                f"Received: {counted(len(train), 'example')}, all with {listed(list(counts)) or 'none'}"
            )
        self._say_counts(counts, dev_counts, len(train), len(dev))
        return self._own_order(list(counts))

    def _targets(self, examples: Sequence[TextExample]) -> dict[str, Any]:
        chosen = [set(labels_of(example)) for example in examples]
        return {
            "labels": np.array([[name in one for name in self.labels] for one in chosen], "float32"),
            "weight": np.ones(len(examples), "float32"),
        }


class RegressionTask(TextTask):
    """A number.

    A fresh head starts from the mean of the training examples' numbers, so that no steps are spent on finding it.
    """

    task = "regression"
    metric_names = METRICS["regression"]

    _mean: float

    def make_model(self, seed: int) -> BertClassifier:
        """Reads the model to start from, with a fresh head, which answers about the mean, where it has none."""
        model = super().make_model(seed)
        if not self._keeps_head:
            model.classifier.bias.assign([self._mean])
        return model

    def loss_sums(self, outputs: Any, targets: dict[str, Any]) -> tuple[Any, Any]:
        """Returns the weighted sum of the squared errors and the sum of the weights."""
        weight = ops.cast(targets["weight"], "float32")
        off = ops.cast(outputs, "float32")[:, 0] - ops.cast(targets["label"], "float32")
        return ops.sum(weight * ops.square(off)), ops.sum(weight)

    def _find_labels(self, train: Sequence[TextExample], dev: Sequence[TextExample]) -> tuple[str, ...]:
        numbers = numbers_of(train)
        self._mean = float(np.mean(numbers))
        if min(numbers) == max(numbers):
            raise InputError(
                "`train` must have two or more different numbers, since one alone teaches nothing. "
                f"Received: {counted(len(train), 'example')}, all {numbers[0]:g}"
            )
        for name, examples in (("train", train), ("dev", dev)):
            if examples:
                of_set = numbers_of(examples)
                self.say(
                    f"{name}: {counted(len(of_set), 'example')}, numbers from {min(of_set):g} to {max(of_set):g}, "
                    f"mean {np.mean(of_set):.4g}."
                )
        column = self.config.label_column
        return self._own_order([column if column and not column.isdecimal() else _USUAL_NUMBER_NAME])

    def _targets(self, examples: Sequence[TextExample]) -> dict[str, Any]:
        return {"label": np.array(numbers_of(examples), "float32"), "weight": np.ones(len(examples), "float32")}


def _are_fractions(labels: Iterable[str]) -> bool:
    """Whether all labels are numbers, and not all of them whole ones."""
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return False
    return all(map(math.isfinite, numbers)) and not all(number.is_integer() for number in numbers)


def _first_counts(counts: dict[str, int], total: int) -> str:
    return describe_first(counts, total, _NAMED_LABELS, "label")
