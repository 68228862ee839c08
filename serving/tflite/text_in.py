"""A second signature for a TFLite file: texts in, through tensorflow-text's operators."""

from keras_bert_impl.errors import InputError

from ..kinds import CLASSIFICATION, EMBEDDING, Kind
from ..loaded_model import LoadedModel
from .graph.graph import Graph
from .graph.joining import chain, join
from .signature_names import SIGNATURE, TEXT_SIGNATURE
from .text_graph.rows import rows


def check_text_in(kind: Kind) -> None:
    """Raises `InputError` if answers of this kind need more of a text than its ids."""
    if kind not in (CLASSIFICATION, EMBEDDING):
        raise InputError(
            "`model` must be one that labels texts or gives their vectors for text in; others need words, places in "
            f"the text, or tokens that are kept whole. Received: a model for {kind.name}"
        )


def with_text_in(file: bytes, kind: Kind, loaded: LoadedModel, *, length: int | None) -> bytes:
    """Returns a file that takes ids, as before, and texts.

    The weights of both signatures are the same ones, stored once; beside them come tables for the characters and the
    vocabulary, about three megabytes. For this signature an app must register `text_graph.pieces.CUSTOM_OPERATORS`,
    which are in `tensorflow_text.tflite_registrar.SELECT_TFTEXT_OPS`; the other one needs none of them.

    Texts become the ids that the tokenizer gives with `keep_special_tokens=False`, but for what
    `text_graph.pieces.pieces` names.

    Args:
        file: of `conversion.convert` or `quantization.quantize`.
        kind: what the model answers.
        loaded: the model.
        length: columns of the file's inputs.

    Returns:
        The file. Its signature `text` gives the outputs of the other one; the row, `token_ids`, `segment_ids` and
        `padding_mask`; `num_tokens`, int32 `(1,)`; and `truncated`, bool `(1,)`, whether the end of a text was left
        out.

    Raises:
        InputError: if answers of this kind need more of a text than its ids, the length is free, or the vocabulary
            cannot be used so.
    """
    check_text_in(kind)
    if length is None:
        raise InputError("`length` must be fixed for text in. Received: length='dynamic'")
    graph = Graph()
    texts = [graph.input(name, (1,), "string") for name in loaded.text_inputs]
    max_length = min(loaded.max_length, length)
    made = rows(graph, loaded.tokenizer, texts, max_length=max_length, length=length)
    return join({SIGNATURE: file, TEXT_SIGNATURE: chain(graph.file(TEXT_SIGNATURE, made, TEXT_SIGNATURE), file)})
