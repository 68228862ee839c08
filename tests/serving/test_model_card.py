"""The card of an export says what is known of the model, and what is not."""

import json

import pytest
from json_faults import faults_of

from keras_bert_impl.serving.measurements import Measurements, measurements
from keras_bert_impl.serving.model_card import model_card

EXAMPLE = {"request": {"instances": ["ein Text"]}, "answer": {"predictions": [{"label": "größer"}]}}
DESCRIPTION = {
    "kind": "classification",
    "architecture": "BertClassifier",
    "parameters": 1234567,
    "config": {"num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4},
    "task": {"task": "classification", "pair": True, "max_length": 64, "null_threshold": 0.0},
    "labels": ["größer", "a`b"],
    "tokenizer": {
        "lowercase": True,
        "strip_accents": None,
        "max_chars_per_word": 100,
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    },
    "weights_sha256": "0123abcd",
    "max_length": 64,
    "truncation": "a text of more than 62 pieces keeps its first ones, and `truncated` is true",
    "padding": "positions with id 0 are padding",
    "signatures": {
        "serving_default": {
            "inputs": {"text": {"dtype": "string", "shape": [-1]}},
            "outputs": {"logits": {"dtype": "float32", "shape": [-1, 2]}},
            "example": EXAMPLE,
        },
        "token_ids": {
            "inputs": {"token_ids": {"dtype": "int32", "shape": [-1, -1]}},
            "outputs": {},
            "example": {"request": {"inputs": [[1] * 600]}, "answer_in_part": {"outputs": {}}},
        },
    },
}
PROOF = {"tensorflow": "2.20.0", "requests": 34, "texts": 14, "largest_difference": 3.21e-7, "bound": 1e-5}
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "##ing", "über", "天", "1", "!"]

FINETUNED = {
    "task": "classification",
    "metric": "matthews",
    "metrics": {"accuracy": 0.75, "matthews": 0.4321987, "truncated": 0, "per_class": {"a": {"f1": 1.0}}},
    "best_epoch": 2.5,
    "train_examples": 4000,
    "dev_examples": 200,
    "dev_from_train": True,
    "warnings": ["One label is rare."],
    "made_from": {"settings": {"model": "/home/ada/models/bert-tiny", "train": ["/home/ada/data/cola.tsv"]}},
}
PRETRAINED = {
    "steps": 3000,
    "best_step": 2500,
    "held_out": {"128": {"mlm_loss": 5.5866, "examples": 1552}, "512": {"mlm_loss": 5.6, "examples": 3}},
}


def card(description=DESCRIPTION, measured=None, vocabulary=VOCABULARY):
    return model_card(description, PROOF, vocabulary=vocabulary, measured=measured, warm_up_requests=8)


def test_it_says_what_the_model_is():
    text = card()
    assert text.startswith(
        "# BERT for classification\n\n`BertClassifier`: 2 blocks of 128 units and 4 heads, 1,234,567"
    )
    assert "2 labels: `größer`, `` a`b ``." in text
    assert "Settings: `max_length` 64, `pair` true." in text
    assert "SHA-256 `0123abcd`" in text
    assert "- TensorFlow 2.20.0" in text and "- keras-bert-impl 0." in text and "- Python 3." in text


def test_many_labels_are_counted():
    text = card({**DESCRIPTION, "labels": [f"label_{i}" for i in range(50)]})
    assert "50 labels: `label_0`," in text and "`label_29` and 20 more, in `signature.json`." in text
    assert "1 label: `a`." in card({**DESCRIPTION, "labels": ["a"]})


def test_a_model_without_task_and_labels_has_no_words_about_them():
    text = card({name: value for name, value in DESCRIPTION.items() if name not in ("task", "labels")})
    assert "label" not in text.split("## How good")[0] and "Settings" not in text


