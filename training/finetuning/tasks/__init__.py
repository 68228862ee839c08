"""What there is to know of each task while a model is fine-tuned for it; opened when it is named."""

import importlib
from typing import Any

_HOME = {
    "classification": ("classification", "ClassificationTask"),
    "multilabel": ("classification", "MultilabelTask"),
    "regression": ("classification", "RegressionTask"),
    "tagging": ("tagging", "TaggingTask"),
    "qa": ("question_answering", "QuestionAnsweringTask"),
}


def task_class(name: str) -> type[Any]:
    """Returns the `FinetuningTask` of a name of `keras_bert_impl.tasks.settings.TASKS`."""
    module, task = _HOME[name]
    return getattr(importlib.import_module(f"{__name__}.{module}"), task)
