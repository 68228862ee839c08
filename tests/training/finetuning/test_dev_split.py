"""Which examples are held out where there are no dev examples."""

import pytest

from keras_bert_impl.tasks.examples import Question, TaggedSentence, TextExample
from keras_bert_impl.training.finetuning.dev_split import FEWEST_DEV_EXAMPLES, dev_split

TEXTS = [TextExample(f"text {number}", label="x") for number in range(200)]


def test_the_share_is_held_out_and_the_order_is_kept():
    train, dev = dev_split(TEXTS, 0.1)
    assert len(dev) == 20 and len(train) == 180
    assert [example for example in TEXTS if example in dev] == dev
    assert [example for example in TEXTS if example in train] == train


def test_the_choice_depends_on_the_texts_alone():
    _, dev = dev_split(TEXTS, 0.1)
    _, of_reversed = dev_split(TEXTS[::-1], 0.1)
    relabelled = [TextExample(example.text, label="y", id="7") for example in TEXTS]
    assert {example.text for example in dev} == {example.text for example in of_reversed}
    assert {example.text for example in dev} == {example.text for example in dev_split(relabelled, 0.1)[1]}


@pytest.mark.parametrize(
    "examples",
    [
        [TextExample(f"text {number % 50}", f"pair {number}", "x") for number in range(200)],
        [TaggedSentence((f"word{number % 50}", "b"), ("O", "O")) for number in range(200)],
        [Question(f"question {number}", f"context {number % 50}") for number in range(200)],
    ],
    ids=["pairs", "sentences", "questions"],
)
def test_examples_of_one_text_are_on_one_side(examples):
    train, dev = dev_split(examples, 0.1)
    assert 16 <= len(dev) <= 24 and len(train) + len(dev) == 200

    def texts(part):
        return {
            getattr(example, "context", None) or getattr(example, "words", None) or example.text for example in part
        }

    assert not texts(train) & texts(dev)


@pytest.mark.parametrize("count", [0, 1, 3, 30])
def test_of_few_examples_none_is_held_out(count):
    assert dev_split(TEXTS[:count], 0.1) == (TEXTS[:count], [])
    assert len(dev_split(TEXTS[:40], 0.1)[1]) == FEWEST_DEV_EXAMPLES


def test_a_single_text_is_not_held_out_with_all_its_examples():
    same = [TextExample("one text", label="x")] * 100
    assert dev_split(same, 0.5) == (same, [])
