"""A recorded training run of another implementation, opened to be replayed.

```
RUN/config.json, model.safetensors    the model before the first step, as Hugging Face writes it
RUN/batches.npz                       all batches: token_ids, segment_ids, padding_mask (steps, batch, length);
                                      positions, labels, weights (steps, batch, predictions); nsp (steps, batch)
RUN/run.json                          optimizer, betas, epsilon, weight_decay, no_decay, clip and loss, in words and
                                      numbers; learning_rate of every step
```
"""

import dataclasses
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

from .reference_settings import ReferenceSettings, is_number, read_settings, refused

BATCHES, RUN = "batches.npz", "run.json"
_AXES = {
    **dict.fromkeys(("token_ids", "segment_ids", "padding_mask"), ("steps", "batch", "length")),
    **dict.fromkeys(("positions", "labels", "weights"), ("steps", "batch", "predictions")),
    "nsp": ("steps", "batch"),
}
_SETTINGS = {"optimizer", "betas", "epsilon", "weight_decay", "no_decay", "clip", "loss", "learning_rate", "hidden_act"}
_RECORDED = {"source", "loss_per_step", "mlm_loss", "nsp_loss", "gradient_norm"}
_NO_DROPOUT = re.compile(r"dropout(_prob)?\W{0,3}(of |is )?0(\.0*)?(?![\d.])|(without|no) dropout")
_TANH = {"gelu_new", "gelu_pytorch_tanh"}
# PyTorch's label of what does not count.
_UNLABELLED = -100

Batches = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


