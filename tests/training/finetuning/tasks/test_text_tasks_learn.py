"""Every task on texts learns what a small model can learn, from lists in Python to a model that is asked."""

import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.models import BertEncoder
from keras_bert_impl.training.finetuning.from_texts import finetune_texts

pytestmark = pytest.mark.slow
TOKENIZER = toy_tokenizer()
GOOD, BAD = "good great nice fine".split(), "bad dull poor awful".split()
THINGS = "film book play song".split()
TEXTS = [f"{word} {thing}" for word in GOOD + BAD for thing in THINGS]
IS_GOOD = [word in GOOD for word in GOOD + BAD for _ in THINGS]
SETTINGS = {"epochs": 20, "batch_size": 8, "learning_rate": 5e-3}


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder")
    BertEncoder(toy_bert_config(TOKENIZER, num_hidden_layers=1), seed=1).save_pretrained(path, TOKENIZER)
    return str(path)


def test_labels_of_which_several_may_hold(encoder):
    labels = [
        [*(["good"] * good), *(["film"] * text.endswith("film"))] for good, text in zip(IS_GOOD, TEXTS, strict=True)
    ]
    classify = finetune_texts(encoder, TEXTS, labels, dev=(TEXTS, labels), **SETTINGS)
    answers = [set(answer.label) for answer in classify(TEXTS)]
    assert sum(set(a) == b for a, b in zip(labels, answers, strict=True)) >= 30


def test_numbers(encoder):
    numbers = [2.5 if good else -0.5 for good in IS_GOOD]
    rate = finetune_texts(encoder, TEXTS, numbers, dev=(TEXTS, numbers), **{**SETTINGS, "epochs": 40})
    assert rate.settings.task == "regression"
    assert sum(abs(a - b.label) < 1 for a, b in zip(numbers, rate(TEXTS), strict=True)) >= 30


def test_pairs(encoder):
    """Whether the two texts are of one mind: neither alone tells."""
    pairs = [
        (text, other, good == also)
        for text, good in zip(TEXTS[::3], IS_GOOD[::3], strict=True)
        for other, also in zip(TEXTS[::4], IS_GOOD[::4], strict=True)
    ]
    texts, others, same = zip(*pairs, strict=True)
    labels = ["same" if one else "other" for one in same]
    compare = finetune_texts(encoder, texts, labels, pairs=others, dev=(texts, labels, others), **SETTINGS)
    assert compare.settings.pair
    answers = [answer.label for answer in compare(texts, others)]
    assert sum(a == b for a, b in zip(labels, answers, strict=True)) >= 0.9 * len(labels)
