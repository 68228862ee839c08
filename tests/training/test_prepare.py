import dataclasses
import gzip
import json
import lzma
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from toy_data import toy_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.prepare import load_tokenizer, prepare


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def with_text(config: PrepareConfig, text: str) -> PrepareConfig:
    Path(config.inputs[0]).write_text(text, encoding="utf-8")
    return config


def test_the_manifest_counts_what_is_there(tmp_path: Path):
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path), say=said.append)
    assert manifest == json.loads((tmp_path / "data" / "manifest.json").read_text(encoding="utf-8"))
    documents = manifest["documents"]
    assert documents["train"] + documents["held_out"] == documents["read"] == 150
    assert documents["held_out"] == pytest.approx(30, abs=15)
    lines = Path(tmp_path / "corpus.txt").read_text(encoding="utf-8").split("\n")
    assert sum(manifest["sentences"].values()) == sum(bool(line) for line in lines)
    assert sum(manifest["tokens"].values()) == sum(len(line.split()) + 1 for line in lines if line)
    assert manifest["documents_by_layout"] == {"lines": 150, "paragraphs": 0, "wrapped": 0}
    assert manifest["files"][0]["bytes"] == (tmp_path / "corpus.txt").stat().st_size
    assert manifest["settings"]["seed"] == 1 and "workers" not in manifest["settings"]
    data = PreparedData(tmp_path / "data")
    for split in ("train", "held_out"):
        for length in (16, 64):
            facts = manifest["examples"][split][str(length)]
            rows = data.examples(split, length).rows(np.arange(facts["examples"]))
            assert facts["random_next_share"] == pytest.approx(rows["next_sentence_labels"].mean())
            assert facts["mean_fill"] == pytest.approx(rows["padding_mask"].mean())
    assert manifest["notes"] == []
    size = manifest["text"]["characters"]
    assert size == sum(len(line) + 1 for line in lines if line)
    assert re.match(rf"Documents: 150 in {size:,} characters of text; \d+ for training, \d+ held out\.$", said[0])
    assert said[-1] == f"Prepared data: {tmp_path / 'data'}"


def test_the_result_is_the_same_with_any_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 3000)
    results = []
    for workers in (1, 2, 4):
        config = toy_config(tmp_path, workers=workers, output=str(tmp_path / f"data{workers}"))
        assert len(prepare(config)["examples"]["train"]["16"]["shards"]) > 5
        results.append(contents(tmp_path / f"data{workers}"))
    assert results[0] == results[1] == results[2]


def test_the_result_is_the_same_from_every_form_of_the_text(tmp_path: Path):
    config = toy_config(tmp_path)
    documents = Path(config.inputs[0]).read_text(encoding="utf-8").strip().split("\n\n")
    lines = "".join(json.dumps({"body": text, "n": 1}) + "\n" for text in documents)
    (tmp_path / "in").mkdir()
    for number, text in enumerate(documents):
        (tmp_path / "in" / f"{number:04d}.txt").write_text(text, encoding="utf-8")
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "corpus.txt.xz").write_bytes(lzma.compress(Path(config.inputs[0]).read_bytes()))
    forms: dict[str, dict] = {
        "plain": {},
        "xz": {"inputs": (str(tmp_path / "corpus.txt.xz"),)},
        "json": {"inputs": (str(tmp_path / "corpus.jsonl.gz"),), "text_field": "body"},
        "files": {"inputs": (str(tmp_path / "in"),), "documents": "file"},
        "texts": {"inputs": ()},
    }
    results: list[dict[str, bytes]] = []
    surveys: list[str] = []
    for name, changes in forms.items():
        texts, said = documents if name == "texts" else None, []
        prepare(dataclasses.replace(config, output=str(tmp_path / name), **changes), said.append, texts=texts)
        surveys += (line for line in said if line.startswith("Documents: "))
        results.append(contents(tmp_path / name))
        results[-1].pop("manifest.json")
    assert results[1:] == results[:1] * 4
    assert surveys[1:] == surveys[:1] * 4 and " characters of text; " in surveys[0]


def test_another_seed_gives_other_examples(tmp_path: Path):
    prepare(toy_config(tmp_path, seed=1, output=str(tmp_path / "one")))
    prepare(toy_config(tmp_path, seed=2, output=str(tmp_path / "two")))
    name = "train/64/00000.tokens.npy"
    assert contents(tmp_path / "one")[name] != contents(tmp_path / "two")[name]


