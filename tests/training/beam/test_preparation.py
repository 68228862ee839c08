import dataclasses
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from beam_runs import LOCAL, contents, documents, in_three_files, need_beam, refused
from command_line import keras_bert
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.beam_prepare import prepare_with_beam
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples import blocks
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.prepare import prepare

need_beam()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALLEST", 3000)


def assert_same(config: PrepareConfig, folder: Path, options: str = LOCAL) -> dict[str, Any]:
    """Prepares both ways, and returns the manifest; what is said must be the same but for the lines of progress."""
    said: dict[str, list[str]] = {"local": [], "beam": []}
    manifest = prepare(dataclasses.replace(config, output=str(folder / "local")), said["local"].append)
    made = prepare_with_beam(dataclasses.replace(config, output=str(folder / "beam")), options, said["beam"].append)
    assert contents(folder / "beam") == contents(folder / "local")
    assert made == manifest
    assert re.match(r"Running a pipeline of Apache Beam for \d+ files? \.\.\.$", said["beam"].pop(0))
    assert said["beam"].pop() == f"Prepared data: {folder / 'beam'}"
    assert said["local"].pop() == f"Prepared data: {folder / 'local'}"
    assert said["beam"] == said["local"]
    return manifest


@pytest.mark.parametrize("form", ["txt", "txt.xz", "jsonl.gz", "parquet"])
def test_the_pipeline_gives_the_bytes_of_the_local_way(small_blocks, tmp_path: Path, form: str):
    config = toy_config(tmp_path)
    inputs = in_three_files(tmp_path, documents(config), form)
    manifest = assert_same(dataclasses.replace(config, inputs=inputs, text_field="body"), tmp_path)
    assert len(manifest["examples"]["train"]["16"]["shards"]) > 5
    assert manifest["documents"]["read"] == 150


@pytest.mark.parametrize("near_duplicates", ["off", "report", "remove"])
def test_duplicates_and_excluded_text_are_found_over_all_files(small_blocks, tmp_path: Path, near_duplicates: str):
    config = toy_config(tmp_path, near_duplicates=near_duplicates)
    texts = documents(config)
    again = [*texts, *texts[:20], *(f"{text}\nAgain." for text in texts[10:60])]
    for name, part in (("a.txt", texts[:3]), ("b.txt", texts[2:5])):
        (tmp_path / name).write_text("\n\n".join(part), encoding="utf-8")
    config = dataclasses.replace(
        config,
        inputs=in_three_files(tmp_path, again, "txt"),
        exclude=(str(tmp_path / "a.txt"), str(tmp_path / "b.txt")),
    )
    manifest = assert_same(config, tmp_path)
    assert manifest["documents"]["duplicates_removed"] >= 15
    assert [file["documents_removed"] for file in manifest["excluded"]] == [6, 4]
    assert (manifest["documents"]["near_duplicates_removed"] > 30) == (near_duplicates == "remove")


def test_other_examples_and_settings_are_the_same_too(small_blocks, tmp_path: Path):
    config = toy_config(
        tmp_path, examples="chunks", word_boundaries="spaces", passes=1, seed=7, held_out_share=0, documents="line"
    )
    assert_same(dataclasses.replace(config, sentences="lines", lengths=(24,)), tmp_path)


@pytest.mark.parametrize(
    "case", ["bad bytes", "no column", "no text", "all excluded", "no pair", "bad excluded file", "not there"]
)
def test_mistakes_are_told_as_locally(tmp_path: Path, case: str):
    config = toy_config(tmp_path)
    for number, content in enumerate([b"Fine.", b"Not \xff\xfe fine.", b"Nor \xff this one."]):
        (tmp_path / f"{number}.txt").write_bytes(content)
    (tmp_path / "lines.jsonl").write_text('{"text": "Fine."}\n{"body": "Else."}\n', encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf-8")
    bad = tuple(str(tmp_path / f"{number}.txt") for number in range(3))
    changes: dict[str, Any] = {
        "bad bytes": {"inputs": bad},
        "no column": {"inputs": (str(tmp_path / "lines.jsonl"),)},
        "no text": {"inputs": (str(tmp_path / "empty.txt"),)},
        "all excluded": {"exclude": config.inputs},
        "no pair": {"inputs": bad[:1]},
        "bad excluded file": {"exclude": bad[1:]},
        "not there": {"inputs": (str(tmp_path / "nowhere.txt"),)},
    }[case]
    config = dataclasses.replace(config, **changes)
    with pytest.raises(InputError) as local:
        prepare(config)
    assert refused(config) == str(local.value)


def test_what_workers_cannot_open_twice_is_refused(tmp_path: Path):
    config = dataclasses.replace(toy_config(tmp_path), inputs=("-",))
    assert refused(config) == "`inputs` of a pipeline must be files that every worker can open. Received: '-'"
    config = dataclasses.replace(config, inputs=())
    assert refused(config) == "`inputs` must name at least one text file. Received: inputs=()"


def test_static_masks_are_refused(tmp_path: Path):
    config = toy_config(tmp_path, format="tfrecord")
    assert refused(config) == "`beam` is for prepared data, without static masks. Received: format='tfrecord'"
    config = toy_config(tmp_path, reference=True, held_out_share=0.05)
    assert refused(config) == "`beam` is for prepared data, without static masks. Received: reference=True"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["in_memory", "multi_threading", "multi_processing"])
def test_several_workers_of_the_local_runner_give_the_same_bytes(tmp_path: Path, mode: str):
    config = toy_config(tmp_path, count=4000)
    inputs = in_three_files(tmp_path, documents(config), "txt")
    options = f"--runner=DirectRunner --direct_num_workers=2 --direct_running_mode={mode}"
    manifest = assert_same(dataclasses.replace(config, inputs=inputs), tmp_path, options)
    assert len(manifest["examples"]["train"]["16"]["shards"]) >= 4


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path: Path):
    toy_config(tmp_path)
    page = Path(__file__).resolve().parents[3] / "docs" / "beam.md"
    (script,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2] == "Prepared data: prepared"
    assert int(done.stdout.splitlines()[-1]) == PreparedData(tmp_path / "prepared").count("train", 64)


@pytest.mark.slow
def test_the_command_line_runs_pipelines(tmp_path: Path):
    config = toy_config(tmp_path)
    command = ["prepare", *config.inputs, "--vocab", config.vocab, "--output", tmp_path / "data", "--lengths", 16]
    done = keras_bert(*command, "--beam", "--runner=DirectRunner")
    assert done.code == 0, done.err
    assert done.out.startswith("Running a pipeline of Apache Beam for 1 file ...\n") and not done.err
    assert PreparedData(tmp_path / "data").count("train", 16) > 100
    (tmp_path / "corpus.txt").write_bytes(b"Not \xff text.")
    options = "--runner=DirectRunner --direct_running_mode=multi_processing --direct_num_workers=2"
    done = keras_bert(*command[:-4], "--output", tmp_path / "other", "--beam", options)
    assert done.code == 2
    *_, sentence = done.err.splitlines()
    assert sentence.startswith("keras-bert: `inputs` must be UTF-8 text. Received: ")
    assert not (tmp_path / "other").exists()
