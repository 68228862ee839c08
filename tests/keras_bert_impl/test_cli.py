"""The front door: help without waiting, one sentence for each mistake, nothing left behind."""

import dataclasses
import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from texts import write_toy_corpus

from keras_bert_impl.cli import main
from keras_bert_impl.commands import COMMANDS
from keras_bert_impl.training.configs import (
    EvaluateConfig,
    FinetuneConfig,
    PredictConfig,
    PrepareConfig,
    PretrainConfig,
    VocabConfig,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_toy_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt")


@pytest.fixture(scope="module")
def vocab(corpus) -> Path:
    path = corpus.parent / "vocab.txt"
    assert main(["vocab", str(corpus), "--output", str(path), "--size", "120"]) == 0
    return path


@pytest.fixture(scope="module")
def data(corpus, vocab) -> Path:
    folder = corpus.parent / "data"
    arguments = ["--vocab", vocab, "--output", folder, "--lengths", 16, 32, "--workers", 1]
    assert main(list(map(str, ["prepare", corpus, *arguments]))) == 0
    return folder


@pytest.fixture
def mistake(capsys):
    """Runs a command that must fail with one plain sentence; returns the sentence."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        lines = [line for line in captured.err.splitlines() if line]
        assert code == 2, captured.err
        assert len(lines) == 1, captured.err
        assert lines[0].startswith("keras-bert: ")
        assert "Traceback" not in captured.out + captured.err
        return lines[0]

    return run


@pytest.mark.parametrize("command", [[], *[[name] for name in COMMANDS]], ids=lambda c: " ".join(c) or "keras-bert")
def test_help_opens_neither_tensorflow_nor_keras_nor_numpy(command):
    script = (
        "import keras_bert_console, sys\n"
        f"sys.argv = ['keras-bert', *{command!r}, '--help']\n"
        "try:\n    keras_bert_console.main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "print('opened:', sorted({'tensorflow', 'keras', 'numpy', 'tokenizers'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "opened: []"
    assert "--verbose" in done.stdout or not command


@pytest.mark.parametrize(
    "command,settings",
    [
        ("vocab", VocabConfig),
        ("prepare", PrepareConfig),
        ("pretrain", PretrainConfig),
        ("evaluate", EvaluateConfig),
        ("finetune", FinetuneConfig),
        ("predict", PredictConfig),
    ],
)
def test_help_shows_every_setting_with_its_default(capsys, command, settings):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for field in dataclasses.fields(settings):
        assert " ".join(field.metadata["help"].split())[:20] in text, field.name
        if isinstance(field.default, int | float | str) and not isinstance(field.default, bool):
            default = f"default: {field.default}"
            assert default in text, field.name


def test_options_of_the_command_line_stay():
    """People script these; DESIGN fixes them."""
    fixed = {
        "vocab": ["--output", "--size", "--cased"],
        "prepare": ["--vocab", "--output", "--lengths", "--seed", "--workers"],
        "pretrain": ["--data", "--run", "--preset", "--steps", "--init", "--config"],
        "evaluate": ["--data", "--input", "--output"],
        "finetune": ["--task", "--model", "--train", "--dev", "--output", "--config"],
        "predict": ["--input", "--output", "--task", "--output-format"],
        "fill-mask": ["--top", "--json"],
        "convert": ["--to"],
        "inspect": ["--json"],
        "export": ["--format", "--deploy"],
        "serve": ["--rest-port", "--grpc-port", "--host", "--model-name", "--json-log"],
        "demo": ["--input", "--output", "--seed"],
    }
    assert fixed.keys() == COMMANDS.keys()
    for command, options in fixed.items():
        done = subprocess.run(
            [sys.executable, "-m", "keras_bert_console", command, "--help"], capture_output=True, text=True, check=True
        )
        for option in options:
            assert option in done.stdout, (command, option)


def test_no_command_is_a_sentence(mistake):
    assert "command" in mistake()


def test_unknown_command_is_a_sentence_that_lists_the_known(mistake):
    sentence = mistake("nope")
    assert "nope" in sentence and "pretrain" in sentence


def test_unknown_option_lists_the_known(mistake):
    sentence = mistake("pretrain", "--data", "d", "--run", "r", "--lerning-rate", "1")
    assert "lerning" in sentence and "learning_rate" in sentence


def test_unknown_config_key_lists_the_known(mistake, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("batch_size: 8\nbatchsize: 8\n")
    sentence = mistake("pretrain", "--data", "d", "--run", tmp_path / "r", "--config", config)
    assert "batchsize" in sentence and "batch_size" in sentence and "learning_rate" in sentence
    assert not (tmp_path / "r").exists()


def test_unknown_key_of_a_phase_lists_the_known(mistake, tmp_path):
    phases = json.dumps([{"lenght": 128, "share": 1}])
    sentence = mistake("pretrain", "--data", "d", "--run", tmp_path / "r", "--phases", phases)
    assert "lenght" in sentence and "length" in sentence and "batch_size" in sentence


def test_value_of_the_wrong_kind_names_the_option(mistake):
    sentence = mistake("pretrain", "--data", "d", "--run", "r", "--batch-size", "many")
    assert "batch_size" in sentence and "many" in sentence


def test_missing_config_file_is_named(mistake, tmp_path):
    assert "nope.yaml" in mistake("pretrain", "--data", "d", "--run", "r", "--config", tmp_path / "nope.yaml")


def test_broken_config_file_is_a_sentence(mistake, tmp_path):
    config = tmp_path / "run.yaml"
    config.write_text("batch_size: [8\n")
    mistake("pretrain", "--data", "d", "--run", "r", "--config", config)


def test_config_file_gives_settings_and_options_override_it(corpus, tmp_path, capsys):
    config = tmp_path / "vocab.yaml"
    config.write_text("size: 300\nmin_frequency: 1\n")
    output = tmp_path / "vocab.txt"
    assert main(["vocab", str(corpus), "--output", str(output), "--config", str(config), "--size", "60"]) == 0
    assert len(output.read_text().splitlines()) == 60


@pytest.mark.parametrize("command", ["vocab", "prepare"])
class TestCorpus:
    """What is wrong with a corpus is said by both commands that read one."""

    def arguments(self, command, path, tmp_path, vocab):
        extra = ["--vocab", vocab, "--lengths", 16] if command == "prepare" else []
        return [command, path, "--output", tmp_path / "out", *extra]

    def test_missing_file(self, command, mistake, tmp_path, vocab):
        path = tmp_path / "nope.txt"
        assert "nope.txt" in mistake(*self.arguments(command, path, tmp_path, vocab))
        assert list(tmp_path.iterdir()) == []

    def test_empty_corpus(self, command, mistake, tmp_path, vocab):
        path = tmp_path / "empty.txt"
        path.write_text("\n \n\n")
        mistake(*self.arguments(command, path, tmp_path, vocab))
        assert list(tmp_path.iterdir()) == [path]

    def test_not_utf8_names_the_byte(self, command, mistake, tmp_path, vocab):
        path = tmp_path / "latin.txt"
        path.write_bytes(b"abc def.\n" * 3 + b"caf\xe9 noir.\n")
        sentence = mistake(*self.arguments(command, path, tmp_path, vocab))
        assert "latin.txt" in sentence and "30" in sentence
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "lines,expected",
    [
        (["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b"], ["[MASK]"]),
        ([*SPECIAL, "a", "", "b"], ["line 7"]),
        ([*SPECIAL, "a", "b", "a"], ["6", "8"]),
    ],
    ids=["without [MASK]", "blank line in the middle", "duplicate"],
)
def test_bad_vocabulary_is_named_with_its_lines(mistake, corpus, tmp_path, lines, expected):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(lines) + "\n")
    sentence = mistake("prepare", corpus, "--vocab", path, "--output", tmp_path / "data")
    assert all(part in sentence for part in expected), sentence
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "options,expected",
    [
        (["--model", '{"vocab_size": 50}'], ["vocab", "50", "120"]),
        (["--model", '{"max_position_embeddings": 8}'], ["max_position_embeddings", "8", "16"]),
        (["--model", '{"hiden_size": 8}'], ["hiden_size", "hidden_size"]),
        (["--model", '{"type_vocab_size": 1}'], ["type_vocab_size=1"]),
        (["--replicas", "2", "--batch-size", "7"], ["batch_size=7", "replicas=2"]),
        (["--phases", '[{"length": 64, "share": 1}]'], ["64", "16", "32"]),
        (["--preset", "huge"], ["huge", "tiny"]),
        (["--init", "nope"], ["nope"]),
    ],
    ids=[
        "vocabulary larger than the model's",
        "length above the positions",
        "unknown model field",
        "one segment only",
        "batch not divisible",
        "length not prepared",
        "unknown preset",
        "no such init",
    ],
)
def test_pretrain_refuses_what_cannot_be(mistake, data, tmp_path, options, expected):
    phases = [] if "--phases" in options else ["--phases", '[{"length": 16, "share": 1}]']
    run = tmp_path / "run"
    sentence = mistake("pretrain", "--data", data, "--run", run, "--steps", 2, "--batch-size", 8, *phases, *options)
    assert all(part in sentence for part in expected), sentence
    assert not run.exists()


def test_pretrain_refuses_a_directory_that_is_not_prepared_data(mistake, tmp_path):
    sentence = mistake("pretrain", "--data", tmp_path, "--run", tmp_path / "run")
    assert str(tmp_path) in sentence
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "command",
    [["evaluate", "--data", "DATA"], ["fill-mask", "the [MASK]"], ["inspect"], ["export", "TARGET"], ["serve"]],
    ids=lambda c: c[0],
)
def test_missing_model_is_named(mistake, data, tmp_path, command):
    name, *rest = command
    rest = [{"DATA": data, "TARGET": tmp_path / "export"}.get(part, part) for part in rest]
    sentence = mistake(name, tmp_path / "nope", *rest)
    assert "nope" in sentence
    assert list(tmp_path.iterdir()) == []


def test_output_that_has_content_is_refused(mistake, corpus, vocab, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    sentence = mistake("prepare", corpus, "--vocab", vocab, "--output", tmp_path)
    assert "output" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "name,content",
    [
        ("run.json", "{"),
        pytest.param("config.json", "[]", marks=pytest.mark.slow),
        pytest.param("run.json", None, marks=pytest.mark.slow),
    ],
)
def test_a_damaged_run_directory_is_a_sentence(mistake, data, tmp_path, name, content):
    model = '{"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": 1}'
    run = ["--data", data, "--run", tmp_path / "run", "--steps", 1, "--batch-size", 2, "--model", model]
    arguments = ["pretrain", *run, "--phases", '[{"length": 16, "share": 1}]']
    assert main([str(argument) for argument in arguments]) == 0
    path = tmp_path / "run" / name
    path.unlink() if content is None else path.write_text(content)
    assert name in mistake(*arguments)


def test_a_vocabulary_never_replaces_its_own_text(mistake, tmp_path):
    text = write_toy_corpus(tmp_path / "text.txt", count=3)
    before = text.read_text()
    assert "output" in mistake("vocab", text, "--output", text)
    assert text.read_text() == before


def test_another_keras_backend_is_a_sentence(mistake, monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert "KERAS_BACKEND" in mistake("fill-mask", tmp_path, "[MASK]")


def test_an_empty_or_odd_config_file_is_a_sentence(mistake, tmp_path):
    config = tmp_path / "run.yaml"
    for content in ("", "- 1\n", "steps: null\n"):
        config.write_text(content)
        mistake("pretrain", "--data", "d", "--run", tmp_path / "r", "--config", config)
    config.write_bytes(b"\xff\xfe")
    mistake("pretrain", "--data", "d", "--run", tmp_path / "r", "--config", config)


@pytest.mark.parametrize(
    "content,where",
    [
        ("steps: 5\nseed: 1\nsteps: 6\n", "'steps' on the lines 1 and 3"),
        ('{"steps": 5, "steps": 6}', "'steps' twice on line 1"),
        ("phases:\n- {length: 8, share: 1, length: 9}\n", "'length' twice on line 2"),
    ],
)
def test_a_key_that_is_twice_in_a_config_file_is_refused(mistake, tmp_path, content, where):
    (tmp_path / "run.yaml").write_text(content)
    sentence = mistake("pretrain", "--data", "d", "--run", tmp_path / "r", "--config", tmp_path / "run.yaml")
    assert f"`settings` must have every key once. Received: {where}" in sentence


def test_a_key_that_is_twice_in_an_option_is_refused(mistake, tmp_path):
    sentence = mistake("pretrain", "--data", "d", "--run", tmp_path / "r", "--model", '{"a": 1, "a": 2}')
    assert "'a' twice on line 1" in sentence


@pytest.mark.parametrize("number,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_leaves_nothing_and_says_so(vocab, tmp_path, number, code):
    text = write_toy_corpus(tmp_path / "long.txt", count=30_000)
    command = ["prepare", str(text), "--vocab", str(vocab), "--output", str(tmp_path / "new" / "data")]
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_bert_console", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob("new/.data.*")) and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.5)  # the workers are at it
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert errors.splitlines()[-1:] == ["Interrupted."] and "Traceback" not in errors
    assert list(tmp_path.iterdir()) == [text]


def test_a_closed_standard_output_is_no_error(data):
    script = f"{sys.executable} -m keras_bert_console inspect {data} >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_space_is_a_sentence_whoever_finds_it(mistake, monkeypatch, tmp_path):
    class ResourceExhaustedError(Exception):
        """As TensorFlow's, which is no OSError."""

    def full(options):
        raise ResourceExhaustedError("{{function_node}} x; No space left on device [Op:SaveV2]")

    command = dataclasses.replace(COMMANDS["inspect"], run=full)
    monkeypatch.setitem(COMMANDS, "inspect", command)
    assert "No space left on device" in mistake("inspect", tmp_path)


@pytest.fixture(scope="module")
def headless(tmp_path_factory) -> Path:
    """A masked-LM model without pooler, and without vocabulary."""
    from harness import small_config

    from keras_bert_impl.models import BertMaskedLM

    path = tmp_path_factory.mktemp("models") / "headless"
    BertMaskedLM(small_config()).save_pretrained(path)
    return path


def test_convert_and_inspect_print_json_for_scripts(headless, tmp_path, capsys):
    assert main(["convert", str(headless), str(tmp_path / "new"), "--to", "huggingface", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["architecture"], result["tokens"], result["report"]["complete"]) == ("BertForMaskedLM", None, True)
    assert main(["inspect", str(tmp_path / "new"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["architecture"], facts["load"]["complete"]) == ("BertForMaskedLM", True)


@pytest.mark.parametrize(
    "options,expected",
    [
        (["--architecture", "BertForPreTraining"], "`--allow-missing nsp_head pooler` starts with fresh ones"),
        (["--to", "keras_hub"], "must have a pooler, as every KerasHub BertBackbone"),
        (["--to", "keras"], "`target` must be a file that ends in .keras"),
        (["--num-hidden-layers", 3], "or how many of the first 2 to keep"),
        (["--num-hidden-layers", 1, "--blocks", 0], "cannot both be given"),
        (["--add-tokens", "x"], "`add_tokens` needs the vocabulary of the model"),
        (["--fresh", "head"], "`fresh` must be of pooler, mlm_head, nsp_head, classifier, qa_head"),
        (["--labels", "a", "b"], "`BertMaskedLM` has no argument 'labels'"),
    ],
)
def test_convert_advises_in_options(mistake, headless, tmp_path, options, expected):
    assert expected in mistake("convert", headless, tmp_path / "new", "--to", "huggingface", *options)
    assert list(tmp_path.iterdir()) == []


def test_attention_needs_a_first_text_and_a_vocabulary(mistake, headless):
    assert "needs a first text" in mistake("inspect", headless, "--attention-pair", "b")
    assert "with a vocabulary" in mistake("inspect", headless, "--attention", "a b")


@pytest.fixture
def settings_of(monkeypatch):
    """Runs `pretrain` up to its settings; returns them."""
    seen = []
    monkeypatch.setattr("keras_bert_impl.training.pretrain.pretrain", lambda config, say: seen.append(config))
    monkeypatch.setattr("keras_bert_impl.commands.pretrain.import_tensorflow", lambda verbose: None)

    def run(*arguments: object) -> PretrainConfig:
        assert main(["pretrain", "--data", "d", *map(str, arguments), "--run", "r"]) == 0
        return seen.pop()

    return run


def test_options_stand_before_a_config_file_and_that_before_a_recipe_in_any_order(settings_of, tmp_path):
    (tmp_path / "run.yaml").write_text("batch_size: 96\nlog_every: 7\n")
    parts = [["--seed", 5, "--batch-size=64"], [f"--config={tmp_path / 'run.yaml'}"], ["--recipe", "bert-base"]]
    for order in itertools.permutations(parts):
        config = settings_of(*itertools.chain(*order))
        assert (config.batch_size, config.log_every, config.warmup_steps, config.seed) == (64, 7, 10_000, 5)
    for file in (["--config", tmp_path / "run.yaml"], [f"--config={tmp_path / 'run.yaml'}"]):
        assert settings_of(*file, "--recipe=bert-base").batch_size == 96
        assert settings_of("--recipe", "bert-base", *file).batch_size == 96


def test_options_before_a_config_file_stand_for_every_command(corpus, tmp_path):
    (tmp_path / "vocab.yaml").write_text("size: 300\n")
    output = tmp_path / "vocab.txt"
    arguments = ["vocab", "--size", 60, "--output", output, "--config", tmp_path / "vocab.yaml", "--", corpus]
    assert main(list(map(str, arguments))) == 0
    assert len(output.read_text().splitlines()) == 60


def test_the_size_of_a_recipe_gives_way_to_init_but_not_the_user_s(settings_of, mistake, tmp_path, capsys):
    config = settings_of("--init", "m", "--recipe", "mosaic-like")
    assert (config.preset, config.model, config.init, config.masked_share) == (None, None, "m", 0.3)
    assert "preset and model of the recipe are left out" in capsys.readouterr().out
    run = ["pretrain", "--data", "d", "--run", "r", "--recipe", "mosaic-like", "--init", "m"]
    assert "`preset` cannot be given with `init`" in mistake(*run, "--preset", "tiny")
    (tmp_path / "run.yaml").write_text("preset: tiny\n")
    assert "`preset` cannot be given with `init`" in mistake(*run, "--config", tmp_path / "run.yaml")


@pytest.mark.parametrize(
    "options,expected",
    [
        (["--recipe", "bert-base-lamb", "--batch-size", 64], "`batch_size` would have no effect, since every phase"),
        (["--recipe", "bert-base-lamb", "--learning-rate", 1e-3], "`learning_rate` would have no effect, since"),
        (["--recipe", "bert-base-lamb", "--steps", 20], "[7038, 1563]: give `phases` with other steps, or null"),
        (["--recipe", "bert-base", "--phases", '[{"length": 8, "steps": 20}]'], "`--steps null`, for their sum"),
        (["--phases", '[{"length": 8, "share": 1, "batch_size": "8"}]'], "as batch_size. Received: batch_size='8'"),
        (
            ["--phases", '[{"length": 8, "share": 1, "packed": "yes"}]'],
            "true or false as packed. Received: packed='yes'",
        ),
        (["--recipe"], "`recipe` must be one of bert-base, "),
        (["--cluster", ","], "separated by commas, with an IPv6 host in brackets. Received: '' in ','"),
        (["--run", ""], "`run` must be the name of a directory, as UTF-8 text. Received: run=''"),
        (["--run", "a\udcff"], "as UTF-8 text. Received: run='a\\udcff'"),
        (["--model", "{a: " * 3000], "`settings` must not be nested so deep"),
        (["--model", "&a {b: *a}"], "`settings` must not have an alias that holds itself. Received: one on line 1"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(mistake, options, expected):
    assert expected in mistake("pretrain", "--data", "d", "--run", "r", *options)


def test_text_where_the_model_has_a_number_is_kept_as_text(settings_of):
    assert settings_of("--model", '{"hidden_size": "16", "a": 2, "b": 1e-3, "c": null, "d": true}').model == {
        "hidden_size": "16",
        "a": 2,
        "b": 1e-3,
        "c": None,
        "d": True,
    }


def test_text_that_is_not_utf8_is_a_sentence(mistake, monkeypatch, tmp_path):
    command = dataclasses.replace(COMMANDS["inspect"], run=lambda options: options.path.encode())
    monkeypatch.setitem(COMMANDS, "inspect", command)
    assert "Names and texts must be UTF-8. Received: 'a\\udcff'" in mistake("inspect", "a\udcff")


def test_an_alias_that_holds_itself_is_refused_in_a_config_file(mistake, tmp_path):
    (tmp_path / "run.yaml").write_text("seed: 1\nsteps: &a [*a]\n")
    sentence = mistake("pretrain", "--data", "d", "--run", "r", "--config", tmp_path / "run.yaml")
    assert "`settings` must not have an alias that holds itself. Received: one on line 2" in sentence
