"""BERT for Keras on TensorFlow: from raw text to a served model."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "BertConfig": "config",
    "BertEncoder": "models.bert_encoder",
    "BertPretrainer": "models.bert_pretrainer",
    "BertMaskedLM": "models.bert_masked_lm",
    "BertClassifier": "models.bert_classifier",
    "BertTokenClassifier": "models.bert_token_classifier",
    "BertQuestionAnswerer": "models.bert_question_answerer",
    "WordPieceTokenizer": "tokenization.wordpiece",
    "PRESETS": "presets",
    "InputError": "errors",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _CheckoutRooms(importlib.abc.MetaPathFinder):
    """In a source checkout, finds the rooms `training` and `serving` beside the package, and nothing else."""

    root = Path(__file__).resolve().parent.parent

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        room = fullname.removeprefix(f"{__name__}.")
        if room not in ("training", "serving") or room == fullname:
            return None
        folder = self.root / room
        return importlib.util.spec_from_file_location(
            fullname, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


if (_CheckoutRooms.root / "setup.py").is_file() and not (Path(__file__).parent / "training").is_dir():
    # Before all others: where another checkout is installed, its rooms must not be mixed with this package.
    sys.meta_path.insert(0, _CheckoutRooms())

if "keras_bert_console" not in sys.modules:
    # Registers every class, so that `keras.models.load_model` needs no more than this import.
    for _module in ("layers", "models", "losses", "metrics", "schedules", "optimizers"):
        importlib.import_module(f"{__name__}.{_module}")
