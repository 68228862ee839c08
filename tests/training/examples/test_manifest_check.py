import json
from pathlib import Path

import numpy as np
import pytest
from json_faults import faults_of
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.prepare import prepare

# What reading the data looks at.
READ = ("format", "format_version", "next_sentence", "vocabulary", "examples")


def use(folder: Path, tokenizer: WordPieceTokenizer) -> None:
    data = PreparedData(folder)
    data.__dict__["tokenizer"] = tokenizer  # To open it anew for every fault would take long.
    for length in data.lengths:
        for split in ("train", "held_out"):
            if data.count(split, length):
                examples = data.examples(split, length)
                examples.rows(np.arange(min(3, len(examples))))


@pytest.mark.slow
def test_a_damaged_manifest_is_a_sentence_whatever_the_fault(tmp_path: Path) -> None:
    prepare(toy_config(tmp_path, count=20, lengths=(16,)))
    path = tmp_path / "data" / "manifest.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    settings = {name: whole["settings"][name] for name in ("lengths", "word_boundaries", "examples")}
    read = {name: whole[name] for name in READ} | {"settings": settings}
    refused, tokenizer = 0, PreparedData(tmp_path / "data").tokenizer
    for text in faults_of(read):
        path.write_text(text, encoding="utf-8")
        try:
            use(tmp_path / "data", tokenizer)
        except InputError as error:
            assert str(error).startswith("`data` must ") and "\n" not in str(error)
            refused += 1
    assert refused > 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prepared")
    prepare(toy_config(path, count=20, lengths=(16,)))
    return path / "data"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"settings": {"lengths": []}}, r"settings\.lengths=\[\]"),
        ({"settings": {"lengths": [16, 16]}}, r"settings\.lengths=\[16, 16\]"),
        ({"settings": {"lengths": [16]}}, r"settings\.word_boundaries=None"),
        ({"settings": {"lengths": [16], "word_boundaries": "banana"}}, r"settings\.word_boundaries='banana'"),
        ({"settings": {"lengths": [16], "word_boundaries": "pieces"}}, r"settings\.examples=None"),
        ({"next_sentence": False}, r"next_sentence=False for settings\.examples='pairs'"),
        ({"vocabulary": {}}, r"vocabulary\.size=None"),
        ({"next_sentence": 1}, "next_sentence=1"),
        ({"examples": {"train": {}}}, r"examples\.train\.16\.examples=None"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_named(folder: Path, tmp_path: Path, change: dict, fault: str) -> None:
    whole = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (tmp_path / "manifest.json").write_text(json.dumps({**whole, **change}), encoding="utf-8")
    message = rf"`data` must have a whole manifest\.json; prepare it anew\. Received: '.*', with {fault}"
    with pytest.raises(InputError, match=message):
        PreparedData(tmp_path)
