"""A version of a model whose signatures are also of classification and regression, rightly and wrongly so."""

import numpy as np
import tensorflow as tf
from fake_servables import FakeServable, tensor
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

from keras_bert_impl.serving.server.models.signature import Signature

PREDICT, CLASSIFY, REGRESS = (f"tensorflow/serving/{method}" for method in ("predict", "classify", "regress"))
STRING, FLOAT, INT32 = "string", "float", "int32"
DTYPES = {STRING: tf.string, FLOAT: tf.float32, INT32: tf.int32}


def signature(method_name, inputs, outputs, defaults=()):
    definition = SignatureDef(method_name=method_name)
    for infos, group in ((definition.inputs, inputs), (definition.outputs, outputs)):
        for name, info in group.items():
            infos[name].name, infos[name].dtype = info.tensor, DTYPES[info.dtype].as_datatype_enum
    for name, value in dict(defaults).items():
        definition.defaults[name].CopyFrom(tf.make_tensor_proto(value))
    return Signature(method_name, inputs, outputs, definition)


TEXT, EXAMPLES = {"text": tensor(STRING, None)}, {"inputs": tensor(STRING, None)}
NUMBERS = tensor(FLOAT, None)
TABLE = tensor(FLOAT, None, None)
SIGNATURES = {
    "serving_default": signature(PREDICT, TEXT, {"length": tensor(INT32, None), "upper": tensor(STRING, None)}),
    "sums": signature(PREDICT, {"a": NUMBERS, "b": NUMBERS}, {"sum": NUMBERS}),
    "scaled": signature(PREDICT, {"a": NUMBERS, "b": NUMBERS}, {"sum": NUMBERS}, {"b": np.float32([10])}),
    "labels": signature(CLASSIFY, EXAMPLES, {"classes": tensor(STRING, None, None), "scores": TABLE}),
    "scores": signature(CLASSIFY, EXAMPLES, {"scores": TABLE}),
    "value": signature(REGRESS, EXAMPLES, {"outputs": TABLE}),
    "many": signature(PREDICT, EXAMPLES, {"a": NUMBERS, "b": NUMBERS, "c": NUMBERS}),
    "other": signature(PREDICT, EXAMPLES, {"embedding": TABLE}),
    "two": signature(PREDICT, {**EXAMPLES, "mask": NUMBERS}, {"scores": TABLE}),
    "flat": signature(CLASSIFY, EXAMPLES, {"scores": NUMBERS}),
    "named": signature(CLASSIFY, EXAMPLES, {"classes": tensor(INT32, None, None)}),
    "short": signature(REGRESS, EXAMPLES, {"outputs": NUMBERS}),
    "uneven": signature(CLASSIFY, EXAMPLES, {"classes": tensor(STRING, None, None), "scores": TABLE}),
}


class ExampleModel(FakeServable):
    """Labels examples by their serialized length, and fails at the text `crash`."""

    def __init__(self, *args):
        super().__init__(*args)
        self.signatures = SIGNATURES

    def _results(self, signature, inputs):
        if signature in ("sums", "scaled"):
            return {"sum": inputs["a"] + inputs["b"]}
        if signature == "serving_default":
            if b"crash" in inputs["text"].tolist():
                raise RuntimeError("no /secret/path for the client")
            results = super()._results(signature, inputs)
            return {"length": results["length"], "upper": results["upper"]}
        lengths = np.float32([[len(example)] for example in inputs["inputs"]])
        scores = np.concatenate([lengths, -lengths], axis=1)
        classes = np.array([[b"long", "süß".encode()]] * len(lengths), object)
        return {
            "labels": {"classes": classes, "scores": scores},
            "scores": {"scores": scores},
            "value": {"outputs": lengths},
            "flat": {"scores": lengths[:, 0]},
            "named": {"classes": lengths.astype(np.int32)},
            "short": {"outputs": lengths[1:, 0]},
            "uneven": {"classes": classes, "scores": lengths},
        }[signature]

    def signature_def_map(self):
        return SignatureDefMap(signature_def={name: known.definition for name, known in SIGNATURES.items()})
