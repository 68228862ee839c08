import dataclasses
from pathlib import Path

import pytest
from texts import write_toy_corpus

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.configs import VocabConfig
from keras_bert_impl.training.vocab import learn_vocab


def config(folder: Path, **settings: object) -> VocabConfig:
    corpus = write_toy_corpus(folder / "corpus.txt", count=50)
    return VocabConfig.from_dict(
        {"inputs": [str(corpus)], "output": str(folder / "new" / "vocab.txt"), "size": 120, **settings}
    )


def test_a_vocabulary_is_learned_and_usable(tmp_path: Path):
    said: list[str] = []
    path = learn_vocab(config(tmp_path), say=said.append)
    tokenizer = WordPieceTokenizer.from_vocab_file(path)
    assert tokenizer.vocabulary[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert tokenizer.vocab_size <= 120
    assert tokenizer.decode(tokenizer.encode_ids("the old ship sails.")) == "the old ship sails ."
    assert said[-1] == f"Learned a vocabulary of {tokenizer.vocab_size} tokens from 50 documents: {path}"


def test_a_single_document_is_one_document(tmp_path: Path):
    said: list[str] = []
    settings = config(tmp_path)
    (tmp_path / "corpus.txt").write_text("A note from me. It has two sentences.", encoding="utf-8")
    path = learn_vocab(dataclasses.replace(settings, size=1000), say=said.append)
    tokens = path.read_text(encoding="utf-8").split()
    assert said[-1] == f"Learned a vocabulary of {len(tokens)} tokens from 1 document: {path}"
    tokenizer = WordPieceTokenizer.from_vocab_file(path)
    assert "[UNK]" not in tokenizer.tokenize("a note from me. it has two sentences.")
    assert any(f"the text gives only {len(tokens)} tokens, not 1000: " in line for line in said)


def test_it_is_the_same_every_time(tmp_path: Path):
    one = learn_vocab(config(tmp_path)).read_bytes()
    assert learn_vocab(config(tmp_path)).read_bytes() == one


def test_a_small_text_gives_a_small_vocabulary_and_it_is_said(tmp_path: Path):
    said: list[str] = []
    learn_vocab(config(tmp_path, size=5000), say=said.append)
    assert any("the text gives only" in line and "not 5000" in line for line in said)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n\n", r"`inputs` must hold text\. Received: \['.*corpus\.txt'\], which hold none"),
        (b"ab\n\xff", r"`inputs` must be UTF-8 text\. Received: '.*corpus\.txt', which is not at byte 3"),
    ],
)
def test_bad_input_leaves_nothing_behind(tmp_path: Path, content: bytes, message: str):
    settings = config(tmp_path)
    (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        learn_vocab(settings)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match=r"`inputs` must name files that exist\. Received: 'none\.txt'"):
        learn_vocab(config(tmp_path, inputs=["none.txt"]))


def test_a_directory_as_output_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"`output` must be a file\. Received: '.*', which is a directory"):
        learn_vocab(config(tmp_path, output=str(tmp_path)))


def test_nothing_to_read_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"`inputs` must name at least one text file\. Received: inputs=\(\)"):
        learn_vocab(config(tmp_path, inputs=[]))


def test_it_is_the_same_from_strings(tmp_path: Path):
    settings = config(tmp_path)
    from_file = learn_vocab(settings).read_bytes()
    texts = (tmp_path / "corpus.txt").read_text(encoding="utf-8").split("\n\n")
    assert learn_vocab(dataclasses.replace(settings, inputs=()), texts=iter(texts)).read_bytes() == from_file


def test_what_was_changed_in_the_text_is_said(tmp_path: Path):
    said: list[str] = []
    settings = config(tmp_path, on_bad_bytes="replace", max_document_chars=1000)
    (tmp_path / "corpus.txt").write_bytes(b"caf\xe9 au lait.\n" + b"a long line " * 200)
    learn_vocab(settings, say=said.append)
    assert "Not UTF-8 and replaced by U+FFFD: 1 place." in said
    assert "Longer than 1,000 characters and cut: 1 line." in said


def test_slots_to_keep_free_and_the_share_of_characters_are_settings(tmp_path: Path):
    settings = config(tmp_path, size=60, unused=3)
    assert learn_vocab(settings).read_text(encoding="utf-8").split()[:5] == [
        *("[PAD]", "[unused0]", "[unused1]", "[unused2]", "[UNK]")
    ]
    for change in ({"unused": -1}, {"character_coverage": 0.0}, {"character_coverage": 1.5}):
        (name,) = change
        with pytest.raises(InputError, match=rf"`{name}` must be a number"):
            config(tmp_path, **change)
