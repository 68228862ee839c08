"""From raw text to an answering model through the command line, each command in a process of its own."""

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from command_line import Finished, keras_bert
from texts import write_toy_corpus

MODEL = json.dumps({"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64})
PHASES = json.dumps([{"length": 16, "share": 0.9}, {"length": 32, "share": 0.1, "batch_size": 4}])
# What TensorFlow, XLA, CUDA, absl, Keras and Python write when nobody stops them.
FOREIGN = re.compile(
    r"^\d{4}-\d\d-\d\d \d\d:|^[IWEF]\d{4} |tensorflow|keras/|absl|XLA|oneDNN|cuda|WARNING|Warning|Traceback", re.M
)


@pytest.fixture(scope="module")
def way(tmp_path_factory) -> tuple[Path, dict[str, Finished]]:
    """Goes the whole way once; returns the folder and what each command left."""
    folder = tmp_path_factory.mktemp("way")
    write_toy_corpus(folder / "text.txt")
    commands = {
        "vocab": ["text.txt", "--output", "vocab.txt", "--size", 120],
        "prepare": ["text.txt", "--vocab", "vocab.txt", "--output", "data", "--lengths", 16, 32],
        "pretrain": [
            *("--data", "data", "--run", "run", "--steps", 10, "--batch-size", 8, "--replicas", 2),
            *("--model", MODEL, "--phases", PHASES),
        ],
        "evaluate": ["run", "--data", "data", "--output", "evaluation.json"],
        "fill-mask": ["run", "The old [MASK] sails near the ship."],
        "export": ["run", "export"],
        "inspect": ["run"],
    }
    return folder, {name: keras_bert(name, *arguments, cwd=folder) for name, arguments in commands.items()}


def test_every_command_ends_well(way):
    for name, done in way[1].items():
        assert done.code == 0, (name, done.err)


def test_the_screen_shows_our_words_only(way):
    for name, done in way[1].items():
        assert not FOREIGN.findall(done.err), (name, done.err)
        assert not re.findall(r"WARNING|Warning|Traceback", done.out), (name, done.out)
        if name not in ("vocab", "prepare", "pretrain", "evaluate"):  # those show their progress there
            assert done.err == "", name


@pytest.mark.slow
def test_a_users_mistake_shows_one_line_only(way):
    folder, _ = way
    for command in (["fill-mask", "nope", "a [MASK]"], ["pretrain", "--data", "nope", "--run", "r"], ["serve", "nope"]):
        done = keras_bert(*command, cwd=folder)
        assert done.code == 2
        assert done.out == ""
        assert len(done.err.splitlines()) == 1, done.err


def test_evaluation_is_finite_and_beside_the_unigram_loss(way):
    folder, done = way
    metrics = json.loads((folder / "evaluation.json").read_text())
    assert set(metrics) == {"16", "32"}
    for record in metrics.values():
        assert all(value == value and abs(value) < 1e6 for value in record.values())
        assert record["nsp_true_next_share"] + record["nsp_random_next_share"] == pytest.approx(1)
        assert f"unigram {record['unigram_loss']:.4f}" in done["evaluate"].out


def test_the_run_directory_holds_what_the_documentation_says(way):
    folder, _ = way
    for name in ("config.json", "metrics.jsonl", "metrics.json", "report.html", "checkpoints", "tensorboard"):
        assert (folder / "run" / name).exists(), name
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        assert (folder / "run" / "model" / name).is_file(), name


def test_fill_mask_answers_with_tokens_and_probabilities(way):
    line = way[1]["fill-mask"].out.splitlines()[1]
    assert re.fullmatch(r"  mask 1:( +\S+ 0\.\d{3}){5}", line), line


def test_the_export_answers_over_http_after_it_was_moved_and_the_run_deleted(way, tmp_path):
    folder, _ = way
    asked = keras_bert("fill-mask", "run", "The old [MASK] sails near the ship.", "--json", cwd=folder)
    expected = json.loads(asked.out)[0]["masks"][0]
    shutil.copytree(folder / "export", tmp_path / "moved")
    command = [sys.executable, "-m", "keras_bert_console", "serve", str(tmp_path / "moved"), "--rest-port", "0"]
    command += ["--grpc-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        try:
            url = next(re.search(r"http://\S+/v1/models/bert", line) for line in server.stdout if "http" in line)[0]
            body = json.dumps({"instances": [{"text": "The old [MASK] sails near the ship."}]}).encode()
            with urllib.request.urlopen(urllib.request.Request(f"{url}:predict", body), timeout=60) as reply:
                (answer,) = json.load(reply)["predictions"]
        finally:
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=60)
    assert server.returncode == 0
    assert errors == ""
    assert answer["top_tokens"][0] == [candidate["token"] for candidate in expected]
    assert answer["top_probabilities"][0] == pytest.approx([c["probability"] for c in expected], rel=1e-4)


@pytest.mark.slow
def test_the_demo_goes_the_whole_way_on_ones_own_text(way, tmp_path):
    folder, _ = way
    done = keras_bert("demo", "--input", folder / "text.txt", "--output", tmp_path / "demo", "--steps", 10, timeout=900)
    assert done.code == 0, done.err
    assert not FOREIGN.findall(done.err), done.err
    commands = re.findall(r"^\$ (keras-bert [a-z-]+|curl)", done.out, re.M)
    steps = ["vocab", "prepare", "pretrain", "evaluate", "export", "serve"]
    assert commands == [f"keras-bert {step}" for step in steps] + ["curl"] * 3
    assert "The server is stopped." in done.out
    again = keras_bert("demo", "--input", folder / "text.txt", "--output", folder)
    assert again.code == 2 and "output" in again.err