def test_more_passes_give_more_and_other_pairs(tmp_path: Path):
    once = prepare(toy_config(tmp_path, output=str(tmp_path / "once")))
    thrice = prepare(toy_config(tmp_path, output=str(tmp_path / "thrice"), passes=3))
    ratio = thrice["examples"]["train"]["16"]["examples"] / once["examples"]["train"]["16"]["examples"]
    assert 2.5 < ratio < 3.5
    examples = PreparedData(tmp_path / "thrice").examples("train", 16)
    rows = examples.rows(np.arange(len(examples)))
    assert np.unique(rows["example_ids"]).size == len(examples)
    assert np.unique(rows["token_ids"], axis=0).shape[0] > 0.8 * len(examples)


def test_duplicates_are_in_neither_part_twice(tmp_path: Path):
    config = toy_config(tmp_path)
    text = Path(config.inputs[0]).read_text(encoding="utf-8")
    said: list[str] = []
    manifest = prepare(with_text(config, text + "\n" + text.replace("\n", "\r\n")), say=said.append)
    assert manifest["documents"]["duplicates_removed"] == 150
    assert manifest["documents"]["train"] + manifest["documents"]["held_out"] == 150
    assert ", 150 exact duplicates of others left out; " in said[0]


def test_near_duplicates_are_on_one_side_and_removed_when_asked(tmp_path: Path):
    config = toy_config(tmp_path, lengths=(16,))
    text = Path(config.inputs[0]).read_text(encoding="utf-8")
    with_text(config, text + "\n" + re.sub(r"\.\n\n", ". Again.\n\n", text))
    said: list[str] = []
    manifest = prepare(config, say=said.append)
    assert manifest["near_duplicates"]["families"] > 130
    assert manifest["near_duplicates"]["documents"] > 130
    assert manifest["documents"]["train"] + manifest["documents"]["held_out"] == 299
    assert f", {manifest['near_duplicates']['documents']} near-duplicates of others kept on one side; " in said[0]
    data = PreparedData(tmp_path / "data")
    sides = []
    for split in ("train", "held_out"):
        examples = data.examples(split, 16)
        rows = examples.rows(np.arange(len(examples)))["token_ids"]
        sides.append({bytes(row[:8].tobytes()) for row in rows})
    assert len(sides[0] & sides[1]) < 0.2 * len(sides[1])
    removed = prepare(dataclasses.replace(config, near_duplicates="remove", output=str(tmp_path / "less")), said.append)
    assert removed["documents"]["near_duplicates_removed"] == manifest["near_duplicates"]["documents"]
    assert removed["documents"]["read"] == 300
    off = prepare(dataclasses.replace(config, near_duplicates="off", output=str(tmp_path / "off")))
    assert off["near_duplicates"] == {"families": None, "documents": None}


def test_text_of_excluded_files_is_left_out_and_counted(tmp_path: Path):
    config = toy_config(tmp_path)
    documents = Path(config.inputs[0]).read_text(encoding="utf-8").strip().split("\n\n")
    (tmp_path / "test.jsonl").write_text(
        "".join(json.dumps({"question": text}) + "\n" for text in documents[:7]), encoding="utf-8"
    )
    said: list[str] = []
    manifest = prepare(
        dataclasses.replace(config, exclude=(str(tmp_path / "test.jsonl"),), exclude_field="question"), said.append
    )
    (excluded,) = manifest["excluded"]
    assert excluded["documents"] == 7 and excluded["path"].endswith("test.jsonl") and len(excluded["sha256"]) == 64
    assert excluded["documents_removed"] == manifest["documents"]["excluded"] >= 7
    counts = manifest["documents"]
    assert counts["train"] + counts["held_out"] + counts["excluded"] == 150
    assert said[0].startswith(f"Excluded {tmp_path / 'test.jsonl'}: 7 documents; ")
    assert f", {counts['excluded']} left out that share text with excluded files; " in said[1]


def test_what_was_changed_in_the_text_is_counted_and_said(tmp_path: Path):
    config = toy_config(
        tmp_path, on_bad_bytes="replace", max_document_chars=1000, max_sentence_chars=100, sentences="lines"
    )
    text = b"\xef\xbb\xbfThe old ship\xff sails.\r\n" + b"The small barn waits. " * 100 + b"\n\nThe\0 old\x0b barn.\n\n"
    Path(config.inputs[0]).write_bytes(text + b"The quiet fence.\n" * 200)
    manifest = prepare(config)
    assert manifest["text"] == {
        "characters": 5637,
        "byte_order_marks": 1,
        "carriage_returns": 1,
        "separators": 1,
        "nul_characters": 1,
        "replaced": 1,
        "long_lines": 1,
        "long_documents": 2,
        "empty_texts": 0,
        "long_sentences": 3,
        "upper_case_sentences": 109,
    }
    assert [note for note in manifest["notes"] if not note.startswith("Warning: ")][:4] == [
        "Not UTF-8 and replaced by U+FFFD: 1 place.",
        "Longer than 1,000 characters and cut: 1 line.",
        "Longer than 1,000 characters and cut: 2 documents.",
        "Longer than 100 characters and cut: 3 sentences.",
    ]


