"""From text to trained weights. Imported as `keras_bert_impl.training`; its parts are opened when named.

The functions that share a module's name are taken from it: `from keras_bert_impl.training.pretrain import pretrain`.
"""

import importlib
from typing import Any

_HOME = {
    "VocabConfig": "configs",
    "PrepareConfig": "configs",
    "PretrainConfig": "configs",
    "PhaseConfig": "configs",
    "EvaluateConfig": "configs",
    "FinetuneConfig": "configs",
    "PredictConfig": "configs",
    "PretrainingTrainer": "exact_step",
    "FinetuningTrainer": "finetuning.trainer",
    "finetune": "finetuning.finetune",
    "finetune_texts": "finetuning.from_texts",
    "finetune_sentences": "finetuning.from_texts",
    "finetune_questions": "finetuning.from_texts",
    "open_data": "pretraining_data",
    "training_batches": "input_pipeline",
    "evaluation_batches": "input_pipeline",
    "read_tfrecords": "record_batches",
    "make_strategy": "distribution",
    "replay_reference_run": "replay",
}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
