"""What `prepare` tells about text and vocabulary, and what it warns of."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_data import toy_config

from keras_bert_impl.training.configs import PrepareConfig
from keras_bert_impl.training.examples.masking import mask_batch, max_predictions
from keras_bert_impl.training.examples.prepared_data import PreparedData
from keras_bert_impl.training.prepare import prepare


def config_of(folder: Path, documents: list[str], **settings: Any) -> PrepareConfig:
    config = toy_config(folder, **settings)
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return config


def warnings_of(config: PrepareConfig) -> list[str]:
    said: list[str] = []
    notes = prepare(config, say=said.append)["notes"]
    assert set(notes) <= set(said)
    return [note for note in notes if note.startswith("Warning: ")]


def test_documents_of_one_sentence_are_warned_of(tmp_path: Path) -> None:
    singles = [f"The old ship sails near the small barn {number} times." for number in range(19)]
    (warning,) = warnings_of(config_of(tmp_path, [*singles, "The barn waits.\nThe ship sails."]))
    assert warning.startswith("Warning: 95% of the documents are a single sentence, so nearly every second part is")
    chunks = config_of(tmp_path, singles, examples="chunks", output=str(tmp_path / "chunks"))
    assert warnings_of(chunks) == []


def test_text_in_upper_case_is_warned_of_with_a_lower_case_vocabulary(tmp_path: Path) -> None:
    cased = toy_config(tmp_path, cased=True)
    notes = warnings_of(cased)
    assert notes[-1] == (
        "Warning: 1,234 sentences of the text (100%) have upper-case letters, which no token of the vocabulary has; "
        "if the vocabulary is a lower-casing one, leave --cased out."
    )
    said: list[str] = []
    uncased = prepare(toy_config(tmp_path, output=str(tmp_path / "uncased")), say=said.append)
    assert uncased["notes"] == []
    assert "Sentences: 1,234 (100% have upper-case letters, which are lower-cased); tokens: 13,574, 0.00%" in said[1]


def test_lower_case_text_is_warned_of_with_a_cased_vocabulary(tmp_path: Path) -> None:
    config = toy_config(tmp_path, cased=True)
    text = (tmp_path / "corpus.txt").read_text(encoding="utf-8").lower()
    (tmp_path / "corpus.txt").write_text(text, encoding="utf-8")
    with (tmp_path / "vocab.txt").open("a", encoding="utf-8") as file:
        file.write("The\nShip\n")
    assert warnings_of(config) == [
        "Warning: 2 tokens of the vocabulary (of 147) have upper-case letters and the text has none; "
        "if it was lower-cased, take a lower-casing vocabulary."
    ]


def test_many_duplicates_are_warned_of(tmp_path: Path) -> None:
    documents = [
        f"The {one} ship sails.\nThe small {one} barn waits." for one in "old red quiet bright heavy small".split()
    ]
    exact = config_of(tmp_path, documents * 2)
    assert warnings_of(exact) == [
        "Warning: 50% of the documents are exact duplicates of others and were left out; is a file named twice, or "
        "the text gathered twice?"
    ]
    few = config_of(tmp_path, [*documents, documents[0]], output=str(tmp_path / "few"))
    assert warnings_of(few) == []


def test_many_near_duplicates_are_warned_of(tmp_path: Path) -> None:
    toy_config(tmp_path)
    documents = (tmp_path / "corpus.txt").read_text(encoding="utf-8").strip().split("\n\n")
    twice = [*documents, *(f"{document} Again." for document in documents)]
    (warning,) = warnings_of(config_of(tmp_path, twice, lengths=(16,)))
    assert warning.startswith("Warning: 4") or warning.startswith("Warning: 5")
    assert warning.endswith(
        "% of the documents are near-duplicates of others; --near-duplicates remove keeps the first of each."
    )
    removed = config_of(tmp_path, twice, lengths=(16,), near_duplicates="remove", output=str(tmp_path / "removed"))
    (warning,) = warnings_of(removed)
    assert warning.endswith("% of the documents are near-duplicates of others.")


def test_unknown_characters_and_words_are_named_with_their_counts(tmp_path: Path) -> None:
    documents = [f"The old ship {number} ☃ and É☃é.\nThe small barn ☃ zyx." for number in range(8)]
    said: list[str] = []
    manifest = prepare(
        config_of(tmp_path, [*documents, "The zyx barn.\nA \u0301ship\U000e0001 \ue000 x\u0903y."]), said.append
    )
    assert manifest["unknown_characters"][:3] == [
        {"character": "☃", "code_point": "U+2603", "count": 24},
        {"character": "e", "code_point": "U+0065", "count": 16},
        {"character": "x", "code_point": "U+0078", "count": 10},
    ]
    assert manifest["unknown_words"][:3] == [
        {"word": "☃", "count": 16},
        {"word": "zyx", "count": 9},
        {"word": "and", "count": 8},
    ]
    (line,) = (line for line in said if line.startswith("Characters that the vocabulary lacks: "))
    assert "☃ U+2603 (24), e U+0065 (16), " in line
    assert any(
        line.startswith("Words that become the unknown token: ☃ (16), zyx (9), and (8), e☃e (8)") for line in said
    )


def test_a_long_unknown_word_is_named_by_its_beginning(tmp_path: Path) -> None:
    said: list[str] = []
    manifest = prepare(
        config_of(tmp_path, [f"The {'z' * 9000} barn.\nThe {'q' * 40} ship {'v' * 41}." for _ in range(2)]), said.append
    )
    words = {fact["word"] for fact in manifest["unknown_words"]}
    assert {"q" * 40, "v" * 40 + "…", "z" * 40 + "…"} <= words
    (line,) = (line for line in said if line.startswith("Words that become the unknown token: "))
    assert f"{'z' * 40}… (" in line and len(line) < 600


def test_the_entropy_of_a_single_word_is_0_without_a_sign(tmp_path: Path) -> None:
    said: list[str] = []
    config = config_of(tmp_path, ["ship ship ship"], examples="chunks", held_out_share=0)
    manifest = prepare(config, said.append)
    assert str(manifest["unigram_entropy"]) == "{'nats': 0.0, 'bits': 0.0}"
    assert "Unigram entropy of the training tokens: 0.000 nats (0.000 bits) a token." in said


@pytest.mark.slow
def test_unknown_words_do_not_depend_on_the_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keras_bert_impl.training.prepare.block_size", lambda size: 300)
    documents = [f"The w{number % 7} ship v{number % 5}.\nThe small z{number % 3} barn." for number in range(60)]
    found = [
        prepare(config_of(tmp_path, documents, workers=workers, output=str(tmp_path / str(workers))))
        for workers in (1, 2)
    ]
    assert found[0] == found[1] and found[0]["unknown_words"][0] == {"word": "z0", "count": 20}


def test_the_unigram_entropy_is_that_of_the_training_tokens(tmp_path: Path) -> None:
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path), say=said.append)
    counts = PreparedData(tmp_path / "data").token_counts
    shares = [count / counts.sum() for count in counts.tolist() if count]
    nats = -sum(share * math.log(share) for share in shares)
    assert manifest["unigram_entropy"]["nats"] == pytest.approx(nats)
    assert manifest["unigram_entropy"]["bits"] == pytest.approx(nats / math.log(2))
    assert f"Unigram entropy of the training tokens: {nats:.3f} nats ({nats / math.log(2):.3f} bits) a token." in said


def test_expected_masks_are_those_that_are_drawn(tmp_path: Path) -> None:
    said: list[str] = []
    manifest = prepare(toy_config(tmp_path), say=said.append)
    data = PreparedData(tmp_path / "data")
    tokenizer = data.tokenizer
    for length in (16, 64):
        facts = manifest["examples"]["train"][str(length)]["expected_masks"]
        rows = mask_batch(
            data.examples("train", length).rows(np.arange(data.count("train", length))),
            vocab_size=tokenizer.vocab_size,
            special_token_ids=tokenizer.special_token_ids,
            mask_token_id=tokenizer.mask_token_id,
            max_predictions=max_predictions(length, 0.15),
            masked_share=0.15,
            seed=1,
            epoch=0,
        )
        assert facts["predictions"] == rows["mask_weights"].sum()
        kinds = [facts[name] for name in ("mask", "random", "unchanged")]
        assert all(type(count) is int for count in kinds) and sum(kinds) == facts["predictions"]
        assert facts["mask"] == pytest.approx(0.8 * facts["predictions"], abs=0.5)
        assert 0 <= facts["unchanged"] - facts["random"] <= 1
        assert facts["max_predictions"] == max_predictions(length, 0.15)
        assert facts["masked_share"] == 0.15
        line = f"Masks of an epoch at length {length}, at a share of 15%: about {facts['predictions']:,.0f} tokens to"
        assert any(said_line.startswith(line) for said_line in said)


def test_masks_by_kind_add_up_however_few(tmp_path: Path) -> None:
    said: list[str] = []
    prepare(config_of(tmp_path, ["The old ship sails.\nThe small barn waits."], lengths=(32,)), said.append)
    (line,) = (line for line in said if line.startswith("Masks of an epoch"))
    assert line.endswith("about 2 tokens to predict, 2 as [MASK], 0 as another token, 0 unchanged.")
    with_more = config_of(
        tmp_path, ["The old ship sails.\nThe small barn waits."] * 4, lengths=(128,), output=str(tmp_path / "more")
    )
    facts = prepare(with_more)["examples"]["train"]["128"]["expected_masks"]
    assert facts["mask"] + facts["random"] + facts["unchanged"] == facts["predictions"]


def test_what_is_not_all_is_not_said_to_be_all(tmp_path: Path) -> None:
    toy_config(tmp_path)
    text = (tmp_path / "corpus.txt").read_text(encoding="utf-8")
    said: list[str] = []
    prepare(config_of(tmp_path, [*text.strip().split("\n\n"), "the old ship sails."]), said.append)
    assert any(line.startswith("Sentences: 1,235 (over 99% have upper-case letters, ") for line in said)
    said.clear()
    few = config_of(tmp_path, [*text.lower().strip().split("\n\n"), "The old ☃."], output=str(tmp_path / "few"))
    prepare(few, said.append)
    assert any(
        line.startswith("Sentences: 1,235 (under 1% have upper-case letters, which are lower-cased); tokens: 13,578, ")
        for line in said
    )


def test_one_document_is_said(tmp_path: Path) -> None:
    config = config_of(tmp_path, ["The old ship sails.\nThe small barn waits.\nThe old barn."])
    assert "There is one document only, so nothing is held out for evaluation." in prepare(config)["notes"]