def test_documents_that_are_all_alike_hold_nothing_out(tmp_path: Path):
    said: list[str] = []
    text = "\n".join(f"The old ship sails near the small barn {number} times." for number in range(40))
    prepare(with_text(toy_config(tmp_path), f"{text}\n\n{text} Again.\n\nOnce more.\n{text}"), say=said.append)
    assert (
        "The documents are near-duplicates of one another, in families too large for the held-out part, "
        "so nothing is held out for evaluation."
    ) in said


def test_nothing_to_read_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"`inputs` must name at least one text file\. Received: inputs=\(\)"):
        prepare(dataclasses.replace(toy_config(tmp_path), inputs=()))


def test_one_document_has_true_successors_only_and_it_is_said(tmp_path: Path):
    said: list[str] = []
    sentences = [f"The old ship sails near the small barn {number} times." for number in range(40)]
    manifest = prepare(with_text(toy_config(tmp_path), "\n".join(sentences)), say=said.append)
    for length in ("16", "64"):
        facts = manifest["examples"]["train"][length]
        assert facts["random_next_share"] == 0 and facts["examples"] > 5
    assert manifest["documents"] == {
        "read": 1,
        "excluded": 0,
        "duplicates_removed": 0,
        "near_duplicates_removed": 0,
        "train": 1,
        "held_out": 0,
    }
    assert "There is one document only, so nothing is held out for evaluation." in said
    assert any(line.startswith("The training part is a single document, so no second part is random") for line in said)
    assert PreparedData(tmp_path / "data").count("held_out", 16) == 0


def test_special_tokens_in_the_text_are_text(tmp_path: Path):
    text = "\n\n".join(f"The [MASK] {number} ship [SEP].\nThe [CLS] barn {number}." for number in range(9))
    prepare(with_text(toy_config(tmp_path), text))
    data = PreparedData(tmp_path / "data")
    token_ids = data.examples("train", 64).rows(np.arange(data.count("train", 64)))["token_ids"]
    assert not (token_ids == data.tokenizer.mask_token_id).any()
    assert ((token_ids == data.tokenizer.sep_token_id).sum(axis=1) == 2).all()


def test_documents_without_tokens_are_counted(tmp_path: Path):
    config = toy_config(tmp_path)
    text = Path(config.inputs[0]).read_text(encoding="utf-8")
    manifest = prepare(with_text(config, "\x00\x01\n\n" + text))
    assert manifest["skipped"]["documents_without_tokens"] == 1
    assert manifest["notes"] == ["Documents without a token, skipped: 1."]


def test_very_long_sentences_fill_their_rows(tmp_path: Path):
    text = "\n\n".join(" ".join(f"{(7 * n + k) % 100}" for k in range(300)) for n in range(6))
    manifest = prepare(with_text(toy_config(tmp_path, short_seq_prob=0), text))
    assert manifest["examples"]["train"]["64"]["mean_fill"] == 1
    assert manifest["examples"]["train"]["64"]["random_next_share"] == 1


def test_tokens_that_are_cut_off_are_counted_and_said(tmp_path: Path):
    said: list[str] = []
    # One document, in pairs of its sentences of 20 words and a full stop: room for 13 of 42 tokens, or for all.
    text = "\n".join(" ".join(["ship"] * 20) + "." for _ in range(4))
    config = toy_config(tmp_path, short_seq_prob=0, held_out_share=0, sentences="lines", passes=2)
    manifest = prepare(with_text(config, text), say=said.append)
    at_16, at_64 = (manifest["examples"]["train"][length] for length in ("16", "64"))
    assert manifest["tokens"]["train"] == 84
    assert (at_16["own_tokens"], at_16["kept_tokens"], at_16["truncated_tokens"]) == (168, 52, 116)
    # Three sentences reach the target of 61: 63 tokens, 2 of them cut off, and one sentence without a partner.
    assert (at_64["kept_tokens"], at_64["truncated_tokens"], at_64["unpaired_tokens"]) == (122, 4, 42)
    assert manifest["skipped"]["truncated_tokens"]["train"] == {"16": 116, "64": 4}
    line = next(line for line in said if line.startswith("Length 16, training in 2 passes: 4 examples, "))
    assert line.endswith("; 116 tokens (69.0%) cut off because a pair was longer than the length.")


