"""Whether a file that takes texts makes the rows of them that the tokenizer makes."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.tasks.rows import TextRow, text_row
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from .agreement import Asked
from .runner import TFLiteModel
from .signature_names import SEGMENT_IDS, TEXT_SIGNATURE, TOKEN_IDS

_NAMED = 5


class TextRows(NamedTuple):
    """Rows of the text signature beside those of the tokenizer.

    Attributes:
        texts: how many were compared.
        same: of how many the row is the same, with the number of its ids and whether it was cut off.
        examples: some texts of which it is another.
        with_special_tokens: texts that were not compared, since special tokens are written in them, which ids keep
            whole and the text signature reads like other words.
    """

    texts: int
    same: int
    examples: tuple[Asked, ...]
    with_special_tokens: int

    @property
    def share(self) -> float:
        """Share of texts whose row is the same."""
        return self.same / self.texts if self.texts else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {**self._asdict(), "examples": [list(example) for example in self.examples]}


def text_rows(path: str | os.PathLike[str], texts: Sequence[Asked]) -> TextRows:
    """Asks a file its signature for texts, and makes the rows by its tokenizer.

    Args:
        path: the file, with its contents.
        texts: what is asked about.
    """
    from tensorflow_text import tflite_registrar

    model = TFLiteModel(path, custom_ops=tflite_registrar.SELECT_TFTEXT_OPS)
    contents, names = model.contents, list(model.inputs[TEXT_SIGNATURE])
    plain = [text for text in texts if not any(_has_special_tokens(contents.tokenizer, one) for one in text)]
    others = []
    for text in plain:
        inputs = {name: np.array([one.encode("utf-8")], object) for name, one in zip(names, text, strict=True)}
        given = model.run(inputs, TEXT_SIGNATURE)
        if not _is(text_row(contents.tokenizer, contents.max_length, *text), given):
            others.append(text)
    return TextRows(len(plain), len(plain) - len(others), tuple(others[:_NAMED]), len(texts) - len(plain))


def _has_special_tokens(tokenizer: WordPieceTokenizer, text: str) -> bool:
    return tokenizer.encode_ids(text) != tokenizer.encode_ids(text, keep_special_tokens=False)


def _is(row: TextRow, given: dict[str, np.ndarray]) -> bool:
    count = len(row.token_ids)
    return (
        given["num_tokens"].tolist() == [count]
        and given["truncated"].tolist() == [row.truncated]
        and given[TOKEN_IDS][0, :count].tolist() == list(row.token_ids)
        and given[SEGMENT_IDS][0, :count].tolist() == list(row.segment_ids)
    )
