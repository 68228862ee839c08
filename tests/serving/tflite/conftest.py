"""A small model for every task, as a model directory."""

from pathlib import Path

import pytest
from task_models import MODELS, toy_bert_config, toy_tokenizer

from keras_bert_impl.tasks import TaskSettings

POSITIONS = 40


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
