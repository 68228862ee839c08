"""Steps of a pipeline that worker processes open without TensorFlow, which need not even be installed there."""

import copyreg
import importlib
import operator
from typing import Any


class Lean:
    """Pickled so that `keras_bert_console` is imported first: after it, `import keras_bert_impl` opens nothing more."""

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, ((_Console(), _Itself(self)), 1)


class _Console:
    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, ("keras_bert_console",)


class _Itself:
    def __init__(self, step: Lean):
        self.step = step

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg._reconstructor, (type(self.step), object, None), self.step.__dict__  # type: ignore[attr-defined]
