"""`convert`: nothing is lost, changed or renamed without being said."""

import json

import keras
import numpy as np
import pytest
import safetensors.numpy
from harness import arrays, small_batch, small_config

from keras_bert_impl.convert import Conversion, Surgery, read_words
from keras_bert_impl.convert import convert as carry_out
from keras_bert_impl.models import BertClassifier, BertEncoder, BertMaskedLM, BertPretrainer
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"t{i}" for i in range(32))]


@pytest.fixture
def source(tmp_path):
    model = BertPretrainer(small_config(hidden_act="gelu"), seed=6)
    model.save_pretrained(tmp_path / "source", tokenizer=WordPieceTokenizer(VOCABULARY, lowercase=False))
    return tmp_path / "source"


def convert(source, target, to, say=lambda line: None, **options):
    return carry_out(Conversion(source=source, target=target, to=to, **options), say)


def tensors_of(folder):
    return safetensors.numpy.load_file(folder / "model.safetensors")


def change_tensors(folder, change):
    tensors = tensors_of(folder)
    change(tensors)
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def test_a_model_directory_comes_back_bit_for_bit(source, tmp_path):
    said = []
    result = convert(source, tmp_path / "target", "huggingface", say=said.append)
    before, after = tensors_of(source), tensors_of(tmp_path / "target")
    assert before.keys() == after.keys()
    for name in before:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    assert (tmp_path / "target" / "config.json").read_bytes() == (source / "config.json").read_bytes()
    assert (tmp_path / "target" / "vocab.txt").read_bytes() == (source / "vocab.txt").read_bytes()
    assert not WordPieceTokenizer.from_pretrained(tmp_path / "target").lowercase
    assert result["architecture"] == "BertForPreTraining" and result["renamed"] == []
    assert said[-1].startswith("Wrote BertForPreTraining with")


def test_old_names_half_precision_and_buffers_are_listed(source, tmp_path):
    def age(tensors):
        tensors["bert.embeddings.LayerNorm.gamma"] = tensors.pop("bert.embeddings.LayerNorm.weight")
        tensors["bert.embeddings.position_ids"] = np.arange(16)[None]
        tensors["bert.pooler.dense.bias"] = tensors["bert.pooler.dense.bias"].astype("float16")

    change_tensors(source, age)
    said = []
    result = convert(source, tmp_path / "target", "huggingface", say=said.append)
    assert result["renamed"] == [("bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight")]
    assert result["report"]["widened"] == (("bert.pooler.dense.bias", "float16"),)
    assert result["report"]["passed_over"] == (("bert.embeddings.position_ids", "a buffer"),)
    report = "\n".join(said)
    for part in ("widened from float16: bert.pooler.dense.bias", "passed over, a buffer: ", "LayerNorm.gamma -> bert"):
        assert part in report
    json.dumps(result)


def test_a_checkpoint_that_holds_more_than_it_says_loses_nothing(source, tmp_path):
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    assert convert(source, tmp_path / "target", "huggingface")["architecture"] == "BertForPreTraining"


def test_an_unknown_tensor_stops_unless_it_is_named(source, tmp_path):
    change_tensors(source, lambda tensors: tensors.update({"extra.weight": np.ones(3, "float32")}))
    with pytest.raises(ValueError, match=r"which also has extra.weight; `allow_unused=\('extra',\)` leaves them"):
        convert(source, tmp_path / "target", "huggingface")
    assert not (tmp_path / "target").exists()
    result = convert(source, tmp_path / "target", "huggingface", allow_unused=["extra"])
    assert result["report"]["unused"] == ("extra.weight",)


def test_another_architecture_leaves_the_heads_that_it_names(source, tmp_path):
    result = convert(source, tmp_path / "target", "huggingface", architecture="BertModel")
    assert {name.split(".")[0] for name in result["report"]["unused"]} == {"cls"}
    assert ("bert.pooler.dense.bias", "pooler.dense.bias") in result["renamed"]
    assert BertEncoder.from_pretrained(tmp_path / "target").load_report.complete


def test_an_encoder_without_pooler_stays_one(source, tmp_path):
    BertMaskedLM.from_pretrained(source).encoder.save_pretrained(tmp_path / "headless")
    convert(tmp_path / "headless", tmp_path / "target", "huggingface")
    assert not any("pooler" in name for name in tensors_of(tmp_path / "target"))


