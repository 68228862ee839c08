"""A small model for every task, as a model directory."""

from pathlib import Path

import pytest
from task_models import CLASSIFIERS, toy_bert_config, toy_tokenizer

from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)
from keras_bert_impl.tasks import TaskSettings

POSITIONS = 40
MODELS = {
    "embedding": (lambda config: BertEncoder(config, seed=3), None),
    "fill-mask": (lambda config: BertPretrainer(config, seed=3), None),
    **CLASSIFIERS,
    "regression": (
        lambda config: BertClassifier(config, labels=("score",), problem_type="regression", seed=3),
        {"pair": False},
    ),
    "tagging": (lambda config: BertTokenClassifier(config, labels=("O", "B-person", "I-person"), seed=3), {}),
    "qa": (lambda config: BertQuestionAnswerer(config, seed=3), {"max_question_length": 9, "may_have_no_answer": True}),
}
"""By name what makes a model, and the settings of its task; None where it has none."""


@pytest.fixture(scope="session")
def model_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The directory of each model of `MODELS`, of 40 positions."""
    tokenizer, folder = toy_tokenizer(), tmp_path_factory.mktemp("models")
    for name, (make, options) in MODELS.items():
        model = make(toy_bert_config(tokenizer, max_position_embeddings=POSITIONS))
        model.save_pretrained(folder / name, tokenizer=tokenizer)
        if options is not None:
            TaskSettings(task=name, **options).save(folder / name)
    return {name: folder / name for name in MODELS}
