"""Tagging while a model is fine-tuned for it: tags, rows, the loss, evaluations."""

import numpy as np
import pytest
from keras import ops
from taggers import EagerTagging, told_tagger
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertEncoder
from keras_bert_impl.tasks import TaggedSentence, TaskSettings, WordTagging
from keras_bert_impl.training.configs import FinetuneConfig
from keras_bert_impl.training.finetuning.tasks.tag_evaluation import evaluate_tags
from keras_bert_impl.training.finetuning.tasks.tagging import TaggingTask

TOKENIZER = toy_tokenizer()
LABELS = ("O", "B-person", "I-person", "B-place")
TOLD = {"good": "B-person", "fine": "I-person", "film": "B-place"}


def sentence(text):
    """A sentence of `word/tag` pairs; O where there is no tag."""
    pairs = [pair.partition("/") for pair in text.split()]
    return TaggedSentence(tuple(word for word, _, _ in pairs), tuple(tag or "O" for *_, tag in pairs), place="t:1")


TRAIN = [sentence("the good/B-person fine/I-person film/B-place ."), sentence("a zz/B-person and the zzzz")]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder")
    BertEncoder(toy_bert_config(TOKENIZER, num_hidden_layers=1), pooler=False, seed=5).save_pretrained(path, TOKENIZER)
    return str(path)


@pytest.fixture(scope="module")
def tagger_directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("tagger")
    told_tagger(TOKENIZER, LABELS[::-1], TOLD).save_pretrained(path, TOKENIZER)
    return str(path)


@pytest.fixture(scope="module")
def tagger():
    return told_tagger(TOKENIZER, LABELS, TOLD)


@pytest.fixture(scope="module")
def tagging(tagger):
    return EagerTagging(model=tagger, tokenizer=TOKENIZER)


def make_task(model, lines=None, **settings):
    config = FinetuneConfig(task="tagging", model=model, train=("train.conll",), output="out", **settings)
    return TaggingTask(config, TOKENIZER, (lambda line: None) if lines is None else lines.append)


def prepared(model, *, train=TRAIN, dev=(), lines=None, **settings):
    task = make_task(model, lines, **settings)
    task.prepare(train, list(dev))
    return task


def test_tags_come_from_the_data_and_are_said_with_counts(encoder):
    lines = []
    task = prepared(encoder, dev=[sentence("Good/B-person")], lines=lines)
    assert task.labels == LABELS
    assert (task.settings.task, task.settings.max_length, task.settings.stride) == ("tagging", 64, None)
    assert lines == [
        "train: 2 sentences, 10 words; O: 6 (60%), B-person: 2 (20%), I-person: 1 (10%), B-place: 1 (10%); 3 spans.",
        "dev: 1 sentence, 1 word; B-person: 1 (100%); 1 span.",
        "A fresh head is trained.",
        "The model lower-cases texts; 33% of them have upper-case letters.",
    ]


def test_tags_that_mark_no_spans_are_classes(encoder):
    lines = []
    task = prepared(encoder, train=[sentence("the/DET film/NOUN")], lines=lines)
    assert task.labels == ("DET", "NOUN")
    assert lines[0] == "train: 1 sentence, 2 words; DET: 1 (50%), NOUN: 1 (50%)."


def test_a_trained_head_is_kept_with_its_order_unless_it_is_for_other_tags(tagger_directory):
    lines = []
    task = prepared(tagger_directory, lines=lines)
    assert task.labels == LABELS[::-1] and lines[-1] == "The model's head for these tags is kept."
    assert WordTagging(model=task.make_model(1), tokenizer=TOKENIZER)([["film"]])[0].tags == ("B-place",)
    task = prepared(tagger_directory, lines=lines, fresh_head=True)
    assert task.labels == LABELS and lines[-1] == "A fresh head is trained."
    task = prepared(tagger_directory, train=[sentence("a/X b/Y")], lines=lines, classifier_dropout=0.25)
    assert lines[-1] == (
        "A fresh head is trained, since the model's own is for others (B-place, I-person, B-person, O)."
    )
    model = task.make_model(1)
    assert model.labels == ("X", "Y") and model.classifier_dropout == 0.25


@pytest.mark.parametrize("pieces,weights", [("first", [1, 0, 0, 0]), ("all", [0.25] * 4)])
def test_each_word_counts_once_whatever_its_pieces(encoder, pieces, weights):
    rows = prepared(encoder, labelled_pieces=pieces).rows(TRAIN)
    assert [TOKENIZER.vocabulary[i] for i in rows.token_ids[1]] == "[CLS] a z ##z and the z ##z ##z ##z [SEP]".split()
    assert rows.targets["weight"][1].tolist() == [
        0,
        1,
        *([1, 0] if pieces == "first" else [0.5, 0.5]),
        1,
        1,
        *weights,
        0,
    ]
    assert rows.targets["label"][1].tolist() == [0, 0, 1, *([0] if pieces == "first" else [1]), 0, 0, 0, 0, 0, 0, 0]
    assert rows.targets["label"][0].tolist() == [0, 0, 1, 2, 3, 0, 0]
    assert rows.targets["weight"][0].dtype == "float32" and rows.token_ids[0].dtype == "int32"


