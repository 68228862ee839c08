"""Classifiers that Hugging Face wrote are asked at once and answer as they do there (marker `torch`)."""

import numpy as np
import pytest
from task_models import toy_tokenizer

from keras_bert_impl.tasks import TextClassification

pytestmark = pytest.mark.torch
TOKENIZER = toy_tokenizer()
TEXTS = ["good film", "the play was very bad !", "Great", ""]
PAIRS = ["a fine song", "not i", "", "bad"]


@pytest.fixture
def torch():
    pytest.importorskip("transformers")
    return pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({"id2label": {0: "bad", 1: "odd", 2: "good"}}, "classification"),
        ({"num_labels": 2}, "classification"),
        ({"num_labels": 4, "problem_type": "multi_label_classification"}, "multilabel"),
        ({"num_labels": 1}, "regression"),
    ],
)
def test_a_directory_with_a_trained_head_answers_as_in_transformers(torch, tmp_path, settings, task):
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=TOKENIZER.vocab_size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.3,
        **settings,
    )
    theirs = BertForSequenceClassification(config).eval()
    theirs.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENIZER.vocabulary) + "\n", encoding="utf-8")
    tokenizer = BertTokenizer(str(tmp_path / "vocab.txt"))
    tokenizer.save_pretrained(tmp_path)
    with torch.no_grad():
        logits = theirs(**tokenizer(TEXTS, PAIRS, padding=True, return_tensors="pt")).logits

    classify = TextClassification(tmp_path)
    answers = classify(TEXTS, PAIRS)
    assert classify.settings.task == task
    if task == "regression":
        np.testing.assert_allclose([one.label for one in answers], logits[:, 0].numpy(), atol=1e-5)
        return
    expected = torch.softmax(logits, -1) if task == "classification" else torch.sigmoid(logits)
    given = [list(one.probabilities.values()) for one in answers]
    np.testing.assert_allclose(given, expected.numpy(), atol=1e-5)
    names = [config.id2label[i] for i in range(len(given[0]))]
    assert list(answers[0].probabilities) == names
    if task == "classification":
        assert [one.label for one in answers] == [names[i] for i in logits.argmax(-1).tolist()]
