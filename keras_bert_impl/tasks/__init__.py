"""What a fine-tuned model is asked and what it answers: texts and words in; labels, spans and vectors out.

Each is read once and called many times: `TextClassification`, `WordTagging`, `QuestionAnswering`, `SentenceEmbedding`.
"""

import importlib
from typing import Any

_HOME = {
    "Answer": "examples",
    "Question": "examples",
    "TaggedSentence": "examples",
    "TextExample": "examples",
    "TaskSettings": "settings",
    "TextClassification": "classification",
    "WordTagging": "tagging",
    "QuestionAnswering": "question_answering",
    "SentenceEmbedding": "embedding",
}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
