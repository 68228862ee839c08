"""What the Keras model answers to example texts, and how far from it an export's answers are.

The Keras side goes its own way from the text on: the Python tokenizer, one text at a time. Ids are sent with both
segments, texts with those that the model was trained with.
"""

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
from numpy.typing import ArrayLike

from keras_bert_impl.tasks.rows import batch_inputs

from ..loaded_model import LoadedModel
from .clean_process import ExportError
from .example_texts import SINGLE_TEXTS

Outputs = dict[str, np.ndarray]

TINY = float(np.finfo("float32").tiny)


class Comparison(abc.ABC):
    """Example texts, the answers that are right, and the measure of difference.

    Args:
        loaded: the model that was exported.

    Attributes:
        expected: by signature, for each text, the Keras model's outputs for it alone.

    Raises:
        ExportError: if the model gives values that are not numbers.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        mask_token = loaded.tokenizer.mask_token
        self.texts = [tuple(text.replace("[MASK]", mask_token) for text in texts) for texts in self.example_texts()]
        self.rows = [self.row(*texts) for texts in self.texts]
        self.expected = self.expected_outputs()
        arrays = [array for of_texts in self.expected.values() for of_text in of_texts for array in of_text.values()]
        if not all(np.isfinite(array).all() for array in arrays):
            raise ExportError("The export was not put in place: the model itself gives values that are not numbers")

    def expect_attention(self) -> None:
        """Has the signature that shows the attention compared, too."""
        self.expected["attention"] = []
        for row in self.rows:
            inputs = self.inputs([row])
            encoder_inputs = {name: inputs[name] for name in ("token_ids", "segment_ids", "padding_mask")}
            probabilities = keras.ops.cast(self.loaded.encoder.attention_probabilities(encoder_inputs), "float32")
            self.expected["attention"].append({"attention": keras.ops.convert_to_numpy(probabilities)[0]})

    @property
    def count(self) -> int:
        """Number of example texts."""
        return len(self.texts)

    def example_texts(self) -> list[tuple[str, ...]]:
        """Returns the texts of each example, as many as the text signature has inputs; the longest last."""
        return list(SINGLE_TEXTS)

    @abc.abstractmethod
    def row(self, *texts: str) -> Any:
        """Returns what has the `token_ids` and `segment_ids` of an example, and whether it is `truncated`."""

    @abc.abstractmethod
    def outputs(self, inputs: dict[str, np.ndarray]) -> Mapping[str, Any]:
        """Returns the Keras model's outputs for a batch."""

    @abc.abstractmethod
    def text_differences(self, answer: Outputs, row: Any, outputs: Outputs) -> dict[str, float]:
        """Returns how far each output of the text signature is from what the model's outputs say."""

    @abc.abstractmethod
    def id_differences(self, answer: Outputs, row: Any, outputs: Outputs) -> dict[str, float]:
        """Returns how far each output of the id signature is from what the model's outputs say."""

    def derived_scales(self, scales: dict[str, float], outputs: list[Outputs]) -> dict[str, float]:
        """Returns the scales of outputs that the Keras model does not have itself, from those that it has."""
        return {}

    def inputs(self, rows: Sequence[Any]) -> dict[str, np.ndarray]:
        """Returns the Keras model's inputs for a batch of rows."""
        return batch_inputs(rows, self.loaded.tokenizer.pad_token_id)

    def expected_outputs(self) -> dict[str, list[Outputs]]:
        """Returns the model's outputs for each text, by signature."""
        return {
            "serving_default": [self._alone(self.inputs([row])) for row in self.rows],
            "token_ids": [self._alone(self._id_inputs([i])) for i in range(self.count)],
        }

    def request(self, signature: str, members: Sequence[int]) -> Outputs:
        """Returns the inputs of a signature for some of the texts."""
        if signature in ("serving_default", "attention"):
            columns = zip(*(self.texts[i] for i in members), strict=True)
            return {
                name: np.array([text.encode("utf-8") for text in column])
                for name, column in zip(self.loaded.text_inputs, columns, strict=True)
            }
        inputs = self._id_inputs(members)
        return {name: inputs[name] for name in ("token_ids", "segment_ids")}

    def differences(self, signature: str, answer: Outputs, number: int) -> dict[str, float]:
        """Returns how far each output of an answer to one of the texts is from the right one."""
        row, outputs = self.rows[number], self.expected[signature][number]
        if signature == "token_ids":
            return self.id_differences(answer, row, outputs)
        compared = self._attention_differences if signature == "attention" else self.text_differences
        return {
            "num_tokens": exactly(answer["num_tokens"] == len(row.token_ids)),
            "truncated": exactly(answer["truncated"] == row.truncated),
            **compared(answer, row, outputs),
        }

    def _attention_differences(self, answer: Outputs, row: Any, outputs: Outputs) -> dict[str, float]:
        size = len(row.token_ids)
        tokens = [self.loaded.tokenizer.vocabulary[i] for i in row.token_ids]
        padded = tokens + [""] * (len(answer["tokens"]) - size)
        is_zero = not answer["attention"][..., size:, :].any() and not answer["attention"][..., size:].any()
        return {
            "tokens": exactly(decoded(answer["tokens"]).tolist() == padded),
            "attention": difference(answer["attention"][..., :size, :size], outputs["attention"]),
            "filled_up": exactly(is_zero),
        }

    def scales(self, signature: str) -> Iterator[tuple[str, float]]:
        """Yields the largest absolute value of each output over all texts."""
        outputs = self.expected[signature]
        scales = {name: max(largest(of_text[name]) for of_text in outputs) for name in outputs[0]}
        derived = {} if signature == "attention" else self.derived_scales(scales, outputs)
        for name, scale in (scales | derived).items():
            yield name, max(scale, TINY)

    def _id_inputs(self, members: Sequence[int]) -> dict[str, np.ndarray]:
        """The model's inputs for ids: the second half of a row is a second text; the padding token's id is padding.

        But for the first row, which is shown as the example and must be the one that its text becomes.
        """
        inputs = self.inputs([self.rows[i] for i in members])
        is_token = inputs["token_ids"] != self.loaded.tokenizer.pad_token_id
        is_second = np.cumsum(is_token, axis=1) > is_token.sum(axis=1, keepdims=True) // 2
        last_segment = min(1, self.loaded.model.config.type_vocab_size - 1)
        halves = (is_second & is_token).astype("int32") * last_segment
        segment_ids = np.where(np.array(members)[:, None] == 0, inputs["segment_ids"], halves)
        return inputs | {"segment_ids": segment_ids, "padding_mask": is_token.astype("int32")}

    def _alone(self, inputs: dict[str, np.ndarray]) -> Outputs:
        outputs = self.outputs(inputs)
        return {
            name: keras.ops.convert_to_numpy(keras.ops.cast(value, "float32"))[0] for name, value in outputs.items()
        }


def exactly(same: Any) -> float:
    """Returns no difference, or an infinite one."""
    return 0.0 if same else np.inf


def difference(answer: ArrayLike, expected: ArrayLike) -> float:
    """The largest absolute difference; infinite where the shapes differ or a value is not a number."""
    if np.shape(answer) != np.shape(expected):
        return np.inf
    found = largest(np.subtract(answer, expected))
    return found if np.isfinite(found) else np.inf


def largest(values: np.ndarray) -> float:
    """The largest absolute value; 0 of none."""
    return float(np.abs(values).max(initial=0))


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns probabilities, float64."""
    exponentials = np.exp(logits.astype("float64") - logits.max(-1, keepdims=True, initial=-np.inf))
    return exponentials / exponentials.sum(-1, keepdims=True)


def decoded(strings: np.ndarray) -> np.ndarray:
    """Returns texts for the bytes that an export answers with."""
    return np.char.decode(strings, "utf-8")