def test_words_of_long_sentences_count_in_one_window_alone(encoder):
    lines = []
    long = sentence("the " * 139 + "good/B-person fine/I-person " + "and " * 30 + "\u200b " + "z" * 40)
    task = prepared(encoder, max_length=32, lines=lines)
    rows = task.rows([long, *TRAIN])
    labelled = [
        (TOKENIZER.vocabulary[token_id], LABELS[label])
        for ids, labels, weights in zip(rows.token_ids, rows.targets["label"], rows.targets["weight"], strict=True)
        for token_id, label, weight in zip(ids, labels, weights, strict=True)
        if weight
    ]
    assert len(labelled) == len(long.words) + 10
    assert labelled[:173].count(("good", "B-person")) == labelled[:173].count(("fine", "I-person")) == 1
    assert lines[-3:] == [
        "1 of 3 sentences is longer than 32 ids and read in overlapping windows; there are 14 rows.",
        "1 word has more pieces than a row holds (30): only the beginning is read.",
        "1 word has no piece in the vocabulary's terms: the unknown token stands for it.",
    ]


def test_balanced_tags_count_alike(encoder):
    lines = []
    rows = prepared(encoder, class_weights="balanced", lines=lines).rows(TRAIN)
    weights, labels = (np.concatenate(rows.targets[name]) for name in ("weight", "label"))
    np.testing.assert_allclose([weights[labels == k].sum() for k in range(4)], 2.5)
    assert lines[0] == "Weights of the tags in the loss: B-person: 1.25, B-place: 2.5, I-person: 2.5, O: 0.417."


def test_the_loss_is_the_weighted_sum_over_labelled_pieces(encoder):
    task = prepared(encoder)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 5, 4)).astype("float32")
    labels, weights = rng.integers(0, 4, (2, 5)).astype("int32"), rng.integers(0, 2, (2, 5)).astype("float32")
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = -np.log(np.take_along_axis(probabilities, labels[..., None], -1)[..., 0])
    targets = {"label": labels, "weight": weights, "row_weight": np.float32([1.5, 2])}
    loss, weight = task.loss_sums(ops.convert_to_tensor(logits), targets)
    np.testing.assert_allclose(loss, (expected * weights).sum(), rtol=1e-5)
    assert float(weight) == 3.5


@pytest.mark.parametrize("class_weights", ["none", "balanced"])
def test_a_word_counts_the_same_beside_few_words_as_beside_many(encoder, class_weights):
    sentences = [sentence("good/B-person"), sentence(" ".join(["a good/B-person fine/B-place z/I-person"] * 4))]
    rows = prepared(encoder, train=sentences, class_weights=class_weights).rows([*sentences, TaggedSentence((), ())])
    sums = np.array([weights.sum() for weights in rows.targets["weight"]])
    # Rows of like length are trained on together, so what divides the loss must not depend on their words.
    np.testing.assert_allclose(rows.targets["row_weight"], [sums.sum() / 2] * 2 + [0] * (len(sums) - 2), rtol=1e-6)


def test_a_dev_tag_that_train_lacks_is_explained_and_weighs_nothing(encoder):
    lines = []
    dev = [sentence("a film/B-new good/B-person")]
    task = prepared(encoder, dev=dev, lines=lines)
    assert lines[2] == (
        "dev has tags that train lacks: B-new: 1 (33%). Nothing can be learned of them; the words are tagged and "
        "counted as wrong."
    )
    assert task.rows(dev).targets["weight"][0].tolist() == [0, 1, 0, 1, 0]


def test_evaluation_compares_words_and_spans(tagger, tagging):
    examples = [
        sentence("the good/B-person fine/I-person film/B-new"),
        TaggedSentence((), (), id="empty"),
        sentence("film/B-place " + "the " * 120 + "good/B-person a good/B-person"),
    ]
    evaluation = evaluate_tags(tagging, examples)
    metrics = evaluation.metrics
    assert (metrics["words"], metrics["spans"], metrics["spans_given"]) == (128, 5, 5)
    assert metrics["f1"] == pytest.approx(4 / 5) and metrics["accuracy"] == pytest.approx(127 / 128)
    assert (metrics["sentences_in_windows"], metrics["cut_words"]) == (1, 0)
    assert [prediction["correct"] for prediction in evaluation.predictions] == [False, True, True]
    assert evaluation.predictions[0]["tags"] == ["O", "B-person", "I-person", "B-place"]
    assert evaluation.predictions[0]["right"][-1] == "B-new" and evaluation.predictions[1]["id"] == "empty"
    assert evaluation.warnings == [
        "1 tag of these examples is not of the model's, which were found in its training data: B-new: 1 (1%). "
        "1 word with it is tagged and counted as wrong."
    ]
    assert evaluation.pictures["confusion"]["labels"] == [*LABELS, "B-new"]
    assert np.sum(evaluation.pictures["confusion"]["counts"]) == 128
    assert sum(evaluation.pictures["reliability"]["counts"]) == 128


