"""Tasks on texts while a model is fine-tuned: labels, heads, losses, evaluations."""

import json
from pathlib import Path

import numpy as np
import pytest
from keras import ops
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder
from keras_bert_impl.tasks import TaskSettings, TextClassification, TextExample
from keras_bert_impl.tasks.rows import text_row
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.tasks.classification import (
    ClassificationTask,
    MultilabelTask,
    RegressionTask,
)
from keras_bert_impl.training.finetuning.tasks.text_evaluation import evaluate_texts

TOKENIZER = toy_tokenizer()
CONFIG = toy_bert_config(TOKENIZER, num_hidden_layers=1)
TASKS = {task.task: task for task in (ClassificationTask, MultilabelTask, RegressionTask)}
TRAIN = [
    TextExample("good film", label="yes"),
    TextExample("a dull play", label="no"),
    TextExample("the song was awful", label="no"),
    TextExample("not bad", label="no"),
]
TEXTS = ["good film", "a dull play", "not", "bad !", "the song was awful", "i", "it was great . very great"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("encoder")
    BertEncoder(CONFIG, pooler=False, seed=5).save_pretrained(path, TOKENIZER)
    return path


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    """A model with a trained head, its labels in an order of its own."""
    path = tmp_path_factory.mktemp("classifier")
    BertClassifier(CONFIG, labels=["yes", "no"], seed=6).save_pretrained(path, TOKENIZER)
    return path


def named(path: Path, target: Path, *labels: str) -> Path:
    """The same model with other names of its labels."""
    target.mkdir()
    for file in path.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    config = json.loads((path / "config.json").read_text())
    config["id2label"] = {str(i): label for i, label in enumerate(labels)}
    (target / "config.json").write_text(json.dumps(config))
    return target


def task_on(model: Path, train, dev=(), task="classification", tokenizer=TOKENIZER, **settings):
    said: list[str] = []
    config = FinetuneConfig(task=task, model=str(model), train=("train.tsv",), output="out", **settings)
    made = TASKS[task](config, tokenizer, said.append)
    made.said = said
    made.prepare(train, dev)
    return made


def kernel(model) -> np.ndarray:
    return np.asarray(model.classifier.kernel)


def test_labels_come_from_the_training_data_and_are_said_with_counts(encoder):
    task = task_on(encoder, TRAIN, TRAIN[:1])
    assert task.labels == ("no", "yes")
    assert task.settings == TaskSettings(task="classification", max_length=64, pair=False)
    assert task.said == [
        "train: 4 examples; no: 3 (75%), yes: 1 (25%).",
        "dev: 1 example; yes: 1 (100%).",
        "F1 is that of 'yes'.",
        "A fresh head for no, yes is trained.",
        "The model has no pooler; a fresh one is trained.",
    ]


def test_numbers_are_labels_in_the_order_of_numbers(encoder):
    train = [TextExample("good", label=name) for name in ("10", "9", "-1")]
    assert task_on(encoder, train).labels == ("-1", "9", "10")  # three rows are enough


def test_labels_of_dev_that_train_lacks_are_said_and_have_no_weight(encoder):
    dev = [TextExample("fine", label="yes"), TextExample("great", label="perhaps")]
    task = task_on(encoder, TRAIN, dev)
    assert task.labels == ("no", "yes")
    assert any(line.startswith("dev has labels that train lacks: perhaps: 1 (50%). Nothing") for line in task.said)
    assert list(task.rows(dev).targets["weight"]) == [1.0, 0.0]


def test_balanced_weights_are_those_of_scikit_learn(encoder):
    from sklearn.utils.class_weight import compute_class_weight

    task = task_on(encoder, TRAIN, class_weights="balanced")
    labels = [example.label for example in TRAIN]
    expected = compute_class_weight("balanced", classes=np.array(["no", "yes"]), y=labels)
    assert list(task.rows(TRAIN).targets["weight"]) == pytest.approx([expected[int(name == "yes")] for name in labels])
    assert "Weights of the labels in the loss: no: 0.667, yes: 2." in task.said


def test_the_loss_is_the_weighted_cross_entropy(encoder):
    task = task_on(encoder, TRAIN, class_weights="balanced")
    outputs = np.array([[0.5, 1.5], [2.0, 0.0], [0.0, 0.0], [-1.0, 3.0]], "float32")
    targets = task.rows(TRAIN).targets
    total, weight = task.loss_sums(ops.convert_to_tensor(outputs), targets)
    probabilities = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    expected = [2 * -np.log(probabilities[0, 1]), *(2 / 3 * -np.log(probabilities[i, 0]) for i in (1, 2, 3))]
    assert float(total) == pytest.approx(sum(expected), rel=1e-5) and float(weight) == pytest.approx(4.0)


def test_the_loss_of_several_labels_is_the_mean_of_their_sigmoid_cross_entropies(encoder):
    train = [TextExample("good", label=("a", "b")), TextExample("bad", label=()), TextExample("dull", label=("b",))]
    task = task_on(encoder, train, task="multilabel")
    assert task.labels == ("a", "b")
    outputs = np.array([[0.5, -1.5], [30.0, -90.0], [0.0, 2.0]], "float32")
    total, weight = task.loss_sums(ops.convert_to_tensor(outputs), task.rows(train).targets)
    holds = np.array([[1, 1], [0, 0], [0, 1]])
    expected = np.logaddexp(0, -outputs.astype("float64")) * holds + np.logaddexp(0, outputs) * (1 - holds)
    assert float(total) == pytest.approx(expected.mean(axis=1).sum(), rel=1e-5) and float(weight) == 3.0


def test_the_loss_of_numbers_is_the_squared_error(encoder):
    train = [TextExample("good", label=4.0), TextExample("bad", label=-1.5)]
    task = task_on(encoder, train, train, task="regression")
    assert task.labels == ("score",)
    assert task.said[0] == "train: 2 examples, numbers from -1.5 to 4, mean 1.25."
    total, weight = task.loss_sums(ops.convert_to_tensor([[3.0], [0.5]]), task.rows(train).targets)
    assert float(total) == pytest.approx(1.0 + 4.0) and float(weight) == 2.0
    assert task_on(encoder, train, task="regression", label_column="stars").labels == ("stars",)
    assert task_on(encoder, train, task="regression", label_column="3").labels == ("score",)


def test_texts_that_are_cut_off_are_counted(encoder):
    task = task_on(encoder, [*TRAIN, TextExample("good " * 3000, label="yes")])
    rows = task.rows([*TRAIN, TextExample("good " * 3000, label="yes")])
    assert task.said[-1] == "1 of 5 texts (20%) is longer than 64 ids and cut off at the end."
    assert [len(ids) for ids in rows.token_ids] == [4, 5, 6, 4, 64]
    assert all(ids.dtype == "int32" for ids in (*rows.token_ids, *rows.segment_ids))


def test_pairs_are_told_to_the_model_for_later(encoder):
    train = [TextExample("good", text_pair="fine", label="yes"), TextExample("good", text_pair="bad", label="no")]
    task = task_on(encoder, train, max_length=8)
    assert task.settings.pair and task.settings.max_length == 8
    assert task.rows(train).segment_ids[0].tolist() == [0, 0, 0, 1, 1]


def test_upper_case_is_said_once_where_the_model_lower_cases(encoder):
    train = [*TRAIN, TextExample("Fine", label="yes")]
    task = task_on(encoder, train)
    task.rows(train)
    task.evaluate(task.make_model(1), train)
    note = "The model lower-cases texts; 20% of them have upper-case letters."
    assert task.said.count(note) == 1
    assert note not in task_on(encoder, train, tokenizer=toy_tokenizer(lowercase=False)).said


def test_a_head_for_the_same_labels_is_kept_in_its_order(classifier):
    task = task_on(classifier, TRAIN)
    assert task.labels == ("yes", "no") and "The model's head for yes, no is kept." in task.said
    own = kernel(BertClassifier.from_pretrained(classifier))
    np.testing.assert_array_equal(kernel(task.make_model(1)), own)
    fresh = task_on(classifier, TRAIN, fresh_head=True)
    assert fresh.labels == ("no", "yes") and "A fresh head for no, yes is trained, as asked." in fresh.said
    assert not np.allclose(kernel(fresh.make_model(1)), own)


def test_a_fresh_head_for_numbers_starts_from_their_mean_and_a_kept_one_as_it_is(encoder, tmp_path):
    train = [
        TextExample(text, label=float(number)) for text, number in (("good", 90.0), ("bad", 100.0), ("dull", 98.0))
    ]
    model = task_on(encoder, train, task="regression").make_model(1)
    np.testing.assert_allclose(model.classifier.bias, [96.0])
    model.classifier.bias.assign([-5.0])
    model.save_pretrained(tmp_path / "trained", TOKENIZER)
    np.testing.assert_array_equal(
        task_on(tmp_path / "trained", train, task="regression").make_model(1).classifier.bias, [-5.0]
    )


def test_numbered_labels_of_a_head_are_named(classifier, tmp_path):
    numbered = named(classifier, tmp_path / "numbered", "LABEL_0", "LABEL_1")
    task = task_on(numbered, TRAIN)
    said = "The model's head is kept and its numbered labels are named: LABEL_0 is no, LABEL_1 is yes."
    assert task.labels == ("no", "yes") and said in task.said
    model = task.make_model(1)
    assert model.labels == ("no", "yes")
    np.testing.assert_array_equal(kernel(model), kernel(BertClassifier.from_pretrained(classifier)))


def test_a_head_for_other_labels_or_another_task_starts_anew(classifier, tmp_path):
    other = named(classifier, tmp_path / "other", "left", "right")
    task = task_on(other, TRAIN)
    said = "A fresh head for no, yes is trained, since the model's own is for others (left, right)."
    assert said in task.said and task.make_model(1).labels == ("no", "yes")
    train = [TextExample("good", label=("yes",)), TextExample("bad", label=("no", "yes"))]
    several = task_on(classifier, train, task="multilabel")
    assert several.labels == ("no", "yes") and any(line.startswith("A fresh head") for line in several.said)
    assert several.make_model(1).problem_type == "multi_label_classification"


def test_the_model_is_a_function_of_the_seed_and_quiet(encoder, recwarn):
    task = task_on(encoder, TRAIN, classifier_dropout=0.25)
    first, again, other = task.make_model(1), task.make_model(1), task.make_model(2)
    np.testing.assert_array_equal(kernel(first), kernel(again))
    assert not np.allclose(kernel(first), kernel(other)) and first.classifier_dropout == 0.25
    assert not recwarn.list


def test_what_nothing_can_be_learned_from_is_refused(encoder):
    with pytest.raises(InputError, match=r"`train` must have one or more labelled examples\. Received: none"):
        task_on(encoder, [])
    with pytest.raises(
        InputError, match=r"`train` must have examples of two or more labels, .* Received: 3 examples, all 'no'"
    ):
        task_on(encoder, TRAIN[1:])
    with pytest.raises(InputError, match=r"`train` must have examples with different labels, .* all with a, b"):
        task_on(encoder, [TextExample("good", label=("a", "b"))] * 2, task="multilabel")
    with pytest.raises(InputError, match=r"`train` must have two or more different numbers, .* 2 examples, all 1\.5"):
        task_on(encoder, [TextExample("good", label=1.5)] * 2, task="regression")
    with pytest.raises(InputError, match=r"`dev` must have a label in every row\. Received: 1 row without, .* d:3"):
        task_on(encoder, TRAIN, [TextExample("good", place="d:3")])
    pair = [TextExample("good", text_pair="bad", label=name) for name in "ab"]
    with pytest.raises(InputError, match=r"`dev` must have pairs of texts, as `train` has\. Received: 1 text alone"):
        task_on(encoder, pair, [TextExample("good", label="a")])
    alone = [TextExample("good", label="a", place="t:1"), TextExample("bad", label="b", place="t:2")]
    paired = [TextExample("good", text_pair="bad", label="b", place="d:3")]
    with pytest.raises(InputError, match=r"`dev` must have texts alone, as `train` has\. Received: 1 pair, .* d:3"):
        task_on(encoder, alone, paired)
    with pytest.raises(InputError, match=r"`train` must have texts alone, or none\. Received: 1 pair, the first d:3"):
        task_on(encoder, alone + paired)
    with pytest.raises(InputError, match=r"`train` must have pairs of texts, or none\. Received: 2 texts alone, .*:1"):
        task_on(encoder, paired + alone)
    with pytest.raises(InputError, match=r"`max_length` must be at most 64, the positions of the model\. Received"):
        task_on(encoder, TRAIN, max_length=65)
    three = [TextExample("good", label=name) for name in "abc"]
    with pytest.raises(InputError, match=r"`metric` f1 must go with two labels; .* Received: 3 labels"):
        task_on(encoder, three, metric="f1")


@pytest.fixture(scope="module")
def answers():
    """A model that gives both labels for `TEXTS`."""
    model = BertClassifier(CONFIG, labels=["no", "yes"], seed=6)
    made = TextClassification(model=model, tokenizer=TOKENIZER, settings=TaskSettings(task="classification"))
    scores = made.outputs([text_row(TOKENIZER, 64, text) for text in TEXTS])
    model.classifier.bias.assign(-np.mean(scores, axis=0))
    return made


def in_task(answers, task):
    other = TextClassification(model=answers.model, tokenizer=TOKENIZER, settings=TaskSettings(task=task))
    other._form = answers._form
    return other


def labelled_by(answers, texts):
    return [TextExample(text, label=answer.label) for text, answer in zip(texts, answers(texts), strict=True)]


def test_an_evaluation_has_answers_beside_the_right_ones(answers):
    examples = labelled_by(answers, TEXTS)
    assert {example.label for example in examples} == {"no", "yes"}
    wrong = TextExample("nice", id="7", label="no" if answers(["nice"])[0].label == "yes" else "yes")
    evaluation = evaluate_texts(answers, [*examples, wrong])
    assert evaluation.metrics["accuracy"] == pytest.approx(7 / 8) and evaluation.warnings == []
    assert [one["correct"] for one in evaluation.predictions] == [True] * 7 + [False]
    last = evaluation.predictions[-1]
    assert (last["id"], last["text"], last["right"]) == ("7", "nice", wrong.label)
    assert last["label"] != wrong.label and last["probability"] == max(last["probabilities"].values())
    assert np.sum(evaluation.pictures["confusion"]["counts"]) == sum(evaluation.pictures["reliability"]["counts"]) == 8
    right = [one["probabilities"][one["right"]] for one in evaluation.predictions]
    assert evaluation.metrics["cross_entropy"] == pytest.approx(-np.mean(np.log(right)))
    json.dumps([evaluation.metrics, evaluation.predictions, evaluation.pictures], allow_nan=False)


def test_unknown_labels_are_explained_and_every_row_is_predicted(answers):
    examples = [*labelled_by(answers, TEXTS), TextExample("fine", label="perhaps"), TextExample("nice", label="3")]
    evaluation = evaluate_texts(answers, examples)
    assert evaluation.warnings == [
        "2 labels of these examples are not of the model's, which were found in its training data: '3' (1), "
        "'perhaps' (1). 2 examples with them are predicted and counted as wrong."
    ]
    assert len(evaluation.predictions) == 9 and evaluation.metrics["accuracy"] == pytest.approx(7 / 9)


def test_unknown_labels_and_their_examples_are_counted_apart(answers):
    warning = evaluate_texts(answers, [TextExample(text, label="perhaps") for text in TEXTS[:3]]).warnings[0]
    assert warning == (
        "1 label of these examples is not of the model's, which were found in its training data: 'perhaps' (3). "
        "3 examples with it are predicted and counted as wrong."
    )


@pytest.mark.parametrize("kind", ["classification", "multilabel"])
def test_a_model_whose_outputs_are_not_finite_is_not_said_to_have_collapsed(kind, answers, monkeypatch):
    asked = answers if kind == "classification" else in_task(answers, kind)
    labels = {"classification": ["no", "yes"], "multilabel": [("no",), ("yes",)]}[kind]
    outputs = type(asked).outputs
    monkeypatch.setattr(type(asked), "outputs", lambda self, *given: [row * np.nan for row in outputs(self, *given)])
    evaluation = evaluate_texts(asked, [TextExample("nice", label=label) for label in labels])
    assert [line.partition(":")[0] for line in evaluation.warnings] == [
        "The model gave numbers that are not finite for 2 examples"
    ]


def test_a_model_that_gives_one_label_alone_is_warned_of(answers):
    (one,) = answers(["good film"])
    other = "no" if one.label == "yes" else "yes"
    evaluation = evaluate_texts(answers, [TextExample("good film", label=name) for name in (one.label, other, other)])
    assert evaluation.warnings == [
        f"The model gives '{one.label}' for all 3 examples: it has collapsed, or not learned yet. More epochs, "
        "another learning rate (small models often need 1e-4 or 3e-4) or another seed may help."
    ]


def test_an_evaluation_of_several_labels(answers):
    several = in_task(answers, "multilabel")
    examples = labelled_by(several, TEXTS)
    evaluation = evaluate_texts(several, examples)
    assert evaluation.metrics["exact_match"] == 1.0 and all(one["correct"] for one in evaluation.predictions)
    assert evaluation.predictions[0]["right"] == list(examples[0].label)
    unknown = evaluate_texts(several, [TextExample("good film", label=("x",)), *examples])
    assert unknown.warnings[0].startswith("1 label of these examples is not of the model's")
    assert unknown.metrics["exact_match"] == pytest.approx(7 / 8)


def test_an_evaluation_of_numbers_and_the_task_asks_the_model_it_is_given(encoder):
    train = [TextExample(text, label=float(i)) for i, text in enumerate(TEXTS)]
    task = task_on(encoder, train, task="regression")
    model = task.make_model(1)
    evaluation = task.evaluate(model, train)
    numbers = [one["label"] for one in evaluation.predictions]
    assert evaluation.metrics["pearson"] == pytest.approx(np.corrcoef(numbers, range(7))[0, 1], abs=1e-6)
    assert [one["right"] for one in evaluation.predictions] == [float(i) for i in range(7)]
    far = [TextExample(text, label=1000.0 * i) for i, text in enumerate(TEXTS)]
    assert task.evaluate(model, far).warnings[0].startswith("The model gives nearly the same number (")
    # The weights as they are now, not as they were at the first evaluation.
    model.classifier.bias.assign(model.classifier.bias + 100.0)
    assert task.evaluate(model, train).predictions[0]["label"] == pytest.approx(numbers[0] + 100, abs=1e-3)


def test_nothing_to_evaluate_is_refused(answers):
    with pytest.raises(InputError, match=r"`examples` must be one or more labelled texts\. Received: none"):
        evaluate_texts(answers, [])


@pytest.mark.parametrize(("step", "said"), [(0.25, True), (1, False)])
def test_fractions_as_names_of_classes_are_told(encoder, step, said):
    train = [TextExample("good film", label=str(number * step)) for number in range(12)]
    lines = task_on(encoder, train).said
    hint = "The labels look like numbers: the task regression learns them as such (--task regression)."
    assert (hint in lines) is said
    names = [*train, TextExample("good film", label="none")]
    assert hint not in task_on(encoder, names).said
