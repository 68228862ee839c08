"""The texts and the score by which another form of a model is judged are those of `evaluate` and `predict`."""

import json

import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.models import BertClassifier, BertQuestionAnswerer, BertTokenClassifier
from keras_bert_impl.tasks import QuestionAnswering, TaskSettings, TextClassification, WordTagging
from keras_bert_impl.training.configs import EvaluateConfig
from keras_bert_impl.training.finetuning.evaluate import evaluate_labelled
from keras_bert_impl.training.finetuning.scored_examples import read_scored, read_texts

TOKENIZER = toy_tokenizer()
QUESTIONS = [
    {"question": f"what is {word}", "context": f"the film is {word}", "answers": [word]} for word in ("good", "bad")
]
CASES = {
    "classification": (
        lambda config: BertClassifier(config, labels=["bad", "good"], seed=3),
        {"pair": False},
        TextClassification,
        "dev.tsv",
        "text\tlabel\ngood film\tgood\nbad\tbad\nthe book\tgood\n",
        [("good film",), ("bad",), ("the book",)],
        "accuracy",
        100,
    ),
    "tagging": (
        lambda config: BertTokenClassifier(config, labels=["O", "B-x", "I-x"], seed=3),
        {},
        WordTagging,
        "dev.conll",
        "good B-x\nfilm O\n\nthe O\nbook B-x\n",
        [(["good", "film"],), (["the", "book"],)],
        "f1",
        100,
    ),
    "qa": (
        lambda config: BertQuestionAnswerer(config, seed=3),
        {"max_question_length": 16},
        QuestionAnswering,
        "dev.jsonl",
        "".join(json.dumps(question) + "\n" for question in QUESTIONS),
        [(question["question"], question["context"]) for question in QUESTIONS],
        "f1",
        1,  # The official rules of SQuAD give percent.
    ),
}


@pytest.mark.parametrize("task", CASES)
def test_the_score_is_what_evaluate_says_in_points_and_the_texts_are_those_of_the_file(task, tmp_path):
    make, options, asks, name, content, texts, metric, points = CASES[task]
    model, settings = make(toy_bert_config(TOKENIZER)), TaskSettings(task=task, **options)
    model.save_pretrained(tmp_path / "model", tokenizer=TOKENIZER)
    settings.save(tmp_path / "model")
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    settings = TaskSettings.load(tmp_path / "model")
    scored = read_scored(str(file), "model", settings, TOKENIZER, {}, lambda line: None)
    evaluated = evaluate_labelled(EvaluateConfig(model=str(tmp_path / "model"), input=(str(file),))).metrics
    assert scored.texts == texts and scored.metric == metric
    assert scored.score(asks(tmp_path / "model")) == pytest.approx(points * evaluated[metric])
    assert read_texts(str(file), settings, {}, "calibration", lambda line: None) == texts