def test_nothing_is_said_of_cut_off_tokens_when_there_are_none(tmp_path: Path):
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path, lengths=(512,)), say=said.append)
    assert manifest["examples"]["train"]["512"]["truncated_tokens"] == 0
    assert not any("cut off" in line for line in said)


def test_why_more_second_parts_are_random_is_said_once(tmp_path: Path):
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path, lengths=(8, 64)), say=said.append)
    single = {
        length: sum(manifest["examples"][split][length]["single_sentence_chunks"] for split in ("train", "held_out"))
        for length in ("8", "64")
    }
    assert single["8"] > single["64"] > 0
    (line,) = (line for line in said if "chunk of a single sentence" in line)
    assert line == (
        "A random second part is drawn for 50% of the chunks of two or more sentences, and for every chunk of a single "
        "sentence, which has no second part of its own "
        f"({single['8']:,} at length 8, {single['64']:,} at length 64, training and held-out part together)."
    )


def test_what_covers_several_passes_says_so(tmp_path: Path):
    said: list[str] = []
    prepare(toy_config(tmp_path, lengths=(16,), passes=2, held_out_share=0), said.append)
    assert any(re.match(r"Length 16, training in 2 passes: [\d,]+ examples, ", line) for line in said)
    assert any(
        line.startswith("Masks of an epoch at length 16 in 2 passes, at a share of 15%: about ") for line in said
    )
    assert any(re.search(r"\([\d,]+ at length 16, in 2 passes\)\.$", line) for line in said)
    assert not any("held-out" in line for line in said)


def test_one_document_in_several_passes_says_so(tmp_path: Path):
    text = "\n".join(" ".join(["ship"] * 30) + "." for _ in range(3))
    notes = prepare(with_text(toy_config(tmp_path, lengths=(64,), passes=3, short_seq_prob=0), text))["notes"]
    assert any(note.endswith(", and 3 single sentences without a successor left out in 3 passes.") for note in notes)


def test_only_rows_that_pretraining_packs_are_said_to_be(tmp_path: Path):
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path, lengths=(128, 255, 256)), said.append)
    for split in ("train", "held_out"):
        for facts in manifest["examples"][split].values():
            assert 0 < facts["packed_rows"] < facts["examples"]
    lines = [line.split(":")[0] for line in said if ", packed into " in line]
    assert lines == ["Length 256, training"]


def test_a_vocabulary_that_does_not_know_the_text_is_warned_of(tmp_path: Path):
    said: list[str] = []
    config = toy_config(tmp_path)
    manifest = prepare(
        with_text(config, "\n\n".join(f"zyx wvu {n} tsr.\nqpo nml kji hg." for n in range(9))), said.append
    )
    warning = f"Warning: {manifest['unknown_share']:.1%} of the tokens are unknown to the vocabulary; "
    assert manifest["unknown_share"] > 0.5
    assert manifest["notes"][0] == warning + "take one that fits, or learn one from this text with `keras-bert vocab`."
    assert manifest["notes"][0] in said


def test_a_cased_vocabulary_for_lower_cased_text_is_warned_of(tmp_path: Path):
    config = toy_config(tmp_path)
    vocabulary = Path(config.vocab)
    size = len(vocabulary.read_text(encoding="utf-8").split())
    with vocabulary.open("a", encoding="utf-8") as file:
        file.write("Ship\n##Barn\nÉcole\n")
    assert prepare(config)["notes"] == [
        f"Warning: 3 tokens of the vocabulary (of {size + 3}) can never occur, for they have upper-case letters "
        "and the text is lower-cased; if the vocabulary is a cased one, give --cased."
    ]
    cased = toy_config(
        tmp_path, cased=True, output=str(tmp_path / "cased"), vocab=str(vocabulary.rename(tmp_path / "v"))
    )
    assert not any("can never occur" in note for note in prepare(cased)["notes"])


