"""Forms of a file: their sizes, what they may change, and what stays float."""

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="needs the extra `tflite`")
pytest.importorskip("ai_edge_quantizer", reason="needs the extra `tflite`")

from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertPretrainer
from keras_bert_impl.serving.kinds import kind_of
from keras_bert_impl.serving.tflite.checked_arguments import FORMS
from keras_bert_impl.serving.tflite.conversion import convert
from keras_bert_impl.serving.tflite.operators import operators
from keras_bert_impl.serving.tflite.quantization import quantize
from keras_bert_impl.tasks import TaskSettings

LENGTH = 16
TOKENIZER = toy_tokenizer()


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> bytes:
    """A classifier wide enough that weights outweigh the rest of the file."""
    config = toy_bert_config(
        TOKENIZER,
        hidden_size=192,
        intermediate_size=768,
        num_attention_heads=4,
        max_position_embeddings=LENGTH,
        initializer_range=0.05,
    )
    path = tmp_path_factory.mktemp("wide")
    BertClassifier(config, labels=("no", "yes", "so"), seed=2).save_pretrained(path, tokenizer=TOKENIZER)
    TaskSettings(task="classification").save(path)
    kind = kind_of(path)
    return convert(kind, kind.load(path), length=LENGTH)


def rows(count: int = 20) -> list[dict[str, np.ndarray]]:
    random, made = np.random.default_rng(4), []
    for _ in range(count):
        mask = (np.arange(LENGTH) < random.integers(2, LENGTH + 1)).astype("int32")[None]
        ids = random.integers(5, TOKENIZER.vocab_size, (1, LENGTH)).astype("int32") * mask
        made.append({"token_ids": ids, "segment_ids": np.zeros_like(ids), "padding_mask": mask})
    return made


def logits(file: bytes) -> np.ndarray:
    interpreter = Interpreter(model_content=file)
    interpreter.allocate_tensors()
    run = interpreter.get_signature_runner("token_ids")
    return np.concatenate([run(**row)["logits"] for row in rows()])


def types_of_outputs(file: bytes, operator: str) -> set[int]:
    """Types of what operators of a name give."""
    model = schema.ModelT.InitFromPackedBuf(file, 0)
    number = getattr(schema.BuiltinOperator, operator)
    [graph] = model.subgraphs
    of_name = [one for one in graph.operators if model.operatorCodes[one.opcodeIndex].builtinCode == number]
    return {graph.tensors[one.outputs[0]].type for one in of_name}


def test_float32_is_the_file_as_it_is(file):
    assert quantize(file, "none") is file


@pytest.mark.parametrize(
    ("form", "size", "off"),
    [("float16", 0.53, 1e-3), ("dynamic", 0.31, 0.05), ("weights-int8", 0.31, 0.03), ("weights-int4", 0.19, 0.4)],
)
def test_weights_become_smaller_and_scores_hardly_others(form, size, off, file):
    made = quantize(file, form)
    assert len(made) / len(file) < size
    usual = logits(file)
    np.testing.assert_allclose(logits(made), usual, atol=off * np.abs(usual).max())
    assert not operators(made).custom


def test_int8_keeps_in_float_what_loses_most_unless_told_otherwise(file):
    usual = logits(file)
    made = quantize(file, "int8", calibration=rows())
    everything = quantize(file, "int8", calibration=rows(), keep_float=(), per_tensor=True)
    assert max(len(made), len(everything)) / len(file) < 0.31
    assert np.abs(logits(made) - usual).mean() < 0.05 * np.abs(usual).max()
    whole, floating = schema.TensorType.INT8, schema.TensorType.FLOAT32
    # Those of the heads are float: they are the file's outputs.
    assert types_of_outputs(made, "FULLY_CONNECTED") == {whole, floating}
    for operator in ("SOFTMAX", "RSQRT", "MEAN"):
        assert types_of_outputs(made, operator) == {floating}
        assert whole in types_of_outputs(everything, operator)


def test_the_same_texts_give_the_same_file(file):
    assert quantize(file, "int8", calibration=rows(5)) == quantize(file, "int8", calibration=rows(5))


def test_a_table_that_a_head_shares_is_stored_once_in_every_form(tmp_path):
    tokenizer = toy_tokenizer([f"word{i}" for i in range(3000)])
    config = toy_bert_config(tokenizer, hidden_size=64, max_position_embeddings=LENGTH)
    BertPretrainer(config, seed=2).save_pretrained(tmp_path, tokenizer=tokenizer)
    kind = kind_of(tmp_path)
    float32, table = convert(kind, kind.load(tmp_path), length=LENGTH), tokenizer.vocab_size * 64
    of_masks = rows(5)
    for row in of_masks:
        row["token_ids"][0, 1] = TOKENIZER.mask_token_id
    for form, width in (("none", 4), ("float16", 2), ("dynamic", 1), ("weights-int8", 1), ("int8", 1)):
        assert len(quantize(float32, form, calibration=of_masks)) < 1.7 * table * width + 60_000, form


def test_what_it_cannot_do_is_refused(file):
    with pytest.raises(InputError, match=f"`form` must be one of {', '.join(FORMS)}. Received: form='int16'"):
        quantize(file, "int16")
    with pytest.raises(InputError, match=r"`calibration` must have one or more rows for form='int8'\. Received: none"):
        quantize(file, "int8")
    with pytest.raises(
        InputError, match=r"`keep_float` must be names of operators\. Received: 'SOFTMX'; did you mean S"
    ):
        quantize(file, "int8", calibration=rows(2), keep_float=("SOFTMX",))
