"""Vectors for texts."""

import json
import os
from pathlib import Path
from typing import Any

import keras
from keras import ops

from keras_bert_impl.checkpoints.checkpoint import Checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.tasks.settings import TASKS, TaskSettings
from keras_bert_impl.tasks.task_model import TaskModel
from keras_bert_impl.tasks.vector_answers import VectorAnswers
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

POOLING = ("mean", "cls", "pooler")
# Where sentence-transformers keeps how its vectors are made.
_POOLING_FILE = Path("1_Pooling") / "config.json"
_LENGTH_FILE = Path("sentence_bert_config.json")


class SentenceEmbedding(VectorAnswers, TaskModel):
    """An encoder that is read once and gives a vector for every text.

    ```python
    embed = SentenceEmbedding("all-MiniLM-L6-v2")
    first, second = embed(["a fine film", "a great movie"])
    first @ second  # cosine
    ```

    Args:
        path: as for `TaskModel`; any model will do, with whatever head.
        pooling: `"mean"`: of the hidden states of all tokens, `[CLS]` and `[SEP]` too, then of length 1; `"cls"`: the
            hidden state of `[CLS]`; `"pooler"`: what the pooler makes of that.
        model: a `BertEncoder`, in place of a path.
        tokenizer: its tokenizer; with a path, that of the directory if not given.
        max_length: most ids in a row; what the model was trained with if that is known, else its positions.

    Raises:
        InputError: as `TaskModel`; or if `pooling` is none of these, or the model has no pooler and needs one.

    Reference:
        [Reimers and Gurevych, 2019](https://arxiv.org/abs/1908.10084), section 3.
    """

    model_class = BertEncoder
    tasks = TASKS

    model: BertEncoder

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        pooling: str = "mean",
        *,
        model: BertEncoder | None = None,
        tokenizer: WordPieceTokenizer | None = None,
        max_length: int | None = None,
    ) -> None:
        if pooling not in POOLING:
            raise InputError(f"`pooling` must be one of {', '.join(POOLING)}. Received: pooling={pooling!r}")
        self.pooling = pooling
        super().__init__(path, model=model, tokenizer=tokenizer, max_length=max_length)
        if path is not None and max_length is None and self.settings.max_length is None:
            self._max_length = _sentence_length(path, self.model.config.max_position_embeddings)
        if pooling == "pooler" and self.model.pooler is None:
            raise InputError("`model` must have a pooler for pooling='pooler'. Received: a model without one")
        own = None if path is None else _own_pooling(path)
        self._pooling_note = (
            f"The model was made for pooling={own!r}; {pooling!r} is used." if own not in (None, pooling) else None
        )

    def read_model(self, checkpoint: Checkpoint) -> BertEncoder:
        """Reads the encoder; its pooler only where it is asked for."""
        if self.pooling == "pooler" and "pooler" not in checkpoint.parts:
            raise InputError(f"`model` must have a pooler for pooling='pooler'. Received: {checkpoint.source!r}")
        return BertEncoder.from_pretrained(checkpoint, pooler=self.pooling == "pooler")

    @classmethod
    def usual_settings(cls, model: BertEncoder) -> TaskSettings:
        """Returns settings of which only the length of rows counts."""
        return TaskSettings(task=TASKS[0])

    @property
    def notes(self) -> list[str]:
        """What the caller may say, in sentences."""
        return [*super().notes, *([self._pooling_note] if self._pooling_note else [])]

    def inference_form(self) -> keras.Model:
        """Returns a Keras model from rows to vectors `(rows, hidden_size)`."""
        encoder = self.model.unpadded_form()
        outputs = encoder.output
        if self.pooling == "pooler":
            vectors = outputs["pooled_output"]
        elif self.pooling == "cls":
            vectors = outputs["sequence_output"][:, 0]
        else:
            mask = ops.expand_dims(ops.cast(encoder.input["padding_mask"], "float32"), -1)
            states = ops.cast(outputs["sequence_output"], "float32")
            vectors = ops.sum(states * mask, axis=1) / ops.maximum(ops.sum(mask, axis=1), 1)
        return keras.Model(encoder.input, vectors)


def _sentence_length(path: str | os.PathLike[str], positions: int) -> int | None:
    length = _read(Path(path) / _LENGTH_FILE).get("max_seq_length")
    return length if isinstance(length, int) and 3 <= length <= positions else None


def _own_pooling(path: str | os.PathLike[str]) -> str | None:
    """Returns the pooling that a sentence-transformers directory says it was made for, if it is one of these."""
    settings = _read(Path(path) / _POOLING_FILE)
    if settings.get("pooling_mode_mean_tokens"):
        return "mean"
    return "cls" if settings.get("pooling_mode_cls_token") else None


def _read(file: Path) -> dict[str, Any]:
    """Returns a JSON object; an empty one where there is none, since other tools' files are only hints."""
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
