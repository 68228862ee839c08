"""Question answering the whole way: from SQuAD's JSON to answers of a model directory."""

import json

import numpy as np
import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.models import BertEncoder
from keras_bert_impl.tasks import QuestionAnswering
from keras_bert_impl.training.configs import EvaluateConfig, FinetuneConfig
from keras_bert_impl.training.finetuning.evaluate import evaluate_labelled
from keras_bert_impl.training.finetuning.finetune import finetune

TOKENIZER = toy_tokenizer()
OPINIONS = "good fine great nice bad dull poor awful".split()
OTHERS = "film book play song a the was very not and i it".split()


def squad(count: int, seed: int) -> dict:
    """Texts that may hold an opinion, which is the answer."""
    rng = np.random.default_rng(seed)
    paragraphs = []
    for number in range(count):
        words = rng.choice(OTHERS, rng.integers(4, 30)).tolist()
        answers = []
        if number % 3:
            place = int(rng.integers(len(words)))
            words[place] = str(rng.choice(OPINIONS))
            answers = [{"text": words[place], "answer_start": len(" ".join(["", *words[:place], ""])) - 1}]
        qas = [{"id": f"q{number}", "question": "was it", "answers": answers, "is_impossible": not answers}]
        paragraphs.append({"context": " ".join(words), "qas": qas})
    return {"version": "v2.0", "data": [{"title": "opinions", "paragraphs": paragraphs}]}


@pytest.mark.slow
def test_a_model_learns_to_answer_and_answers_as_it_was_measured(tmp_path):
    BertEncoder(toy_bert_config(TOKENIZER), pooler=False, seed=5).save_pretrained(tmp_path / "encoder", TOKENIZER)
    for name, count, seed in (("train", 240, 1), ("dev", 60, 2)):
        (tmp_path / f"{name}.json").write_text(json.dumps(squad(count, seed)), encoding="utf-8")
    said: list[str] = []
    metrics = finetune(
        FinetuneConfig(
            task="qa",
            model=str(tmp_path / "encoder"),
            train=(str(tmp_path / "train.json"),),
            dev=(str(tmp_path / "dev.json"),),
            output=str(tmp_path / "model"),
            max_length=24,
            max_question_length=8,
            epochs=8,
            batch_size=16,
            learning_rate=3e-3,
        ),
        said.append,
    )
    assert metrics["metrics"]["f1"] == pytest.approx(metrics["metrics"]["best_f1"])
    assert metrics["metrics"]["f1"] > 90, said
    assert metrics["metrics"]["no_answer"]["f1"] > 80 and metrics["metrics"]["questions_in_windows"] > 0
    answering = QuestionAnswering(tmp_path / "model")
    assert answering.settings.may_have_no_answer
    assert answering.settings.null_threshold == metrics["metrics"]["null_threshold"]
    assert [one.text for one in answering(["was it"] * 2, ["the Film was  AWFUL .", "the film was it"])] == [
        "AWFUL",
        "",
    ]
    again = evaluate_labelled(EvaluateConfig(model=str(tmp_path / "model"), input=(str(tmp_path / "dev.json"),)))
    assert again.metrics["f1"] == metrics["metrics"]["f1"]
    assert again.metrics["has_answer"] == metrics["metrics"]["has_answer"]
