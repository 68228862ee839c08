"""A model with its tokenizer, read from a model directory or a run directory."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from keras_bert_impl.checkpoints.model_directory import model_directory
from keras_bert_impl.checkpoints.tokenizer_files import check_rows_for_tokens, missing_tokens
from keras_bert_impl.errors import InputError
from keras_bert_impl.models.bert_encoder import BertEncoder
from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.tasks.question_answering import QuestionAnswering
from keras_bert_impl.tasks.rows import text_row
from keras_bert_impl.tasks.settings import TaskSettings
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer


class LoadedModel:
    """What an answer needs.

    Attributes:
        directory: the model directory.
        model: the Keras model.
        tokenizer: the `WordPieceTokenizer`.
        max_length: ids that a row may have, with `[CLS]` and `[SEP]`.
        settings: how texts become rows; None for a masked language model.
        fresh_parts: parts of the model that the directory has no weights for, such as `"pooler"`.
    """

    def __init__(
        self,
        directory: Path,
        model: Any,
        tokenizer: WordPieceTokenizer,
        *,
        max_length: int,
        settings: TaskSettings | None = None,
    ) -> None:
        check_rows_for_tokens(tokenizer, model.config)
        self.directory = directory
        self.model = model
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.settings = settings
        report = model.load_report
        self.fresh_parts = set(report.fresh_parts if report is not None else ())

    @property
    def num_parameters(self) -> int:
        """Parameters that came from the directory; those of fresh parts are not among them."""
        return self.model.count_params() - sum(self._part(part).count_params() for part in self.fresh_parts)

    @property
    def task_name(self) -> str | None:
        """The task of the settings, if there are some."""
        return None if self.settings is None else self.settings.task

    @property
    def notes(self) -> list[str]:
        """What is to be said of the directory."""
        notes = [
            f"The model was saved without its {part}; the outputs that need it are left out."
            for part in sorted(self.fresh_parts)
        ]
        missing = missing_tokens(self.tokenizer, self.model.config)
        return notes if missing is None else [*notes, missing]

    @property
    def encoder(self) -> BertEncoder:
        """The model's encoder, or the model that is one."""
        return getattr(self.model, "encoder", self.model)

    @property
    def text_inputs(self) -> tuple[str, ...]:
        """Names of the texts that are asked about together."""
        settings = self.settings
        if settings is not None and settings.task == "qa":
            return "question", "context"
        return ("text", "text_pair") if settings is not None and settings.pair else ("text",)

    def _part(self, part: str) -> Any:
        if part != "pooler":
            return getattr(self.model, part)
        return self.encoder.get_layer("pooler")


class LoadedQuestionAnswerer(LoadedModel):
    """A `BertQuestionAnswerer`.

    Attributes:
        cutter: makes rows of questions and their texts.
    """

    def __init__(self, directory: Path, task: QuestionAnswering) -> None:
        super().__init__(directory, task.model, task.tokenizer, max_length=task.max_length, settings=task.settings)
        self.cutter = task.cutter


class Row(NamedTuple):
    """A text as the encoder reads it: `[CLS]`, pieces, `[SEP]`.

    Attributes:
        token_ids: the ids.
        truncated: whether pieces were left out at the end.
        mask_positions: where the mask tokens stand.
    """

    token_ids: list[int]
    truncated: bool
    mask_positions: list[int]


class LoadedMaskedLM(LoadedModel):
    """A `BertPretrainer`, of which the pooler and the next-sentence head may be fresh parts."""

    @classmethod
    def from_path(cls, path: str | os.PathLike[str], max_length: int | None = None) -> Self:
        """Reads a model directory, or the best model of a run directory.

        Args:
            path: the directory.
            max_length: ids that a row may have; the model's positions if not given.

        Raises:
            InputError: if it is neither, has no masked-LM head, or not so many positions.
        """
        directory = checked_directory(path)
        with warnings.catch_warnings():
            # Neither part has a say in what stands at a mask, and their outputs are left out.
            warnings.simplefilter("ignore")
            model = BertPretrainer.from_pretrained(directory, allow_missing=("pooler", "nsp_head"))
        return cls(
            directory,
            model,
            WordPieceTokenizer.from_pretrained(directory),
            max_length=_checked_max_length(max_length, model.config.max_position_embeddings),
        )

    def row(self, text: str, max_length: int) -> Row:
        """Returns the text's row of at most `max_length` ids."""
        row = text_row(self.tokenizer, max_length, text)
        masks = [i for i, token_id in enumerate(row.token_ids) if token_id == self.tokenizer.mask_token_id]
        return Row(row.token_ids, row.truncated, masks)

    def inputs(self, rows: Sequence[Row]) -> dict[str, np.ndarray]:
        """Returns the model's inputs for a batch of rows; unused mask slots hold position 0."""
        length = max(len(row.token_ids) for row in rows)
        token_ids = np.full((len(rows), length), self.tokenizer.pad_token_id, "int32")
        positions = np.zeros((len(rows), max(len(row.mask_positions) for row in rows)), "int32")
        for i, row in enumerate(rows):
            token_ids[i, : len(row.token_ids)] = row.token_ids
            positions[i, : len(row.mask_positions)] = row.mask_positions
        return {
            "token_ids": token_ids,
            "segment_ids": np.zeros_like(token_ids),
            "padding_mask": (token_ids != self.tokenizer.pad_token_id).astype("int32"),
            "mask_positions": positions,
        }


def checked_directory(path: str | os.PathLike[str]) -> Path:
    """Returns the model directory of a model or run directory; raises `InputError` if it is neither."""
    directory = model_directory(path)
    if (directory / "config.json").is_file() and (directory / "vocab.txt").is_file():
        return directory
    raise InputError(
        "`model` must be a model directory with config.json, model.safetensors and vocab.txt, or a run directory "
        f"that has one in it. Received: {str(path)!r}"
    )


def _checked_max_length(max_length: int | None, positions: int) -> int:
    if max_length is None:
        return positions
    if isinstance(max_length, bool) or not isinstance(max_length, int) or not 3 <= max_length <= positions:
        raise InputError(
            f"`max_length` must be at least 3 and at most the model's {positions} positions. "
            f"Received: max_length={max_length!r}"
        )
    return max_length


def checked_top(top: Any, model: BertPretrainer) -> int:
    """Returns the number of candidates asked for, which the vocabulary must have."""
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= model.config.vocab_size:
        raise InputError(f"`top` must be at least 1 and at most {model.config.vocab_size}. Received: top={top!r}")
    return top
