"""Which tensors a BERT consists of: their names, shapes and parts.

Names are Hugging Face's of today without the prefix `bert.`; shapes are this package's, kernels `(inputs, outputs)`.
"""

from collections.abc import Collection

from keras_bert_impl.config import BertConfig

Shape = tuple[int, ...]

PARTS: dict[str, tuple[str, ...]] = {
    "BertModel": ("encoder", "pooler"),
    "BertForPreTraining": ("encoder", "pooler", "mlm_head", "nsp_head"),
    "BertForMaskedLM": ("encoder", "mlm_head"),
    "BertForSequenceClassification": ("encoder", "pooler", "classifier"),
    "BertForTokenClassification": ("encoder", "classifier"),
    "BertForQuestionAnswering": ("encoder", "qa_head"),
}
"""Parts of every architecture, by its name in `config.json`."""

HEADS = ("pooler", "mlm_head", "nsp_head", "classifier", "qa_head")
"""Parts that may be absent, and then start fresh."""

PROBLEM_TYPES = ("single_label_classification", "multi_label_classification", "regression")
"""What the outputs of a classifier of texts can mean."""

_PREFIXES = {
    "embeddings.": "encoder",
    "encoder.": "encoder",
    "pooler.": "pooler",
    "cls.predictions.": "mlm_head",
    "cls.seq_relationship.": "nsp_head",
    "classifier.": "classifier",
    "qa_outputs.": "qa_head",
}


def part_of(name: str) -> str:
    """Returns the part that a tensor belongs to; for a name that no BERT has, its first word."""
    return next((part for prefix, part in _PREFIXES.items() if name.startswith(prefix)), name.split(".")[0])


def tensor_shapes(config: BertConfig, parts: Collection[str], num_labels: int = 0) -> dict[str, Shape]:
    """Returns the shape of every tensor of a model.

    Args:
        config: what the encoder is.
        parts: of `"encoder"` and `HEADS`.
        num_labels: outputs of the classifier.
    """
    hidden, wide, vocab = config.hidden_size, config.intermediate_size, config.vocab_size
    of_part: dict[str, dict[str, Shape]] = {
        "encoder": {
            "embeddings.word_embeddings.weight": (vocab, hidden),
            "embeddings.position_embeddings.weight": (config.max_position_embeddings, hidden),
            "embeddings.token_type_embeddings.weight": (config.type_vocab_size, hidden),
            **_layer_norm("embeddings.LayerNorm", hidden),
        },
        "pooler": _dense("pooler.dense", hidden, hidden),
        "mlm_head": {
            **_dense("cls.predictions.transform.dense", hidden, hidden),
            **_layer_norm("cls.predictions.transform.LayerNorm", hidden),
            "cls.predictions.bias": (vocab,),
        },
        "nsp_head": _dense("cls.seq_relationship", hidden, 2),
        "classifier": _dense("classifier", hidden, num_labels),
        "qa_head": _dense("qa_outputs", hidden, 2),
    }
    for i in range(config.num_hidden_layers):
        block = f"encoder.layer.{i}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            of_part["encoder"] |= _dense(f"{block}.attention.{name}", hidden, hidden)
        of_part["encoder"] |= {
            **_layer_norm(f"{block}.attention.output.LayerNorm", hidden),
            **_dense(f"{block}.intermediate.dense", hidden, wide),
            **_dense(f"{block}.output.dense", wide, hidden),
            **_layer_norm(f"{block}.output.LayerNorm", hidden),
        }
    return {name: shape for part in ("encoder", *HEADS) if part in parts for name, shape in of_part[part].items()}


def _dense(name: str, inputs: int, outputs: int) -> dict[str, Shape]:
    return {f"{name}.weight": (inputs, outputs), f"{name}.bias": (outputs,)}


def _layer_norm(name: str, size: int) -> dict[str, Shape]:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}
