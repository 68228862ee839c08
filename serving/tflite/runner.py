"""A TFLite file that is asked by name, through LiteRT, without TensorFlow."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_bert_impl.errors import InputError, nearest
from keras_bert_impl.extras import check_extra
from keras_bert_impl.quiet import held_back_error_stream

from .contents import Contents, read
from .processor import processor
from .signature_names import MEANINGS, PADDING_MASK, SEGMENT_IDS, SIGNATURE, TOKEN_IDS

_PACKAGE = "ai_edge_litert"
_RANKS_OF_LABELS = {"logits": 2, "probabilities": 2}


class TensorSpec(NamedTuple):
    """An input or output: its dtype, and its shape with -1 for what is free."""

    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        sizes = ", ".join("any" if size == -1 else str(size) for size in self.shape)
        return f"{self.dtype} of shape ({sizes}{',' if len(self.shape) == 1 else ''})"


class TFLiteModel:
    """A file that `keras-bert export --format tflite` wrote.

    ```python
    model = TFLiteModel("film_tflite/model.tflite")
    model.answers()(["a fine film"])
    # [TextPrediction(label='positive', probabilities={'negative': 0.02, 'positive': 0.98}, …)]
    ```

    Args:
        path: the file.
        threads: that the interpreter may use.
        custom_ops: what registers operators that are not built in, as the interpreter takes it; for files that take
            text.

    Attributes:
        path: the file.
        contents: what lies in it beside the graph.
        inputs, outputs: by signature and name the `TensorSpec` that the graph has.

    Raises:
        InputError: if LiteRT is not installed, the file is damaged or none of ours, needs operators that are not
            there, or its graph is not what its notes say.
    """

    def __init__(self, path: str | os.PathLike[str], threads: int = 1, custom_ops: Sequence[Any] = ()) -> None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise InputError(f"`threads` must be a positive whole number. Received: threads={threads!r}")
        check_extra("A TFLite file", "tflite", [_PACKAGE])
        self.path = os.fspath(path)
        self.contents: Contents = read(path)
        self._runners = self._opened(threads, custom_ops)
        self.inputs, self.outputs = (
            {name: _specs(getattr(runner, f"get_{side}_details")()) for name, runner in self._runners.items()}
            for side in ("input", "output")
        )
        self._check_graph()

    def run(self, inputs: Mapping[str, np.ndarray], signature: str = SIGNATURE) -> dict[str, np.ndarray]:
        """Runs a signature.

        Args:
            inputs: arrays by name, in any order; see `inputs` for dtypes and shapes. Of free shapes, `token_ids`,
                `segment_ids` and `padding_mask` have the same one.
            signature: its name.

        Returns:
            The outputs by name.

        Raises:
            InputError: if there is no such signature, or a name, a dtype, a shape or an id is none that it takes.
        """
        if signature not in self._runners:
            known = ", ".join(self._runners)
            raise InputError(f"`signature` must be one of {known}. Received: signature={signature!r}")
        expected = self.inputs[signature]
        _check_names(inputs, expected)
        for name, spec in expected.items():
            _check_array(name, inputs[name], spec, self.contents.columns)
        ids = [name for name in (TOKEN_IDS, SEGMENT_IDS, PADDING_MASK) if name in expected]
        if len({inputs[name].shape for name in ids}) > 1:
            shapes = ", ".join(f"{name} {inputs[name].shape}" for name in ids)
            raise InputError(f"`inputs` must have one shape. Received: {shapes}")
        self._check_ids(inputs)
        try:
            # Of signatures after the first, operators are looked for only now.
            return self._runners[signature](**inputs)
        except (RuntimeError, ValueError) as error:
            raise self._refused(error) from error

    def answers(self, *, max_length: int | None = None, pooling: str | None = None) -> Any:
        """Returns what is asked texts and answers, as the class of `keras_bert_impl.tasks` for the same kind of model.

        Args:
            max_length: most ids in a row; that of the file when not given.
            pooling: for vectors, `"mean"`, `"cls"` or `"pooler"`.

        Raises:
            InputError: if the file's inputs are shorter than `max_length`, or it gives no such vectors.
        """
        return processor(self.contents, self.run, max_length=max_length, pooling=pooling)

    def _opened(self, threads: int, custom_ops: Sequence[Any]) -> dict[str, Any]:
        from ai_edge_litert.interpreter import Interpreter, InterpreterWithCustomOps

        try:
            with held_back_error_stream():  # It tells of its delegates there.
                if custom_ops:
                    self._interpreter = InterpreterWithCustomOps(
                        custom_op_registerers=list(custom_ops), model_path=self.path, num_threads=threads
                    )
                else:
                    self._interpreter = Interpreter(model_path=self.path, num_threads=threads)
                self._interpreter.allocate_tensors()
                names = self._interpreter.get_signature_list()
                return {name: self._interpreter.get_signature_runner(name) for name in names}
        except (RuntimeError, ValueError) as error:
            raise self._refused(error) from error

    def _refused(self, error: Exception) -> InputError:
        """Returns the error for what LiteRT says."""
        what = str(error).strip().partition("\n")[0]
        if "custom op" in what.lower():
            return InputError(
                "`custom_ops` must register the operators that the file needs beside those of TFLite; those of "
                f"tensorflow-text are in tensorflow_text.tflite_registrar. Received: {self.path!r}: {what}"
            )
        return InputError(f"`model` must be a file that LiteRT can run. Received: {self.path!r}: {what}")

    def _check_graph(self) -> None:
        """Refuses notes that another graph was meant by."""
        stated = self.contents.signatures
        for name in stated:
            if name not in self._runners:
                raise InputError(f"`model` must have the signature {name!r} that it tells of. Received: {self.path!r}")
            for side, specs in (("inputs", self.inputs[name]), ("outputs", self.outputs[name])):
                if specs.keys() != stated[name][side].keys():
                    raise InputError(
                        f"`model` must have the {side} that it tells of, {', '.join(sorted(stated[name][side]))}. "
                        f"Received: {self.path!r}, with {', '.join(sorted(specs))}"
                    )
            for output, rank in _RANKS_OF_LABELS.items():
                spec = self.outputs[name].get(output)
                if spec is not None and len(spec.shape) >= rank and spec.shape[-1] != len(self.contents.labels):
                    raise InputError(
                        f"`model` must have a score for each label. Received: {self.path!r}, with "
                        f"{len(self.contents.labels)} labels and {output} {spec}"
                    )

    def _check_ids(self, inputs: Mapping[str, np.ndarray]) -> None:
        """The kernels look at ids that tables have no row for without asking."""
        config = self.contents.config
        sizes = {TOKEN_IDS: config.vocab_size, SEGMENT_IDS: config.type_vocab_size, PADDING_MASK: 2}
        for name, size in sizes.items():
            array = inputs.get(name)
            if array is not None and array.size and not 0 <= array.min() <= array.max() < size:
                raise InputError(
                    f"`{name}` must be at least 0 and less than {size}. Received: from {array.min()} to {array.max()}"
                )


def _specs(details: Mapping[str, Any]) -> dict[str, TensorSpec]:
    # The interpreter has them in no order.
    names = sorted(details, key=lambda name: (list(MEANINGS).index(name) if name in MEANINGS else len(MEANINGS), name))
    return {
        name: TensorSpec(np.dtype(details[name]["dtype"]).name, tuple(map(int, details[name]["shape_signature"])))
        for name in names
    }


def _check_names(inputs: Any, expected: Mapping[str, TensorSpec]) -> None:
    if not isinstance(inputs, Mapping):
        raise InputError(f"`inputs` must be arrays by name. Received: {type(inputs).__name__}")
    if inputs.keys() != expected.keys():
        unknown = [str(name) for name in inputs if name not in expected]
        meant = " or ".join(nearest(unknown, [name for name in expected if name not in inputs]))
        raise InputError(
            f"`inputs` must be {', '.join(f'{name} ({spec})' for name, spec in expected.items())}. "
            f"Received: {', '.join(map(str, inputs)) or 'none'}{f'; did you mean {meant}?' if meant else ''}"
        )


def _check_array(name: str, array: Any, spec: TensorSpec, columns: int) -> None:
    if not isinstance(array, np.ndarray):
        raise InputError(f"`{name}` must be a NumPy array, {spec}. Received: {type(array).__name__}")
    right = len(array.shape) == len(spec.shape) and all(
        size == own or (own == -1 and size > 0) for size, own in zip(array.shape, spec.shape, strict=True)
    )
    # Strings are objects or bytes.
    same = array.dtype == spec.dtype or (spec.dtype in ("object", "bytes") and array.dtype.kind in "OSU")
    if not right or not same:
        shape = f"({array.shape[0]},)" if array.ndim == 1 else str(array.shape)
        raise InputError(f"`{name}` must be {spec}. Received: {array.dtype} of shape {shape}")
    if array.ndim == 2 and array.shape[1] > columns:
        raise InputError(f"`{name}` must have at most {columns} columns. Received: {array.shape[1]}")
