"""The files of an export, one for each form of the weights: made, and compared with the Keras model."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..description import model_facts
from ..kinds import EMBEDDING, FILL_MASK, Kind
from ..loaded_model import LoadedModel
from ..proof.clean_process import ExportError
from .agreement import Asked, agreement, ask, mask_row
from .contents import Contents, append
from .conversion import convert
from .labelled_texts import LabelledTexts
from .measure_tflite import measure_tflite
from .operators import operators
from .processor import processor, row_inputs
from .quantization import quantize
from .remembered_outputs import remembered_outputs
from .report import Metric, Variant
from .runner import TFLiteModel
from .signature_specs import signature_specs
from .text_in import with_text_in

MOST_CALIBRATION_ROWS = 500
"""Rows that activations are calibrated on; of more, so many that lie evenly among them."""

# A graph that differs by more, of the largest score, was not written right; seen on real models: 1e-6.
_WRONG_GRAPH = 1e-3
_MEASURED_COLUMNS = 128


class Variants:
    """A model on its way into files.

    Args:
        kind: what the model answers.
        loaded: model, tokenizer and settings.
        before: what asks the Keras model.
        length: columns of the inputs; None if they are free.
        text_in: whether the files take texts, too.
        folder: where the files are written.
        say: receives the lines for the user.
    """

    def __init__(
        self,
        kind: Kind,
        loaded: LoadedModel,
        before: Any,
        length: int | None,
        text_in: bool,
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        self._kind, self._loaded, self._before, self._length = kind, loaded, before, length
        self._text_in, self._folder, self._say = text_in, folder, say
        self._float32 = b""
        self._seconds = 0.0

    def path(self, form: str) -> Path:
        """Returns where the file of a form is."""
        return self._folder / f"{form}.tflite"

    def float32(self, texts: Sequence[Asked], labelled: LabelledTexts | None) -> Variant:
        """Makes the float32 file.

        Args:
            texts: on which it is compared.
            labelled: labelled texts with their score.

        Raises:
            ExportError: if its graph does not compute what the Keras model does.
        """
        start = time.monotonic()
        self._float32 = convert(self._kind, self._loaded, length=self._length)
        self._seconds = time.monotonic() - start
        variant = self._variant("none", self._float32, self._seconds, texts, labelled)
        if not variant.agreement.largest <= _WRONG_GRAPH * max(1.0, variant.agreement.scale):
            raise ExportError(
                "The export was not put in place: on the same rows its graph differs from the Keras model by "
                f"{variant.agreement.largest:.1e} in scores of up to {variant.agreement.scale:.1e}"
            )
        return variant

    def quantized(
        self,
        form: str,
        texts: Sequence[Asked],
        labelled: LabelledTexts | None,
        rows: Sequence[dict[str, np.ndarray]],
        options: dict[str, Any],
    ) -> Variant:
        """Makes the file of another form, after `float32`.

        Args:
            form: of `checked_arguments.FORMS`.
            texts, labelled: as for `float32`.
            rows: from `calibration_rows`, for a form that needs them.
            options: of `quantization.quantize`.
        """
        start = time.monotonic()
        file = quantize(self._float32, form, calibration=rows, **options)
        return self._variant(form, file, self._seconds + time.monotonic() - start, texts, labelled)

    def calibration_rows(self, texts: Sequence[Asked]) -> list[dict[str, np.ndarray]]:
        """Returns the inputs that texts become, after `float32`; as many as are calibrated on."""
        texts = _evenly(texts, MOST_CALIBRATION_ROWS)
        model = TFLiteModel(self.path("none"))
        if model.contents.kind == "fill-mask":
            answers = model.answers()
            made = [row_inputs(model.contents, mask_row(answers, text)[0]) for (text,) in texts]
            return _evenly(made, MOST_CALIBRATION_ROWS)
        rows: list[dict[str, np.ndarray]] = []

        def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            rows.append(inputs)
            return model.run(inputs)

        ask(processor(model.contents, run), texts)
        return _evenly(rows, MOST_CALIBRATION_ROWS)

    def _variant(
        self, form: str, file: bytes, seconds: float, texts: Sequence[Asked], labelled: LabelledTexts | None
    ) -> Variant:
        path = self.path(form)
        if self._text_in:
            file = with_text_in(file, self._kind, self._loaded, length=self._length)
        path.write_bytes(append(file, self._contents(form, file)))
        self._say(f"{'float32' if form == 'none' else form}: made in {seconds:.1f} s; asking it {len(texts):,} texts.")
        model = TFLiteModel(path, threads=_threads())
        answers = model.answers()
        metric = None
        with remembered_outputs(answers):
            found = agreement(self._before, answers, texts)
            if labelled is not None:
                metric = Metric(labelled.metric, labelled.score(self._before), labelled.score(answers))
        inputs = self._measured_row(model)
        return Variant(
            form=form,
            bytes=path.stat().st_size,
            seconds=seconds,
            operators=operators(file),
            agreement=found,
            metric=metric,
            measured=measure_tflite(path, inputs, model.run(inputs)),
        )

    def _contents(self, form: str, file: bytes) -> Contents:
        loaded = self._loaded
        facts = model_facts(loaded)
        length = loaded.max_length if self._length is None else min(loaded.max_length, self._length)
        return Contents(
            kind=self._kind.name,
            tokenizer=loaded.tokenizer,
            config=loaded.model.config,
            settings=loaded.settings if self._kind not in (EMBEDDING, FILL_MASK) else None,
            labels=tuple(facts.get("labels", ())),
            max_length=length,
            length=self._length,
            quantization=form,
            signatures=signature_specs(file),
            facts={name: facts[name] for name in ("architecture", "parameters", "weights_sha256")},
        )

    def _measured_row(self, model: TFLiteModel) -> dict[str, np.ndarray]:
        """Returns the inputs of a row without padding."""
        contents = model.contents
        columns = contents.length or min(_MEASURED_COLUMNS, contents.columns)
        tokenizer = contents.tokenizer
        ids = np.arange(columns, dtype="int32") % tokenizer.vocab_size
        ids[ids == tokenizer.pad_token_id] = tokenizer.unk_token_id
        ids[0], ids[-1] = tokenizer.cls_token_id, tokenizer.sep_token_id
        ids[columns // 2] = tokenizer.mask_token_id
        return {
            "token_ids": ids[None],
            "segment_ids": np.zeros((1, columns), "int32"),
            "padding_mask": np.ones((1, columns), "int32"),
        }


def _evenly(items: Sequence[Any], most: int) -> list[Any]:
    """Returns items that lie evenly among all, `most` at most."""
    if len(items) <= most:
        return list(items)
    return [items[i * len(items) // most] for i in range(most)]


def _threads() -> int:
    return min(2, os.cpu_count() or 1)
