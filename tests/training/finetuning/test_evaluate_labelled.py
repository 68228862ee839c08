"""Measuring a fine-tuned model on labelled files: the numbers of fine-tuning, and every row predicted."""

import json

import pytest
from task_models import toy_bert_config, toy_tokenizer

from keras_bert_impl.cli import main
from keras_bert_impl.errors import InputError
from keras_bert_impl.models import BertClassifier, BertEncoder
from keras_bert_impl.tasks import TaskSettings
from keras_bert_impl.training.configs import EvaluateConfig, FinetuneConfig
from keras_bert_impl.training.evaluate import evaluate
from keras_bert_impl.training.finetuning.evaluate import evaluate_labelled
from keras_bert_impl.training.finetuning.tasks import task_class

TOKENIZER = toy_tokenizer()
ROWS = [("good film", "good"), ("bad", "bad"), ("the book", "good"), ("Dull song", "bad"), ("a nice film", "good")]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    BertClassifier(toy_bert_config(TOKENIZER), labels=["bad", "good"], seed=3).save_pretrained(path, TOKENIZER)
    TaskSettings(task="classification", max_length=16, pair=False).save(path)
    return str(path)


def table(path, rows):
    path.write_text("sentence\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def measured(model, tmp_path_factory):
    """A file with a label that the model does not know."""
    folder, said = tmp_path_factory.mktemp("measured"), []
    file = table(folder / "dev.tsv", [*ROWS, ("very good", "great")])
    outputs = {name: str(folder / name) for name in ("output", "predictions")}
    evaluation = evaluate_labelled(EvaluateConfig(model=model, input=(file,), **outputs), say=said.append)
    return evaluation, said, folder


@pytest.mark.slow
def test_the_numbers_are_those_of_fine_tuning(model, measured):
    file = str(measured[2] / "dev.tsv")
    config = FinetuneConfig(task="classification", model=model, train=(file,), output="x", max_length=16)
    task = task_class("classification")(config, TOKENIZER, lambda line: None)
    examples = task.read([file], "dev")
    task.prepare(task.read([table(measured[2] / "train.tsv", ROWS)], "train"), examples)
    assert task.evaluate(task.make_model(1), examples).metrics == measured[0].metrics


def test_an_unknown_label_is_explained_and_all_rows_are_predicted(measured):
    evaluation, said, folder = measured
    rows = [json.loads(line) for line in (folder / "predictions").read_text(encoding="utf-8").splitlines()]
    assert [row["text"] for row in rows] == [*(text for text, _ in ROWS), "very good"]
    assert all(row["label"] in ("bad", "good") for row in rows)
    assert rows[-1]["right"] == "great" and rows[-1]["correct"] is False
    assert sum(row["correct"] for row in rows) / 6 == pytest.approx(evaluation.metrics["accuracy"])
    assert any("'great' (1)" in line and "counted as wrong" in line for line in said)


def test_a_model_that_lower_cases_says_so_once(measured):
    assert measured[1].count("The model lower-cases texts; 17% of them have upper-case letters.") == 1


def test_metrics_are_said_in_words_with_a_table_of_classes(measured):
    evaluation, said, folder = measured
    assert "classification, 6 examples:" in said
    assert any(line.startswith(f"accuracy {evaluation.metrics['accuracy']:.4f}, ") for line in said)
    table = next(place for place, line in enumerate(said) if "precision" in line)
    assert said[table + 1].split()[0] == "bad" and len({len(line) for line in said[table : table + 3]}) == 1
    assert json.loads((folder / "output").read_text()).keys() == evaluation.metrics.keys()


@pytest.mark.slow
def test_the_command_measures(model, measured, capsys):
    file = str(measured[2] / "dev.tsv")
    assert main(["evaluate", model, "--input", file, "--label-column", "label"]) == 0
    assert f"accuracy {measured[0].metrics['accuracy']:.4f}" in capsys.readouterr().out


def test_a_model_without_a_task_is_refused(tmp_path):
    BertEncoder(toy_bert_config(TOKENIZER)).save_pretrained(tmp_path / "model", TOKENIZER)
    config = EvaluateConfig(model=str(tmp_path / "model"), input=(table(tmp_path / "a.tsv", ROWS),))
    with pytest.raises(InputError, match=r"`model` must have been fine-tuned for a task. Received: '.*', a BertModel"):
        evaluate(config)


def test_a_second_text_is_nothing_to_a_model_of_single_texts(model, tmp_path):
    config = EvaluateConfig(model=model, input=(table(tmp_path / "a.tsv", ROWS),), text_pair_column="sentence2")
    with pytest.raises(InputError, match="`text_pair_column` must go with a model that was trained on pairs of texts"):
        evaluate(config)


def test_pairs_for_a_model_of_single_texts_are_named(model, tmp_path):
    (tmp_path / "a.tsv").write_text("sentence1\tsentence2\tlabel\ngood\tfilm\tgood\n")
    message = r"`text_column` must name the column of the text, since the model takes single texts\. Received: a pair"
    with pytest.raises(InputError, match=message):
        evaluate(EvaluateConfig(model=model, input=(str(tmp_path / "a.tsv"),)))


def test_one_of_data_and_input_is_needed():
    message = "`data` of a pretrained model, or `input` of a fine-tuned one, must be given, and not both. Received: "
    with pytest.raises(InputError, match=message + r"data=None, input=\[\]"):
        EvaluateConfig(model="m")
    with pytest.raises(InputError, match=message + r"data='d', input=\['a.tsv'\]"):
        EvaluateConfig(model="m", data="d", input=("a.tsv",))


@pytest.mark.parametrize("name,value", [("lengths", (16,)), ("examples", 5), ("masking", "token"), ("seed", 2)])
def test_settings_of_pretraining_have_no_effect_on_labelled_examples(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be left as it is with `input`, labelled examples. Received"):
        EvaluateConfig(model="m", input=("a.tsv",), **{name: value})


@pytest.mark.parametrize("name,value", [("text_column", "a"), ("label_separator", ";"), ("predictions", "p.jsonl")])
def test_settings_of_labelled_examples_have_no_effect_on_pretraining(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be left as it is with `data`, pretraining examples. Received"):
        EvaluateConfig(model="m", data="d", **{name: value})


def test_outputs_are_files(model, tmp_path):
    file = table(tmp_path / "a.tsv", ROWS)
    for name in ("output", "predictions"):
        with pytest.raises(InputError, match=rf"`{name}` must be a file\b.*\. Received: .*, which is a directory"):
            evaluate(EvaluateConfig(model=model, input=(file,), **{name: str(tmp_path)}))


def test_outputs_do_not_replace_what_is_read_nor_one_another(model, tmp_path):
    file = table(tmp_path / "a.tsv", ROWS)
    content = (tmp_path / "a.tsv").read_bytes()
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    same = [file, str(tmp_path / ".." / tmp_path.name / "a.tsv"), str(tmp_path / "link"), str(tmp_path / "hard")]
    for name in ("output", "predictions"):
        for other in same:
            with pytest.raises(InputError, match=rf"`{name}` must be another file than `input`. Received: "):
                evaluate(EvaluateConfig(model=model, input=(str(tmp_path / "*.tsv"),), **{name: other}))
        with pytest.raises(InputError, match=rf"`{name}` must not replace a file of `model`. Received: "):
            evaluate(EvaluateConfig(model=model, input=(file,), **{name: f"{model}/config.json"}))
        with pytest.raises(InputError, match=rf"`{name}` must be a file: a new or a regular one\. .* a stream"):
            evaluate(EvaluateConfig(model=model, input=(file,), **{name: "/dev/stdout"}))
    both = {"output": str(tmp_path / "b"), "predictions": str(tmp_path / "." / "b")}
    with pytest.raises(InputError, match=r"`predictions` must be another file than `output`. Received: "):
        evaluate(EvaluateConfig(model=model, input=(file,), **both))
    assert (tmp_path / "a.tsv").read_bytes() == content and not (tmp_path / "b").exists()


def test_separators_are_text():
    with pytest.raises(InputError, match=r"`label_separator` must be text. Received: label_separator=''"):
        EvaluateConfig(model="m", input=("a.tsv",), label_separator="")
