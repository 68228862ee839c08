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
    settings = {name: whole["settings"][name] for name in ("lengths", "word_boundaries")}
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


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"settings": {"lengths": []}}, r"settings\.lengths=\[\]"),
        ({"vocabulary": {}}, r"vocabulary\.size=None"),
        ({"next_sentence": 1}, "next_sentence=1"),
        ({"examples": {"train": {}}}, r"examples\.train\.16\.examples=None"),
    ],
)
def test_what_is_wrong_in_a_manifest_is_named(tmp_path: Path, change: dict, fault: str) -> None:
    prepare(toy_config(tmp_path, count=20, lengths=(16,)))
    path = tmp_path / "data" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    message = rf"`data` must have a whole manifest\.json; prepare it anew\. Received: '.*', with {fault}"
    with pytest.raises(InputError, match=message):
        PreparedData(tmp_path / "data")
