"""Labelled examples from files and from Python; opens no TensorFlow."""

from .columns import TextColumns
from .labels import describe_counts, label_counts, shared_texts
from .python_data import to_questions, to_tagged_sentences, to_text_examples
from .squad import read_questions, stream_questions
from .streams import stream_examples
from .tables import InputRow, InputRows, read_text_examples, stream_text_rows
from .tagged_files import read_tagged_sentences, stream_words

__all__ = [
    "InputRow",
    "InputRows",
    "TextColumns",
    "describe_counts",
    "label_counts",
    "read_questions",
    "read_tagged_sentences",
    "read_text_examples",
    "shared_texts",
    "stream_examples",
    "stream_questions",
    "stream_text_rows",
    "stream_words",
    "to_questions",
    "to_tagged_sentences",
    "to_text_examples",
]
