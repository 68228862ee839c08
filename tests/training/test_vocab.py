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


class TestExtension:
    """A vocabulary gets the words that it lacks."""

    @pytest.fixture
    def old(self, tmp_path: Path) -> Path:
        path = tmp_path / "old.txt"
        letters = "abcdefghijklmnopqrstuvwxyz"
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        path.write_text("\n".join([*special, "the", ".", *letters, *(f"##{letter}" for letter in letters)]) + "\n")
        return path

    def extension(self, folder: Path, old: Path, **settings: object) -> VocabConfig:
        return dataclasses.replace(config(folder), size=30522, extend=str(old), **{"add": 4, **settings})

    def test_the_commonest_unknown_words_stand_at_the_end(self, tmp_path: Path, old: Path):
        said: list[str] = []
        path = learn_vocab(self.extension(tmp_path, old), say=said.append)
        before, after = (file.read_text(encoding="utf-8").splitlines() for file in (old, path))
        assert after[: len(before)] == before and len(after) == len(before) + 4
        text = (tmp_path / "corpus.txt").read_text(encoding="utf-8").lower().replace(".", " ").split()
        lacking = {word: text.count(word) for word in set(text) if word not in before}
        assert after[len(before) :] == sorted(lacking, key=lambda word: (-lacking[word], word))[:4]
        assert said[-1] == f"Added 4 words to the {len(before)} tokens of {old} from 50 documents: {path}"
        tokenizer = WordPieceTokenizer.from_vocab_file(path)
        assert tokenizer.tokenize(f"The {after[-1]}.") == ["the", after[-1], "."]

    def test_a_directory_says_itself_whether_it_lower_cases(self, tmp_path: Path, old: Path):
        WordPieceTokenizer.from_vocab_file(old, lowercase=False).save_pretrained(tmp_path / "model")
        path = learn_vocab(self.extension(tmp_path, tmp_path / "model"))
        assert "The" in path.read_text(encoding="utf-8").split()

    def test_a_cased_vocabulary_that_is_lower_cased_is_warned_of(self, tmp_path: Path, old: Path):
        with old.open("a") as file:
            file.write("The\nOld\n")
        said: list[str] = []
        learn_vocab(self.extension(tmp_path, old), say=said.append)
        assert said[0].startswith("Warning: 2 tokens of the vocabulary (of 61) can never occur")
        assert said[0].endswith("give --cased.")

    def test_fewer_words_than_asked_for_are_said(self, tmp_path: Path, old: Path):
        said: list[str] = []
        path = learn_vocab(self.extension(tmp_path, old, add=5000), say=said.append)
        added = len(path.read_text(encoding="utf-8").splitlines()) - 59
        assert (
            f"the text has only {added} words that the vocabulary lacks and that occur at least 2 times, not 5,000"
            in said
        )

    def test_a_text_without_a_new_word_is_refused(self, tmp_path: Path, old: Path):
        settings = self.extension(tmp_path, old)
        (tmp_path / "corpus.txt").write_text("The. The the.", encoding="utf-8")
        message = r"`inputs` must have words that `extend` lacks, each at least 2 times\. Received: \['.*corpus\.txt'\]"
        with pytest.raises(InputError, match=message):
            learn_vocab(settings)
        assert not Path(settings.output).exists()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"add": None}, r"`extend` and `add` must go together\. Received: extend='.*old\.txt', add=None"),
            ({"extend": None}, r"`extend` and `add` must go together\. Received: extend=None, add=4"),
            ({"add": 0}, r"`add` must be a number of at least 1\. Received: add=0"),
            ({"size": 100}, r"`size` must be left as it is with `extend`\. Received: size=100"),
            ({"unused": 9}, r"`unused` must be left as it is with `extend`\. Received: unused=9"),
        ],
    )
    def test_settings_that_make_no_sense_are_refused(self, tmp_path: Path, old: Path, changes: dict, message: str):
        settings = self.extension(tmp_path, old)
        with pytest.raises(InputError, match=message):
            dataclasses.replace(settings, **changes)

    def test_a_missing_vocabulary_is_named(self, tmp_path: Path, old: Path):
        with pytest.raises(InputError, match=r"none\.txt"):
            learn_vocab(self.extension(tmp_path, tmp_path / "none.txt"))