def test_a_model_that_gives_o_alone_is_warned_of():
    model = told_tagger(TOKENIZER, LABELS, {})
    evaluation = evaluate_tags(EagerTagging(model=model, tokenizer=TOKENIZER), TRAIN)
    assert evaluation.metrics["f1"] == 0 and evaluation.metrics["accuracy"] == 0.6
    assert len(evaluation.warnings) == 1
    assert evaluation.warnings[0].startswith("The model gives 'O' for all 10 words: it has collapsed, or not learned")


@pytest.mark.parametrize(
    "labels,told",
    [
        (["O", "B-x", "E-x", "S-y"], {"good": "B-x", "fine": "E-x", "film": "S-y"}),
        (["O", "I-x", "I-y"], {"good": "I-x", "fine": "I-x", "film": "I-y"}),
        (["O", "x", "y"], {"good": "x", "fine": "x", "film": "y"}),
    ],
)
def test_models_that_mark_spans_in_other_ways_are_scored_by_their_spans(labels, told):
    tagging = EagerTagging(model=told_tagger(TOKENIZER, labels, told), tokenizer=TOKENIZER)
    evaluation = evaluate_tags(tagging, [sentence("a good/B-x fine/I-x film/B-y .")])
    assert evaluation.metrics["f1"] == evaluation.metrics["accuracy"] == 1 and not evaluation.warnings
    assert evaluation.pictures["confusion"]["labels"] == ["O", "B-x", "I-x", "B-y", "I-y"]


def test_examples_that_name_types_are_scored_by_their_spans(tagging):
    evaluation = evaluate_tags(tagging, [sentence("a good/person fine/person film/place .")])
    assert evaluation.metrics["f1"] == evaluation.metrics["accuracy"] == 1 and not evaluation.warnings


def test_nothing_is_evaluated_without_words(tagging):
    with pytest.raises(InputError, match=r"`examples` must be one or more tagged sentences. Received: no word"):
        evaluate_tags(tagging, [TaggedSentence((), ())])


@pytest.mark.parametrize(
    "train,settings,message",
    [
        ([], {}, r"`train` must have words of two or more tags, .* Received: 0 words, all ''"),
        ([sentence("a b c")], {}, r"`train` must have words of two or more tags, .* Received: 3 words, all 'O'"),
        (
            [*TRAIN, TaggedSentence(("a", "b"), place="train.conll:7")],
            {},
            r"`train` must have a tag for every word. Received: 2 words and 0 tags in train.conll:7",
        ),
        (TRAIN, {"max_length": 65}, r"`max_length` must be at most 64, the positions of the model. .*max_length=65"),
        (TRAIN, {"max_length": 16, "stride": 15}, r"`stride` must be at most `max_length` - 2"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(encoder, train, settings, message):
    with pytest.raises(InputError, match=message):
        prepared(encoder, train=train, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("pieces", ["first", "all"])
def test_a_trained_model_finds_an_entity_far_into_a_long_sentence(encoder, pieces):
    import keras
    import tensorflow as tf

    rng = np.random.default_rng(3)
    fillers = [word for word in TOKENIZER.vocabulary[5:] if word.isalpha() and len(word) > 1 and word not in TOLD]

    def made(count, entity_at):
        words = [(str(word), "O") for word in rng.choice(fillers, count)]
        words[entity_at : entity_at + 3] = [("good", "B-person"), ("fine", "I-person"), ("zzz", "B-place")]
        return TaggedSentence(tuple(w for w, _ in words), tuple(t for _, t in words))

    train = [made(int(count), int(count) // 2) for count in rng.integers(8, 90, 24)]
    task = prepared(encoder, train=train, labelled_pieces=pieces)
    model = task.make_model(1)
    rows = task.rows(train)
    optimizer = keras.optimizers.Adam(1e-2)
    longest = max(map(len, rows.token_ids))

    def filled(arrays):
        return np.stack([np.pad(array, (0, longest - len(array))) for array in arrays])

    inputs = {"token_ids": filled(rows.token_ids), "segment_ids": filled(rows.segment_ids)}
    inputs["padding_mask"] = filled([np.ones_like(ids) for ids in rows.token_ids])
    targets = {name: filled(rows.targets[name]) for name in ("label", "weight")}
    targets["row_weight"] = np.array(rows.targets["row_weight"])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss_sum, weight = task.loss_sums(model(inputs, training=True), targets)
            loss = loss_sum / weight
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    losses = [float(step()) for _ in range(60)]
    assert losses[-1] < 0.1 < losses[0]
    far = made(180, 139)
    evaluation = task.evaluate(model, [far])
    assert evaluation.metrics["f1"] == 1 and evaluation.metrics["sentences_in_windows"] == 1
    spans = evaluation.predictions[0]["spans"]
    assert [(span["label"], span["start_word"]) for span in spans] == [("person", 139), ("place", 141)]
    assert isinstance(task.settings, TaskSettings) and task.settings.labelled_pieces == pieces
