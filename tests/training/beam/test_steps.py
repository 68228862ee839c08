import dataclasses
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from beam_runs import contents, documents, in_three_files, need_beam, refused
from toy_data import toy_config

from keras_bert_impl.training.corpus import facts as facts_module
from keras_bert_impl.training.corpus.facts import facts_of_documents
from keras_bert_impl.training.corpus.readers import Reading, find_files, read_documents
from keras_bert_impl.training.corpus.survey import survey_corpus
from keras_bert_impl.training.prepare import load_tokenizer

need_beam()

from apache_beam.internal import pickler

from keras_bert_impl.training.beam import steps
from keras_bert_impl.training.beam.steps import (
    BLOCK,
    FACTS,
    FILE,
    RESULTS,
    SURVEY,
    CutIntoBlocks,
    Decide,
    MakeShards,
)


def test_facts_may_come_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(facts_module, "_BATCH", 1000)
    config = toy_config(tmp_path)
    texts = documents(config)
    files = find_files(in_three_files(tmp_path, [*texts, *(f"{text} Again." for text in texts)], "txt"))
    parts = []
    for number, file in enumerate(files):
        first = 0
        for facts in facts_of_documents(read_documents([file]), 1, near_duplicates=True):
            parts.append((FACTS, (number, first, pickle.dumps(facts))))
            first += facts.digests.size
        parts.append((FILE, (number, pickle.dumps(file))))
    assert len(parts) > 20
    expected = survey_corpus(files, seed=1, held_out_share=0.2)
    shuffled = [parts[number] for number in np.random.default_rng(3).permutation(len(parts))]
    step = Decide(len(files), Reading(), {"seed": 1, "held_out_share": 0.2, "near_duplicates": "report"})
    results = [made.value for made in step.process((0, shuffled)) if getattr(made, "tag", None) == RESULTS]
    ((kind, survey),) = results
    survey = pickle.loads(survey)
    assert kind == SURVEY
    assert (survey.fates == expected.fates).all()
    assert dataclasses.replace(survey, fates=None) == dataclasses.replace(expected, fates=None)
    assert survey.near_duplicates > 100


def test_a_second_attempt_at_a_block_disturbs_nothing(tmp_path: Path):
    config = toy_config(tmp_path)
    load_tokenizer(config.vocab).save_pretrained(tmp_path / "tokenizer")
    tokenizer = {path.name: path.read_bytes() for path in (tmp_path / "tokenizer").iterdir()}
    step = pickle.loads(pickle.dumps(MakeShards(config, tokenizer, str(tmp_path / "parts"))))
    step.setup()
    lines = [tuple(text.split("\n")) for text in documents(config)]
    batches = [(40, lines[40:]), (0, lines[:40])]
    found = []
    for _ in range(2):
        (made,) = (made for made in step.process((("train", 3), batches)) if isinstance(made, tuple))
        assert made[0] == BLOCK
        _, attempt, names = pickle.loads(made[1])
        found.append(contents(tmp_path / "parts" / attempt))
        assert sorted(names) == sorted(found[-1]) and "train/16/00003.tokens.npy" in names
    step.teardown()
    assert found[0] == found[1]
    assert len(list((tmp_path / "parts").iterdir())) == 2


def test_a_file_that_changes_in_between_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = toy_config(tmp_path)
    cut = steps.assignments

    def change_and_cut(*arguments: Any) -> Any:
        Path(config.inputs[0]).write_text("Other text.", encoding="utf-8")
        return cut(*arguments)

    monkeypatch.setattr(steps, "assignments", change_and_cut)
    message = r"`inputs` must not change while they are read\. Received: '.*corpus\.txt', which did$"
    assert re.match(message, refused(config))


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(path: str, content: bytes) -> None:
        if path.endswith(".npy"):
            raise OSError(28, "No space left on device")
        write(path, content)

    write = steps.write_file
    monkeypatch.setattr(steps, "write_file", fail)
    config = toy_config(tmp_path)
    assert refused(config) == (
        f"`output` could not be written: No space left on device. Received: {config.output!r}; nothing was left behind"
    )


def test_an_output_that_the_workers_do_not_share_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(steps, "write_file", lambda path, content: None)
    message = (
        r"`output` must be a place that this machine and every worker see\. Received: '.*data', where the pipeline "
    )
    assert re.match(message, refused(toy_config(tmp_path)))


def test_workers_open_a_step_without_tensorflow():
    step = pickler.dumps(CutIntoBlocks(Reading()))
    script = (
        "import sys\nfrom apache_beam.internal import pickler\n"
        f"step = pickler.loads({step!r})\n"
        "assert step.reading.input_format == 'auto'\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
