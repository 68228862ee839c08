"""Object-based TensorFlow checkpoints, as the Model Garden (`official.nlp`) writes and releases them.

Which variable is which follows from the graph of objects that such a checkpoint carries, not from the keys: a
variable has the key of the shortest way to it, which depends on what else was saved beside it.
"""

import dataclasses
from collections.abc import Iterator
from math import prod
from pathlib import Path

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor, architecture_of, plain_labels
from keras_bert_impl.checkpoints.google_config import CONFIG_FILE, read_google_config
from keras_bert_impl.checkpoints.object_graph import ObjectGraph
from keras_bert_impl.checkpoints.tensorflow_file import OBJECT_GRAPH, checked_prefix, object_graph, stored_tensors
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

# What an encoder calls its parts. Early releases have them only as layers in their order.
_EMBEDDINGS = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer", "_embedding_norm_layer")
_BLOCKS = "_transformer_layers"
_POOLER = "_pooler_layer"
_LAYER = "layer_with_weights-{}"

# Names in `architecture.tensor_shapes`, and the ways from a block to the layer; the second is that of early releases.
_DENSE_IN_BLOCK = {
    "attention.self.query": ("_attention_layer/_query_dense",),
    "attention.self.key": ("_attention_layer/_key_dense",),
    "attention.self.value": ("_attention_layer/_value_dense",),
    "attention.output.dense": ("_attention_layer/_output_dense", "_attention_output_dense"),
    "intermediate.dense": ("_intermediate_dense",),
    "output.dense": ("_output_dense",),
}
_NORM_IN_BLOCK = {"attention.output.LayerNorm": "_attention_layer_norm", "output.LayerNorm": "_output_layer_norm"}

_COUNTERS = ("save_counter", "global_step", "step")
_OPTIMIZER = "optimizer"
_ITERATIONS = {"iter", "_iterations"}


def open_model_garden(path: Path) -> Checkpoint:
    """Opens a checkpoint of the Model Garden; reads its configuration and the names and shapes of its tensors.

    Known are checkpoints of `networks.BertEncoder` and `networks.BertEncoderV2`, alone or in `models.BertPretrainer`,
    `BertPretrainerV2`, `BertClassifier`, `BertTokenClassifier` or `BertSpanLabeler`, under any name, with or without
    the state of an optimizer. A head that pools by itself, as `layers.ClassificationHead` can, brings its pooler; the
    encoder's own, which gets no gradient beside such a head, is passed over.

    Args:
        path: its directory, or its prefix (`…/bert_model.ckpt`), with `bert_config.json` in the same directory.

    Raises:
        InputError: if there is no such checkpoint, one of its files is absent or damaged, or its objects are none
            of these.
    """
    prefix = checked_prefix(path)
    graph = ObjectGraph.parse(object_graph(prefix))
    encoder = _encoder(prefix, graph)
    config, ignored_keys = read_google_config(prefix.parent)
    heads, stated = _heads(graph)
    keys = {graph.variables[node]: key for key, node in {**_encoder_variables(graph, encoder), **heads}.items()}
    reasons = _nothing_new(graph)
    if "pooler.dense.weight" in heads and encoder.pooler is not None:
        for node in _dense(graph, "", encoder.pooler).values():
            reasons.setdefault(graph.variables[node], "the head has a pooler of its own")
    stored = stored_tensors(prefix)
    del stored[OBJECT_GRAPH]
    tensors: dict[str, StoredTensor] = {}
    passed_over = []
    for name, tensor in sorted(stored.items()):
        if name in keys:
            tensors[keys[name]] = _heads_joined(keys[name], tensor, config, prefix)
        elif name in reasons:
            passed_over.append((name, reasons[name]))
        elif tensor.dtype == "string":
            passed_over.append((name, "a description"))
        else:
            # What is not known keeps its name, so that a load stops at it.
            tensors[name] = tensor
    classifier = tensors.get("classifier.weight")
    return Checkpoint(
        source=str(prefix),
        format="model_garden",
        config=config,
        tensors=tensors,
        architecture=stated or architecture_of(tensors),
        labels=plain_labels(classifier.shape[1]) if classifier is not None and len(classifier.shape) == 2 else (),
        passed_over=tuple(passed_over),
        ignored_config_keys=ignored_keys,
    )


