"""The examples of the reference pages run as they stand."""

import contextlib
import io
import os
import re
import string
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from harness import small_config
from task_models import toy_bert_config, toy_tokenizer
from texts import write_toy_corpus

from keras_bert_impl.models import (
    BertClassifier,
    BertEncoder,
    BertPretrainer,
    BertQuestionAnswerer,
    BertTokenClassifier,
)
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.prepare import prepare

DOCS = Path(__file__).resolve().parent.parent / "docs"


def examples(page: str) -> str:
    """Returns the Python blocks of a page that need nothing but a run."""
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)
    needs = ("encoder(inputs)", "load_dataset")
    return "\n".join(block for block in blocks if not any(need in block for need in needs))


@pytest.mark.slow
def test_examples_run(tmp_path):
    letters = string.ascii_lowercase
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters), ".", "?"]
    model = BertPretrainer(small_config(vocab_size=len(vocabulary), max_position_embeddings=64))
    model.save_pretrained(tmp_path / "run" / "model", WordPieceTokenizer(vocabulary))
    vocabulary_file = tmp_path / "vocab.txt"
    vocabulary_file.write_text("\n".join(vocabulary), encoding="utf-8")
    text = write_toy_corpus(tmp_path / "text.txt")
    lengths = (128, 512)
    prepare(
        PrepareConfig(
            inputs=(str(text),), vocab=str(vocabulary_file), output=str(tmp_path / "data"), lengths=lengths, workers=1
        )
    )
    pages = [examples(page) for page in ("checkpoints.md", "attention.md", "prepared_data.md")]
    script = "\n".join(pages).replace('"MODEL"', '"run"')
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={name: os.environ[name] for name in os.environ.keys() - {"PYTHONWARNINGS"}} | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "larger" / "model.safetensors").is_file()
    assert (tmp_path / "pair.html").is_file()
    assert "(4, 8, 2)" in done.stdout
    assert "UserWarning" in done.stderr and "classifier starts with fresh weights" in done.stderr


@pytest.mark.slow
def test_examples_of_fine_tuning_run(tmp_path, monkeypatch):
    tokenizer, labels = toy_tokenizer(), ["bad", "good"]
    config = toy_bert_config(tokenizer, num_hidden_layers=1)
    for name, model in {
        "MODEL": BertEncoder(config, seed=1),
        "film_model": BertClassifier(config, labels=labels),
        "all-MiniLM-L6-v2": BertEncoder(config),
        "ner_model": BertTokenClassifier(config, labels=["O", "B-LOC", "I-LOC"]),
        "qa_model": BertQuestionAnswerer(config),
    }.items():
        model.save_pretrained(tmp_path / name, tokenizer)
    texts = [f"a {word} {thing}" for word in ("good", "fine", "bad", "dull") for thing in ("film", "book", "play")]
    given = {"texts": texts, "labels": ["good"] * 6 + ["bad"] * 6}
    monkeypatch.chdir(tmp_path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Heads start fresh.
        for page in ("classification", "tagging", "question_answering", "finetuning", "labelled_data"):
            exec(examples(f"{page}.md"), dict(given))
    assert "neg: 1 (33%), pos: 2 (67%)" in said.getvalue()
    assert (tmp_path / "film_model" / "task.json").is_file()
