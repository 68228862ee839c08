"""`prepare --examples chunks` and `prepare --word-boundaries`."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.masking import mask_batch
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.examples.record_data import RecordData
from keras_bert_impl.training.prepare import prepare

CHARACTERS = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏"


def contents(folder: Path, pattern: str) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob(pattern)}


def segmented_config(folder: Path, **settings) -> PrepareConfig:
    """Text of words of one to three characters, set apart by spaces, a full stop behind each sentence."""
    rng = np.random.default_rng(1)

    def sentence() -> str:
        words = ["".join(rng.choice(list(CHARACTERS), rng.integers(1, 4))) for _ in range(rng.integers(3, 9))]
        return " ".join(words) + "。"

    documents = ["\n".join(sentence() for _ in range(rng.integers(1, 8))) for _ in range(80)]
    (folder / "corpus.txt").write_text("\n\n".join(documents), encoding="utf-8")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "。", *CHARACTERS]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    return PrepareConfig(
        **{
            "inputs": (str(folder / "corpus.txt"),),
            "vocab": str(folder / "vocab.txt"),
            "output": str(folder / "data"),
            "lengths": (16, 32),
            "workers": 1,
            "word_boundaries": "spaces",
            "near_duplicates": "off",
            **settings,
        }
    )


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chunks")
    said: list[str] = []
    prepare(toy_config(folder, examples="chunks", lengths=(8, 64)), say=said.append)
    (folder / "said.txt").write_text("\n".join(said), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("segmented")
    said: list[str] = []
    prepare(segmented_config(folder), said.append)
    (folder / "said.txt").write_text("\n".join(said), encoding="utf-8")
    return folder


def test_chunks_hold_all_of_the_text_in_one_segment(chunks: Path):
    data = PreparedData(chunks / "data")
    tokenizer, manifest = data.tokenizer, data.manifest
    assert manifest["next_sentence"] is False
    for length in (8, 64):
        kept = {}
        for split in ("train", "held_out"):
            examples = data.examples(split, length)
            rows = examples.rows(np.arange(len(examples)))
            sizes = rows["padding_mask"].sum(axis=1)
            assert not rows["segment_ids"].any() and not rows["next_sentence_labels"].any()
            assert (rows["token_ids"][:, 0] == tokenizer.cls_token_id).all()
            assert (rows["token_ids"][np.arange(sizes.size), sizes - 1] == tokenizer.sep_token_id).all()
            assert (rows["token_ids"] == tokenizer.sep_token_id).sum() == sizes.size
            kept[split] = int(sizes.sum() - 2 * sizes.size)
        assert kept == manifest["tokens"]


def test_the_manifest_of_chunks_has_their_own_counts(chunks: Path):
    facts = PreparedData(chunks / "data").manifest["examples"]["train"]
    tokens = PreparedData(chunks / "data").manifest["tokens"]["train"]
    for length in ("8", "64"):
        assert facts[length]["own_tokens"] == facts[length]["kept_tokens"] == tokens
        assert 0 < facts[length]["packed_rows"] <= facts[length]["examples"]
        assert not any("next" in name or "pair" in name or "single" in name for name in facts[length])
    assert facts["8"]["cut_sentences"] > 0 == facts["64"]["cut_sentences"]
    settings = PreparedData(chunks / "data").manifest["settings"]
    assert settings["examples"] == "chunks" and "next_sentence_prob" not in settings


def test_it_is_said_that_chunks_have_no_next_sentence(chunks: Path):
    said = (chunks / "said.txt").read_text(encoding="utf-8")
    assert re.search(r"Length 64, training: [\d,]+ examples, rows filled to \d+%", said)
    assert re.search(r"Length 8, training: .*; [\d,]+ sentences longer than a row, cut into several", said)
    assert "The examples are chunks of full sentences, without next-sentence prediction." in said
    assert "random" not in said


@pytest.mark.parametrize("text", ["One sentence.", "One.\n\nTwo.", "One.\nTwo.\nThree."])
def test_chunks_are_made_of_single_sentences_and_of_a_single_document(tmp_path: Path, text: str):
    config = toy_config(tmp_path, examples="chunks", held_out_share=0)
    Path(config.inputs[0]).write_text(text, encoding="utf-8")
    manifest = prepare(config)
    assert manifest["examples"]["train"]["64"]["examples"] == 1 + text.count("\n\n")
    assert not any("pair" in note or "successor" in note for note in manifest["notes"])


def test_text_without_a_token_gives_no_chunk(tmp_path: Path):
    config = toy_config(tmp_path, examples="chunks")
    Path(config.inputs[0]).write_text("\u200b\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"`inputs` must hold text\. Received: .*, which give no chunk of length 16"):
        prepare(config)


@pytest.mark.parametrize("changes", [{"short_seq_prob": 0.2}, {"next_sentence_prob": 0.0}, {"passes": 2}], ids=str)
def test_what_only_pairs_have_is_refused_for_chunks(tmp_path: Path, changes: dict):
    (name,) = changes
    message = rf"`{name}` must be left as it is with `examples` chunks, .* Received: {name}={changes[name]}"
    with pytest.raises(InputError, match=message):
        toy_config(tmp_path, examples="chunks", **changes)


def test_boundaries_change_neither_tokens_nor_pairs(segmented: Path, tmp_path: Path):
    prepare(segmented_config(tmp_path, word_boundaries="pieces"))
    for pattern in ("*.tokens.npy", "*.examples.npy", "token_counts.npy"):
        assert contents(segmented / "data", pattern) == contents(tmp_path / "data", pattern) != {}
    assert contents(tmp_path / "data", "*.continued.npy") == {}
    assert "continues_word" not in PreparedData(tmp_path / "data").examples("train", 16).rows(np.arange(2))


@pytest.mark.parametrize("length", [16, 32])
def test_rows_say_which_tokens_continue_the_words_of_the_text(segmented: Path, length: int):
    text = (segmented / "corpus.txt").read_text(encoding="utf-8")
    words = {word.rstrip("。") for word in text.split()}
    data = PreparedData(segmented / "data")
    examples = data.examples("train", length)
    rows = examples.rows(np.arange(len(examples)))
    assert rows["continues_word"].dtype == bool and rows["continues_word"].shape == rows["token_ids"].shape
    tokens = np.array(data.tokenizer.vocabulary)[rows["token_ids"]]
    found = cut = 0
    for row, marks in zip(tokens, rows["continues_word"], strict=True):
        joined = "".join(token if mark else f" {token}" for token, mark in zip(row, marks, strict=True)).split()
        for before, word, after in zip(["", *joined], joined, [*joined[1:], ""], strict=False):
            if word[0] in CHARACTERS:
                found += 1
                cut += word not in words
                # Only truncation, beside a special token, leaves a part of a word.
                assert word in words or before.startswith("[") or after.startswith("[")
    assert found > 1000 and cut < 0.1 * found


def test_words_are_counted_and_said(segmented: Path, tmp_path: Path):
    # Every word is cut off by spaces, but for the full stop at the end of a line.
    lines = [line for line in (segmented / "corpus.txt").read_text(encoding="utf-8").split("\n") if line]
    words = sum(len(line.split()) + 1 for line in lines)
    characters = sum(len(line.replace(" ", "")) for line in lines)
    manifest = PreparedData(segmented / "data").manifest
    assert sum(manifest["words"].values()) == words and sum(manifest["tokens"].values()) == characters
    line = f"Words (spaces): {words:,}, of {characters / words:.2f} tokens each on average."
    assert line in (segmented / "said.txt").read_text(encoding="utf-8").split("\n")
    said: list[str] = []
    pieces = prepare(segmented_config(tmp_path, word_boundaries="pieces"), said.append)
    assert pieces["words"] == pieces["tokens"] == manifest["tokens"]
    assert not any(line.startswith("Words (") for line in said)


def assert_words_are_whole(batch: dict[str, np.ndarray], continues: np.ndarray) -> None:
    chosen = np.zeros(continues.shape, bool)
    row, slot = np.nonzero(batch["mask_weights"])
    chosen[row, batch["mask_positions"][row, slot]] = True
    assert (chosen[:, 1:] == chosen[:, :-1])[continues[:, 1:]].all()
    assert chosen[continues].any()


def test_stored_words_are_masked_whole(segmented: Path):
    data = PreparedData(segmented / "data")
    examples = data.examples("train", 32)
    rows = examples.rows(np.arange(len(examples)))
    batch = mask_batch(
        rows,
        vocab_size=data.tokenizer.vocab_size,
        special_token_ids=data.tokenizer.special_token_ids,
        mask_token_id=data.tokenizer.mask_token_id,
        max_predictions=5,
        masked_share=0.15,
        seed=1,
        epoch=0,
        masking="whole-word",
    )
    assert_words_are_whole(batch, rows["continues_word"])


def test_static_masks_hide_stored_words_whole_too(segmented: Path, tmp_path: Path):
    prepare(segmented_config(tmp_path, lengths=(32,), format="tfrecord", epochs=1, masking="whole-word"))
    records = RecordData(tmp_path / "data")
    batch = records.examples("train", 32).rows(np.arange(records.count("train", 32)))
    row, slot = np.nonzero(batch["mask_weights"])
    batch["token_ids"][row, batch["mask_positions"][row, slot]] = batch["mask_labels"][row, slot]
    rows = PreparedData(segmented / "data").examples("train", 32).rows(np.arange(len(batch["token_ids"])))
    marks = {ids.tobytes(): marks for ids, marks in zip(rows["token_ids"], rows["continues_word"], strict=True)}
    assert_words_are_whole(batch, np.array([marks[ids.astype(np.int32).tobytes()] for ids in batch["token_ids"]]))


def test_a_damaged_file_of_boundaries_is_named(segmented: Path, tmp_path: Path):
    prepare(segmented_config(tmp_path))
    path = tmp_path / "data" / "train" / "16" / "00000.continued.npy"
    np.save(path, np.load(path)[:-1])
    with pytest.raises(InputError, match=r"`data` must be whole; .*00000\.continued\.npy"):
        PreparedData(tmp_path / "data").examples("train", 16)


def test_without_jieba_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'keras-bert-impl\[chinese\]'"):
        prepare(segmented_config(tmp_path, word_boundaries="jieba"))
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.txt", "vocab.txt"}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"word_boundaries": "jieba"}, {"examples": "chunks"}], ids=str)
def test_the_result_is_the_same_with_any_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings):
    if settings.get("word_boundaries") == "jieba":
        pytest.importorskip("jieba")
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 400)
    results = []
    for workers in (1, 2):
        config = segmented_config(tmp_path, workers=workers, output=str(tmp_path / f"data{workers}"), **settings)
        assert len(prepare(config)["examples"]["train"]["16"]["shards"]) > 5
        results.append(contents(tmp_path / f"data{workers}", "*.*"))
    assert results[0] == results[1]
    assert json.loads(results[0]["manifest.json"])["settings"]["word_boundaries"] in ("jieba", "spaces")
