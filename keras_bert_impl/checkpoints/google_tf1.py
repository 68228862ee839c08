"""TensorFlow 1 checkpoints by the names of google-research/bert: its releases, and what its scripts save."""

import dataclasses
import re
from pathlib import Path

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor, architecture_of, plain_labels
from keras_bert_impl.checkpoints.google_config import read_google_config
from keras_bert_impl.checkpoints.tensorflow_file import checked_prefix, stored_tensors

_NAMES = {
    "bert/embeddings/word_embeddings": "embeddings.word_embeddings.weight",
    "bert/embeddings/position_embeddings": "embeddings.position_embeddings.weight",
    "bert/embeddings/token_type_embeddings": "embeddings.token_type_embeddings.weight",
    "cls/predictions/output_bias": "cls.predictions.bias",
    "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
    "cls/squad/output_bias": "qa_outputs.bias",
    "output_bias": "classifier.bias",
}
# Kernels that the scripts make without a layer are `(outputs, inputs)`.
_TRANSPOSED = {
    "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
    "cls/squad/output_weights": "qa_outputs.weight",
    "output_weights": "classifier.weight",
}
_DENSE = re.compile(
    r"(bert/encoder/layer_\d+/(attention/self/(query|key|value)|(attention/output|intermediate|output)/dense)"
    r"|bert/pooler/dense|cls/predictions/transform/dense)/(kernel|bias)"
)
_LAYER_NORM = re.compile(
    r"(bert/embeddings|bert/encoder/layer_\d+/(attention/)?output|cls/predictions/transform)/LayerNorm/(gamma|beta)"
)
_KINDS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}

# A slot is named like its variable with one word more; a second one of a name gets a number.
_SLOT = re.compile(
    r".+/(adam_[mv]|lamb_[mv]|Adam|AdamWeightDecayOptimizer|LAMBOptimizer|Momentum|Adagrad)(_\d+)?", re.IGNORECASE
)
_COUNTER = re.compile(r"global_step(_\d+)?")
_OPTIMIZER_STATE = re.compile(r"(.+/)?(beta[12]_power|learning_rate|(current_)?loss_scale|good_steps|bad_steps)(_\d+)?")


def open_google_tf1(path: Path) -> Checkpoint:
    """Opens a checkpoint of google-research/bert; reads its configuration and the names and shapes of its tensors.

    Args:
        path: its directory, or its prefix (`…/bert_model.ckpt`), with `bert_config.json` in the same directory.

    Raises:
        InputError: if there is no such checkpoint, or one of its files is absent, damaged or of another architecture.
    """
    prefix = checked_prefix(path)
    config, ignored_keys = read_google_config(prefix.parent)
    tensors: dict[str, StoredTensor] = {}
    passed_over = []
    for name, tensor in sorted(stored_tensors(prefix).items()):
        if reason := _nothing_new(tensor):
            passed_over.append((name, reason))
        else:
            # What is not known keeps its name, so that a load stops at it.
            key = tensor_key(name) or name
            tensors[key] = dataclasses.replace(tensor, transposed=name in _TRANSPOSED)
    kernel = tensors.get("classifier.weight")
    # run_squad.py saves a pooler too, which nothing follows.
    spans = "qa_outputs.weight" in tensors
    return Checkpoint(
        source=str(prefix),
        format="google_tf1",
        config=config,
        tensors=tensors,
        architecture="BertForQuestionAnswering" if spans else architecture_of(tensors),
        architecture_is_stated=False,
        labels=plain_labels(kernel.shape[0]) if kernel is not None and len(kernel.shape) == 2 else (),
        passed_over=tuple(passed_over),
        ignored_config_keys=ignored_keys,
    )


def tensor_key(name: str) -> str | None:
    """Returns the name in `architecture.tensor_shapes` of the variable of this name, or None for other variables."""
    if name in _NAMES or name in _TRANSPOSED:
        return _NAMES.get(name) or _TRANSPOSED[name]
    if not _DENSE.fullmatch(name) and not _LAYER_NORM.fullmatch(name):
        return None
    *scope, kind = name.removeprefix("bert/").replace("layer_", "layer/").split("/")
    return ".".join((*scope, _KINDS[kind]))


def _nothing_new(tensor: StoredTensor) -> str | None:
    """Returns why a variable can be passed over, or None if it can't."""
    if _SLOT.fullmatch(tensor.name):
        return "an optimizer slot"
    if tensor.shape == () and _COUNTER.fullmatch(tensor.name):
        return "a counter"
    if tensor.shape == () and _OPTIMIZER_STATE.fullmatch(tensor.name):
        return "optimizer state"
    return None
