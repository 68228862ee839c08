"""What the signatures of a TFLite file take and give, read from its graph."""

from typing import Any

from .signature_names import MEANINGS


def signature_specs(file: bytes) -> dict[str, Any]:
    """Returns by signature `inputs` and `outputs`, each by name with `dtype`, `shape` (-1 for what is free), `meaning`.

    Args:
        file: a TFLite file.
    """
    from ai_edge_litert import schema_py_generated as schema

    dtypes = {value: name.lower() for name, value in vars(schema.TensorType).items() if isinstance(value, int)}
    model = schema.Model.GetRootAs(file, 0)
    specs: dict[str, Any] = {}
    for i in range(model.SignatureDefsLength()):
        signature = model.SignatureDefs(i)
        graph = model.Subgraphs(signature.SubgraphIndex())
        sides = {
            "inputs": [signature.Inputs(j) for j in range(signature.InputsLength())],
            "outputs": [signature.Outputs(j) for j in range(signature.OutputsLength())],
        }
        specs[signature.SignatureKey().decode()] = {
            side: {
                one.Name().decode(): _spec(one.Name().decode(), graph.Tensors(one.TensorIndex()), dtypes) for one in of
            }
            for side, of in sides.items()
        }
    return specs


def _spec(name: str, tensor: Any, dtypes: dict[int, str]) -> dict[str, Any]:
    free = tensor.ShapeSignatureLength() > 0
    shape = tensor.ShapeSignatureAsNumpy() if free else tensor.ShapeAsNumpy() if tensor.ShapeLength() else []
    spec: dict[str, Any] = {"dtype": dtypes[tensor.Type()], "shape": [int(size) for size in shape]}
    return spec | ({"meaning": MEANINGS[name]} if name in MEANINGS else {})
