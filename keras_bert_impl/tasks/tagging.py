"""A label for every word: named entities, parts of speech."""

from typing import Any

from keras_bert_impl.models.bert_token_classifier import BertTokenClassifier
from keras_bert_impl.tasks.task_model import TaskModel
from keras_bert_impl.tasks.word_answers import WordAnswers


class WordTagging(WordAnswers, TaskModel):
    """Tags words: sentences in, a tag for every word out, with the spans that the tags mark.

    A sentence is a list of words, each of which is then cut into pieces by itself, or a text, which is split into
    words by the tokenizer: at white space and around each punctuation mark. A model that was trained on lists whose
    words have punctuation in them (`U.S.`, `don't`) finds other words in a text than it was trained on.

    A sentence that is longer than a row is read in windows that overlap, every word in the one where it has the most
    context. See `TaskModel` for the arguments.

    Example:
        >>> tagging = WordTagging("ner_model")
        >>> [(span.text, span.label) for span in tagging(["Ada Lovelace lived in London."])[0].spans]
        [('Ada Lovelace', 'person'), ('London', 'location')]
    """

    model_class = BertTokenClassifier
    head = "classifier"
    tasks = ("tagging",)
    per_token = True

    def __init__(self, path: Any = None, **options: Any) -> None:
        super().__init__(path, **options)
        self.cut_into_rows()