def test_a_keras_file_opens_with_keras_alone(source, tmp_path):
    convert(source, tmp_path / "model.keras", "keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    assert type(restored) is BertPretrainer
    expected = arrays(BertPretrainer.from_pretrained(source)(small_batch()))
    for name, output in arrays(restored(small_batch())).items():
        np.testing.assert_array_equal(output, expected[name])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.keras", "source"]


def test_surgery_on_the_way(source, tmp_path):
    said = []
    convert(
        source,
        tmp_path / "target",
        "huggingface",
        surgery=Surgery(add_tokens=["stent"], max_position_embeddings=30, blocks=1),
        say=said.append,
    )
    model = BertPretrainer.from_pretrained(tmp_path / "target")
    assert (model.config.vocab_size, model.config.max_position_embeddings, model.config.num_hidden_layers) == (
        38,
        30,
        1,
    )
    assert WordPieceTokenizer.from_pretrained(tmp_path / "target").tokenize("stent") == ["stent"]
    assert "Positions: 16 -> 30 (rows by the rule 'repeat')." in said
    assert "Transformer blocks: 2 -> 1." in said


def test_a_classifier_keeps_its_labels(tmp_path):
    labels = ["bad", "good", "so so"]
    BertClassifier(small_config(), labels=labels, problem_type="multi_label_classification").save_pretrained(
        tmp_path / "a"
    )
    said = []
    convert(tmp_path / "a", tmp_path / "b", "huggingface", say=said.append)
    model = BertClassifier.from_pretrained(tmp_path / "b")
    assert (model.labels, model.problem_type) == (tuple(labels), "multi_label_classification")
    assert "There is no vocabulary beside the weights, so none is written; `vocab` names one." in said


@pytest.mark.parametrize(
    "arguments,message",
    [
        ({"to": "onnx"}, r"`to` must be one of huggingface, keras_hub, keras. Received: to='onnx'"),
        ({"to": "keras"}, r"`target` must be a file that ends in .keras. Received: '.*target'"),
        ({"labels": ["a", "b"]}, r"`BertPretrainer` has no argument 'labels'"),
        ({"surgery": Surgery(blocks=9)}, r"how many of the first 2 to keep. Received: blocks=9"),
        ({"architecture": "Bart"}, r"`architecture` must be one of BertModel"),
        ({"architecture": "BertForQuestionAnswering"}, r"lacks qa_outputs.weight"),
        ({"vocab": "nowhere.txt"}, r"`vocab` must be a file that can be read. Received: 'nowhere.txt'"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(source, tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        convert(**{"source": source, "target": tmp_path / "target", "to": "huggingface", **arguments})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source"]


def test_a_directory_with_anything_else_in_it_is_not_replaced(source, tmp_path):
    def refused(target, to, message):
        before = sorted(path.name for path in tmp_path.rglob("*"))
        with pytest.raises(ValueError, match=message):
            convert(source, target, to, architecture="BertModel")
        assert sorted(path.name for path in tmp_path.rglob("*")) == before

    other = tmp_path / "web"
    other.mkdir()
    (other / "config.json").write_text('{"name": "my web app"}')
    for to in ("huggingface", "keras_hub"):
        refused(other, to, r"`target` must be new, empty or a .*which has other content$")
    (other / "thesis.txt").write_text("years")
    for to in ("huggingface", "keras_hub"):
        refused(other, to, r"`target` must be new, empty or a .*which has other content \(thesis.txt\)$")
    source.rename(tmp_path / "outer")
    outer = tmp_path / "outer"
    convert(outer, outer / "inner", "huggingface")
    source = outer / "inner"
    refused(outer, "huggingface", r"which has other content \(inner\)$")
    refused(source, "huggingface", r"`target` must be another place than the source")
    refused(tmp_path / "model.keras", "huggingface", r"`target` must be a directory, not a .keras file")


def test_other_files_are_named_and_a_replaced_model_too(source, tmp_path):
    (source / "modules.json").write_text("[]")
    (source / "1_Pooling").mkdir()
    convert(source, tmp_path / "target", "huggingface")
    said = []
    result = convert(source, tmp_path / "target", "huggingface", say=said.append)
    assert result["left_files"] == ["1_Pooling", "modules.json"]
    assert "Not carried over, since they are no part of a BERT: 1_Pooling, modules.json." in said
    assert f"Replacing what {tmp_path / 'target'} holds." in said
    # Of a run directory the model is carried over, and what lies beside the model is no part of it.
    (tmp_path / "run").mkdir()
    source.rename(tmp_path / "run" / "model")
    (tmp_path / "run" / "metrics.json").write_text("{}")
    result = convert(tmp_path / "run", tmp_path / "from_run", "huggingface")
    assert result["left_files"] == ["1_Pooling", "modules.json"]


def test_a_part_can_start_fresh(source, tmp_path):
    said = []
    with pytest.warns(UserWarning, match="nsp_head starts with fresh weights"):
        convert(source, tmp_path / "target", "huggingface", fresh=["nsp_head"], say=said.append)
    assert "The nsp_head starts with fresh weights." in said
    before, after = tensors_of(source), tensors_of(tmp_path / "target")
    assert [name for name in before if not np.array_equal(before[name], after[name])] == ["cls.seq_relationship.weight"]


def test_words_cannot_be_added_without_a_vocabulary(source, tmp_path):
    (source / "vocab.txt").unlink()
    with pytest.raises(ValueError, match=r"`add_tokens` needs the vocabulary of the model. Received: .*which has none"):
        convert(source, tmp_path / "target", "huggingface", surgery=Surgery(add_tokens=["stent"]))


def test_a_vocabulary_larger_than_the_model_is_refused(source, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY, "one", "more"]) + "\n")
    with pytest.raises(ValueError, match=r"not have more tokens than the model has rows. Received: 39 tokens, 37 rows"):
        convert(source, tmp_path / "target", "huggingface", vocab=tmp_path / "vocab.txt")


def test_a_fast_tokenizers_file_alone_is_a_vocabulary_too(source, tmp_path):
    (source / "vocab.txt").unlink()
    fast = {"model": {"type": "WordPiece", "vocab": {token: i for i, token in enumerate(VOCABULARY)}}}
    (source / "tokenizer.json").write_text(json.dumps(fast))
    assert convert(source, tmp_path / "target", "huggingface")["tokens"] == 37
    assert (tmp_path / "target" / "vocab.txt").read_text().split() == VOCABULARY


def test_words_are_read_line_by_line(tmp_path):
    (tmp_path / "words.txt").write_bytes("\ufeffstent\r\n\r\nsténosis \n".encode())
    assert read_words(tmp_path / "words.txt") == ["stent", "sténosis"]
    (tmp_path / "words.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="`add_tokens_from` must be a UTF-8 text file"):
        read_words(tmp_path / "words.txt")


LEFT_OF_THE_CONFIG = {"_name_or_path", "gradient_checkpointing", "transformers_version", "use_cache", "dtype"}
SAID_IN_FULL = {"is_decoder", "add_cross_attention", "tie_word_embeddings", "position_embedding_type"}


@pytest.mark.shared
@pytest.mark.parametrize(
    "name",
    [
        "models/all-MiniLM-L6-v2",
        "models/bert-tiny-splade-mlm",
        "data/reference_runs/adamw_gelu_erf",
        "data/reference_runs/bert_adam_gelu_tanh",
    ],
)
def test_real_models_come_back_bit_for_bit(shared, name, tmp_path):
    source, target = shared / name, tmp_path / "target"
    result = convert(source, target, "huggingface")
    renamed, dropped = dict(result["renamed"]), {name for name, _ in result["report"]["passed_over"]}
    before, after = tensors_of(source), tensors_of(target)
    assert {renamed.get(name, name) for name in before.keys() - dropped} == after.keys()
    for name in before.keys() - dropped:
        assert before[name].dtype == after[renamed.get(name, name)].dtype
        np.testing.assert_array_equal(before[name], after[renamed.get(name, name)], err_msg=name)
    old, new = (json.loads((folder / "config.json").read_text()) for folder in (source, target))
    differing = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    assert differing <= LEFT_OF_THE_CONFIG | SAID_IN_FULL