def test_it_says_the_limits():
    text = card()
    assert "- Rows of at most 64 tokens, with `[CLS]` and `[SEP]`: a text of more than 62 pieces keeps" in text
    assert "texts are lower-cased, and accents are stripped." in text
    assert "Its 10 tokens say which languages it can read. By script: Latin 75%, Chinese characters 25%." in text
    assert "of more than 100 characters, is read as `[UNK]`" in text
    assert "tensorflow-text" not in text
    cased = {**DESCRIPTION["tokenizer"], "lowercase": False}
    assert "told apart, and accents are kept." in card({**DESCRIPTION, "tokenizer": cased})
    assert "By script: no letters." in card(vocabulary=["[UNK]", "1"])
    assert "these operations of tensorflow-text: TFText>One." in card({**DESCRIPTION, "other_ops": ["TFText>One"]})


def test_it_has_the_signatures_with_an_example_each():
    text = card()
    assert "| input | `text` | string | (any,) |\n| output | `logits` | float32 | (any, 2) |" in text
    blocks = [json.loads(block.split("```")[0]) for block in text.split("```json\n")[1:]]
    assert blocks == [EXAMPLE["request"], EXAMPLE["answer"]]
    assert text.count("An example is in `signature.json`.") == 1
    in_part = {**DESCRIPTION["signatures"]["token_ids"], "example": {"request": {}, "answer_in_part": {"a": 1}}}
    text = card({**DESCRIPTION, "signatures": {"token_ids": in_part}})
    assert 'A part of the answer:\n\n```json\n{"a": 1}\n```' in text


def test_it_says_what_was_checked():
    text = " ".join(card().split())
    assert "TensorFlow 2.20.0 alone answered 34 requests about 14 texts as the Keras model does, to 3.2e-07 of" in text
    assert "8 of these requests lie beside it" in text


def test_it_says_when_nothing_is_known_of_its_quality(tmp_path):
    assert measurements(tmp_path) is None
    assert "Nothing is known here" in card()
    assert "Nothing is known" not in card(measured=Measurements("metrics.json", ("Made.",), {"On a": {"b": 1}}))
    assert "No figures were measured." in card(measured=Measurements("metrics.json", ("Made.",), {}))


def test_figures_of_a_fine_tuning_are_told_without_paths(tmp_path):
    (tmp_path / "finetuning").mkdir()
    (tmp_path / "finetuning" / "metrics.json").write_text(json.dumps(FINETUNED))
    measured = measurements(tmp_path)
    assert measured.made_from[0] == (
        "Fine-tuned for classification from `bert-tiny` on 4,000 examples of `cola.tsv`, up to epoch 2.5."
    )
    text = card(measured=measured)
    assert "/home" not in text
    assert "On 200 dev examples, held out of the training files (`finetuning/metrics.json`):" in text
    assert "| accuracy | 0.75 |\n| matthews | 0.4322 |\n| truncated | 0 |" in text
    assert "chosen by `matthews` on these dev examples" in text
    assert "Warning: One label is rare." in text


def test_without_dev_examples_there_are_no_figures(tmp_path):
    (tmp_path / "finetuning").mkdir()
    metrics = {**FINETUNED, "dev_examples": 0, "metrics": {}}
    (tmp_path / "finetuning" / "metrics.json").write_text(json.dumps(metrics))
    measured = measurements(tmp_path)
    assert (len(measured.made_from), measured.tables) == (1, {})


def test_figures_of_a_pretraining_are_those_of_its_run(tmp_path):
    (tmp_path / "metrics.json").write_text(json.dumps(PRETRAINED))
    (tmp_path / "model").mkdir()
    measured = measurements(tmp_path / "model")
    assert measured.made_from == ("Pretrained for 2,500 steps.",)
    assert measured.tables["On held-out text, rows of up to 128 tokens"] == {"mlm_loss": 5.5866, "examples": 1552}
    # Beside a directory of another name the file is about something else.
    assert measurements(tmp_path / "other") is None


@pytest.mark.parametrize(("metrics", "place"), [(FINETUNED, "finetuning"), (PRETRAINED, "")])
def test_a_damaged_file_of_figures_is_told_and_stops_nothing(tmp_path, metrics, place):
    model = tmp_path / "model"
    (model / "finetuning").mkdir(parents=True)
    path = (model / place if place else tmp_path) / "metrics.json"
    unread = 0
    for text in faults_of(metrics):
        path.write_text(text)
        measured = measurements(model)
        assert b"## How good it is" in card(measured=measured).encode()
        unread += "is not as a training writes it" in "".join(measured.warnings)
    assert unread > 20