def test_a_few_upper_case_tokens_do_not_make_a_vocabulary_a_cased_one(tmp_path: Path):
    config = toy_config(tmp_path)
    with Path(config.vocab).open("a", encoding="utf-8") as file:
        file.write("<S>\n<T>\n" + "".join(f"[unused{number}]\n" for number in range(100)))
    size = len(Path(config.vocab).read_text(encoding="utf-8").split())
    tokens = f"2 tokens of the vocabulary (of {size})"
    assert prepare(config)["notes"] == [
        f"Upper-case letters, which lower-cased text never has, are in {tokens}: <S>, <T>."
    ]
    cased = dataclasses.replace(config, cased=True, output=str(tmp_path / "cased"))
    assert (
        f"Warning: 1,234 sentences of the text (100%) have upper-case letters, which only {tokens} have; "
        "if the vocabulary is a lower-casing one, leave --cased out."
    ) in prepare(cased)["notes"]
    lower = Path(config.inputs[0]).read_text(encoding="utf-8").lower()
    again = dataclasses.replace(cased, output=str(tmp_path / "lower"))
    assert prepare(with_text(again, lower))["notes"] == []


def test_held_out_documents_without_an_example_are_said(tmp_path: Path):
    config = with_text(toy_config(tmp_path), "The old ship.\n\nThe small barn.\n\nThe old barn.")
    manifest = prepare(config)
    assert manifest["documents"]["held_out"] == 1
    assert manifest["notes"][1:] == [
        "The held-out part has 1 document but no example of length 16, 64: "
        "it takes a document of two sentences, or two documents."
    ]


def test_a_vocabulary_is_taken_from_a_file_or_a_directory(tmp_path: Path):
    config = toy_config(tmp_path)
    prepare(config)
    tokenizer = load_tokenizer(config.vocab)
    for place in ("data", "run"):
        tokenizer.save_pretrained(tmp_path / "run" / "model")
        assert load_tokenizer(tmp_path / place).vocabulary == tokenizer.vocabulary
    assert load_tokenizer(config.vocab).lowercase
    assert not load_tokenizer(config.vocab, cased=True).lowercase


def test_an_output_with_content_is_refused(tmp_path: Path):
    config = toy_config(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match=r"`output` must be a new or empty directory\. Received: '.*data'"):
        prepare(config)
    assert contents(tmp_path / "data") == {"mine.txt": b"mine"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"`inputs` must hold text\. Received: "),
        (b"\n\n", r"`inputs` must hold text\. Received: "),
        (b"one\xff", r"`inputs` must be UTF-8 text\. Received: '.*corpus\.txt', which is not at byte 3 \(0xff\)"),
        (b"One sentence.", r"`inputs` must hold a document of two sentences, or two documents\. Received: \['.*'\]"),
        (
            b"One.\n\nOne.",
            r"Received: \['.*'\], which without 1 duplicate or excluded document give no sentence pair of",
        ),
        (
            b"One.\n\nTwo.",
            r"`inputs` must leave the training part a document of two sentences, or two documents; give more text, or "
            r"`held_out_share` 0 to hold nothing out\. Received: \['.*corpus\.txt'\], with 1 of 2 documents held out; "
            r"the training part gives no sentence pair of length 16$",
        ),
    ],
)
def test_bad_input_leaves_nothing_behind(tmp_path: Path, content: bytes, message: str):
    config = toy_config(tmp_path, output=str(tmp_path / "new" / "data"))
    (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        prepare(config)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "vocab.txt"]


def test_a_missing_vocabulary_is_refused(tmp_path: Path):
    config = toy_config(tmp_path)
    Path(config.vocab).unlink()
    with pytest.raises(InputError, match=r"vocab\.txt"):
        prepare(config)


def test_without_random_parts_two_documents_are_not_enough(tmp_path: Path):
    config = toy_config(tmp_path, next_sentence_prob=0, held_out_share=0)
    message = (
        r"`inputs` must hold a document of two sentences\. Received: .*, which give no sentence pair of length 16$"
    )
    with pytest.raises(InputError, match=message):
        prepare(with_text(config, "One.\n\nTwo."))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, workers: int):
    # A limit on the size of files is what an ordinary user can have in place of a full disk.
    toy_config(tmp_path)
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "import keras_bert_console\n"
        "from pathlib import Path\n"
        "from toy_data import toy_config\n"
        "from keras_bert_impl.errors import InputError\n"
        "from keras_bert_impl.training.prepare import prepare\n"
        "folder = Path(sys.argv[1])\n"
        f"config = toy_config(folder, workers={workers})\n"
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "try:\n"
        "    prepare(config)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    assert resource.RLIMIT_FSIZE is not None
    tests = str(Path(__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), tests], capture_output=True, text=True, env=os.environ, check=True
    )
    assert done.stdout.startswith("`output` could not be written: File too large. Received: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "vocab.txt"]
