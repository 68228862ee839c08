"""Which operators a TFLite file uses."""

from collections import Counter
from typing import Any, NamedTuple


class Operators(NamedTuple):
    """How often each operator stands in a file.

    Attributes:
        built_in: those that every interpreter has.
        custom: those that an app must register, TensorFlow's own (`Flex…`) among them.
    """

    built_in: dict[str, int]
    custom: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {"built_in": self.built_in, "custom": self.custom}


def operators(file: bytes) -> Operators:
    """Counts the operators of all subgraphs, by name, the commonest first."""
    from ai_edge_litert import schema_py_generated as schema

    names = {
        value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int) and name.isupper()
    }
    model = schema.Model.GetRootAs(file, 0)
    codes = []
    for i in range(model.OperatorCodesLength()):
        code = model.OperatorCodes(i)
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        custom = code.CustomCode()
        codes.append((names.get(number, str(number)), None if custom is None else custom.decode("utf-8", "replace")))
    built_in: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for i in range(model.SubgraphsLength()):
        graph = model.Subgraphs(i)
        for j in range(graph.OperatorsLength()):
            name, custom = codes[graph.Operators(j).OpcodeIndex()]
            if name == "CUSTOM":
                others[custom or "unnamed"] += 1
            else:
                built_in[name] += 1
    return Operators(dict(built_in.most_common()), dict(others.most_common()))