@dataclasses.dataclass(frozen=True)
class _Encoder:
    """Nodes of an encoder's layers."""

    tables: tuple[int, int, int]  # of tokens, positions, segments
    norm: int
    blocks: tuple[int, ...]
    pooler: int | None


def _encoder(prefix: Path, graph: ObjectGraph) -> _Encoder:
    """Returns the only encoder of a checkpoint."""
    found = [encoder for node in graph if (encoder := _named_parts(graph, node) or _layers_in_order(graph, node))]
    if len(found) != 1:
        raise InputError(
            f"`path` must hold one BERT encoder of the Model Garden: an object with {', '.join(_EMBEDDINGS)} and "
            f"{_BLOCKS}, or with its layers in that order as {_LAYER.format(0)}, {_LAYER.format(1)}, …. Received: "
            f"{str(prefix)!r}, which has {len(found)} among {', '.join(sorted(graph.children[graph.ROOT]))}"
        )
    return found[0]


def _named_parts(graph: ObjectGraph, node: int) -> _Encoder | None:
    parts = [graph.find(node, name) for name in _EMBEDDINGS]
    blocks = graph.find(node, _BLOCKS)
    if blocks is None or None in parts:
        return None
    return _Encoder(tuple(parts[:3]), parts[3], graph.listed(blocks), graph.find(node, _POOLER))  # type: ignore[arg-type]


def _layers_in_order(graph: ObjectGraph, node: int) -> _Encoder | None:
    layers = tuple(_numbered_layers(graph, node))
    holds = [graph.children[layer].keys() for layer in layers]
    is_block = ["_attention_layer" in names for names in holds]
    end = 4 + is_block.count(True)
    # Blocks stand together, and nothing but a pooler follows; ALBERT, for one, has another layer before its block.
    if (
        not any(is_block)
        or not all(is_block[4:end])
        or not all("embeddings" in names for names in holds[:3])
        or "gamma" not in holds[3]
        or any("kernel" not in names for names in holds[end:])
        or len(layers) > end + 1
    ):
        return None
    pooler = layers[end] if end < len(layers) else None
    return _Encoder((layers[0], layers[1], layers[2]), layers[3], layers[4:end], pooler)


def _numbered_layers(graph: ObjectGraph, node: int) -> Iterator[int]:
    number = 0
    while (layer := graph.find(node, _LAYER.format(number))) is not None:
        yield layer
        number += 1


def _encoder_variables(graph: ObjectGraph, encoder: _Encoder) -> dict[str, int]:
    """Returns the variables of an encoder by the names of `architecture.tensor_shapes`."""
    found: dict[str, int] = {}
    names = ("word_embeddings", "position_embeddings", "token_type_embeddings")
    for name, table in zip(names, encoder.tables, strict=True):
        found |= _variables(graph, table, {"embeddings": f"embeddings.{name}.weight"})
    found |= _layer_norm(graph, "embeddings.LayerNorm", encoder.norm)
    for i, block in enumerate(encoder.blocks):
        for name, ways in _DENSE_IN_BLOCK.items():
            layer = next((layer for way in ways if (layer := graph.find(block, way)) is not None), None)
            found |= _dense(graph, f"encoder.layer.{i}.{name}", layer)
        for name, way in _NORM_IN_BLOCK.items():
            found |= _layer_norm(graph, f"encoder.layer.{i}.{name}", graph.find(block, way))
    return found | _dense(graph, "pooler.dense", encoder.pooler)