class ReferenceRun:
    """What a folder of this form says.

    Args:
        folder: the folder.
        say: takes a line about each thing in it that has no meaning here and is passed over.

    Attributes:
        steps: number of steps.
        settings: optimizer and loss.
        learning_rates: the rate of every step.

    Raises:
        InputError: if a file is missing or damaged, does not fit the others, or asks for what cannot be replayed.
    """

    def __init__(self, folder: str | os.PathLike[str], say: Callable[[str], None] = lambda line: None):
        self.folder = Path(folder)
        values, arrays = self._read_values(), self._read_arrays()
        for file, names in ((RUN, values.keys() - _SETTINGS - _RECORDED), (BATCHES, arrays.keys() - _AXES.keys())):
            for name in sorted(names):
                say(f"{file} has {name!r}, which has no meaning here and is passed over.")
        self._values = values
        self._arrays = self._checked(arrays)
        self.steps: int = len(self._arrays["token_ids"])
        self.settings: ReferenceSettings = read_settings(values)
        if self.settings.next_sentence and "nsp" not in arrays:
            raise self._damaged(BATCHES, "has no nsp, which the loss needs")
        self.learning_rates: list[float] = self._checked_rates(values.get("learning_rate"))

    def config(self, config: BertConfig) -> BertConfig:
        """Returns the model's configuration as the run had it: without dropout.

        Args:
            config: that of config.json.

        Raises:
            InputError: if the batches do not fit it, or the run had dropout.
        """
        act = self._values.get("hidden_act", config.hidden_act)
        if act != config.hidden_act and not {act, config.hidden_act} <= _TANH:
            raise refused("hidden_act", f"be that of config.json, {config.hidden_act}", act)
        length = self._arrays["token_ids"].shape[2]
        if length > config.max_position_embeddings:
            raise self._damaged(BATCHES, f"has rows of {length} tokens for {config.max_position_embeddings} positions")
        for name, limit in (
            ("token_ids", config.vocab_size),
            ("labels", config.vocab_size),
            ("segment_ids", config.type_vocab_size),
            ("positions", length),
            ("padding_mask", 2),
            ("nsp", 2),
        ):
            odd = self._counted(name)
            odd = odd[(odd < 0) | (odd >= limit)]
            if odd.size:
                raise self._damaged(BATCHES, f"has {odd[0]} in {name}, which must be from 0 to {limit - 1}")
        if (config.hidden_dropout_prob or config.attention_probs_dropout_prob) and not self._says_no_dropout():
            raise InputError(
                "`folder` must hold a run without dropout, since another library's random choices cannot be repeated. "
                f"Received: {str(self.folder)!r}, with a hidden_dropout_prob of {config.hidden_dropout_prob} and an "
                f"attention_probs_dropout_prob of {config.attention_probs_dropout_prob}"
            )
        return dataclasses.replace(config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)

    def batches(self) -> Batches:
        """Returns inputs and targets of the trainer; their first axis is the step."""
        tokens = {name: self._arrays[name].astype(np.int32) for name in ("token_ids", "segment_ids", "padding_mask")}
        rows = self._arrays["token_ids"].shape[:2]
        labels = self._arrays.get("nsp", np.full(rows, _UNLABELLED))
        labelled = (labels != _UNLABELLED) & self.settings.next_sentence
        return (
            {**tokens, "mask_positions": self._in_slots("positions")},
            {
                "mask_labels": self._in_slots("labels"),
                "mask_weights": self._arrays["weights"].astype(np.float32),
                "next_sentence_labels": np.where(labelled, labels, 0).astype(np.int32),
                "next_sentence_weights": labelled.astype(np.float32),
            },
        )

    def _in_slots(self, name: str) -> np.ndarray:
        """Returns what prediction slots hold, 0 in those without weight."""
        return np.where(self._arrays["weights"] != 0, self._arrays[name], 0).astype(np.int32)

    def _counted(self, name: str) -> np.ndarray:
        """Returns the values of an array that have an influence."""
        if name in ("positions", "labels"):
            return self._in_slots(name).ravel()
        values = self._arrays.get(name, np.zeros(0, np.int32)).ravel()
        return values[values != _UNLABELLED] if name == "nsp" else values

    def _says_no_dropout(self) -> bool:
        return bool(_NO_DROPOUT.search(str(self._values.get("source", "")).lower()))

    def _read_values(self) -> dict[str, Any]:
        try:
            values = json.loads((self.folder / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise self._damaged(RUN, "is missing or no JSON object")
        return values

    def _read_arrays(self) -> dict[str, np.ndarray]:
        try:
            with np.load(self.folder / BATCHES, allow_pickle=False) as file:
                return dict(file)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError):
            raise self._damaged(BATCHES, "is missing or damaged") from None

    def _checked(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the arrays that have a meaning, of shapes that fit one another."""
        sizes: dict[str, int] = {}
        for name, axes in _AXES.items():
            if name not in arrays:
                if name == "nsp":
                    continue
                raise self._damaged(BATCHES, f"has no {name}")
            shape = arrays[name].shape
            known = {**sizes, **dict(zip(axes, shape, strict=False))}
            if len(shape) != len(axes) or known != {**known, **sizes}:
                raise self._damaged(BATCHES, f"has {name} of shape {shape}, which must be ({', '.join(axes)}): {sizes}")
            sizes = known
            if arrays[name].dtype.kind not in ("biuf" if name == "weights" else "biu"):
                raise self._damaged(BATCHES, f"has {name} of type {arrays[name].dtype}")
        if not all(sizes.values()):
            raise self._damaged(BATCHES, f"holds nothing: {sizes}")
        return {name: arrays[name] for name in _AXES if name in arrays}

    def _checked_rates(self, rates: Any) -> list[float]:
        if is_number(rates):
            rates = [rates] * self.steps
        if not isinstance(rates, list) or not all(is_number(rate) and 0 <= rate < float("inf") for rate in rates):
            raise refused("learning_rate", "be numbers from 0 on, one for each step or one for all", rates)
        if len(rates) != self.steps:
            raise InputError(
                f"`learning_rate` in {RUN} must have a rate for each of the {self.steps} steps of {BATCHES}. "
                f"Received: {len(rates)} rates"
            )
        return rates

    def _damaged(self, file: str, what: str) -> InputError:
        return InputError(
            f"`folder` must hold a reference run: {RUN}, {BATCHES}, config.json and model.safetensors. "
            f"Received: {str(self.folder)!r}, whose {file} {what}"
        )