def _heads(graph: ObjectGraph) -> tuple[dict[str, int], str | None]:
    """Returns the variables of the heads, and the architecture where a head is one that doesn't pool.

    The encoder's pooler, which is always there, would speak for another.
    """
    found: dict[str, int] = {}
    stated = None
    for node in graph:
        holds = graph.children[node]
        if {"dense", "layer_norm", "bias"} <= holds.keys():
            found |= _dense(graph, "cls.predictions.transform.dense", holds["dense"])
            found |= _layer_norm(graph, "cls.predictions.transform.LayerNorm", holds["layer_norm"])
            found["cls.predictions.bias"] = holds["bias"]
        if "masked_lm" in holds:
            found |= _dense(graph, "cls.seq_relationship", graph.find(node, "classification/" + _LAYER.format(0)))
        for head in graph.listed(holds.get("classification_heads")):
            # Other heads ask other questions; their variables say what they are called.
            if graph.is_called(head, "next_sentence"):
                found |= _dense(graph, "cls.seq_relationship", graph.find(head, "out_proj"))
                found |= _dense(graph, "pooler.dense", graph.find(head, "dense"))
        if span_head := _dense(graph, "qa_outputs", graph.find(node, "span_labeling/" + _LAYER.format(0))):
            found |= span_head
            stated = "BertForQuestionAnswering"
        if graph.find(node, "classifier/out_proj") is not None:
            found |= _dense(graph, "classifier", graph.find(node, "classifier/out_proj"))
            found |= _dense(graph, "pooler.dense", graph.find(node, "classifier/dense"))
        elif token_classifier := _dense(graph, "classifier", holds.get("classifier")):
            found |= token_classifier
            stated = "BertForTokenClassification"
    # What `checkpoint_items` of a pretrainer or classifier adds to a checkpoint.
    for name, node in graph.children[graph.ROOT].items():
        if name.endswith(".pooler_dense"):
            found = {**_dense(graph, "pooler.dense", node), **found}
    return found, stated


def _dense(graph: ObjectGraph, name: str, layer: int | None) -> dict[str, int]:
    return _variables(graph, layer, {"kernel": f"{name}.weight", "bias": f"{name}.bias"})


def _layer_norm(graph: ObjectGraph, name: str, layer: int | None) -> dict[str, int]:
    return _variables(graph, layer, {"gamma": f"{name}.weight", "beta": f"{name}.bias"})


def _variables(graph: ObjectGraph, layer: int | None, names: dict[str, str]) -> dict[str, int]:
    holds = {} if layer is None else graph.children[layer]
    return {key: holds[name] for name, key in names.items() if name in holds and holds[name] in graph.variables}


def _nothing_new(graph: ObjectGraph) -> dict[str, str]:
    """Returns why variables that are none of the model's can be passed over, by their names."""
    reasons = {}
    reached = graph.reachable(
        without=lambda name, node: name == _OPTIMIZER or bool(_ITERATIONS & graph.children[node].keys())
    )
    for node, name in graph.variables.items():
        if node not in reached:
            reasons[name] = "an optimizer slot" if ".OPTIMIZER_SLOT/" in name else "optimizer state"
    for name in _COUNTERS:
        counter = graph.children[graph.ROOT].get(name)
        if counter in graph.variables:
            reasons[graph.variables[counter]] = "a counter"
    return reasons


def _heads_joined(key: str, tensor: StoredTensor, config: BertConfig, prefix: Path) -> StoredTensor:
    """Returns a tensor of the attention with its heads side by side in the shape, others as they are."""
    shape = tensor.shape
    if ".attention.self." in key and len(shape) == (3 if key.endswith(".weight") else 2):
        joined, heads = (*shape[:-2], prod(shape[-2:])), shape[-2]
    elif key.endswith(".attention.output.dense.weight") and len(shape) == 3:
        joined, heads = (prod(shape[:2]), shape[2]), shape[0]
    else:
        return tensor
    if heads != config.num_attention_heads:
        raise InputError(
            f"`path` must have the checkpoint's number of heads in its {CONFIG_FILE}. Received: {str(prefix)!r}, "
            f"num_attention_heads={config.num_attention_heads}, where {tensor.name} has {heads}"
        )
    return dataclasses.replace(tensor, shape=joined)
