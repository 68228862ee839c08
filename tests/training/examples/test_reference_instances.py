import dataclasses
import json
import lzma
from pathlib import Path
from random import Random

import pytest
from texts import toy_documents

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples.reference_instances import (
    ReferenceInstance,
    ReferenceSettings,
    instances_of_lines,
    reference_instances,
)
from keras_bert_impl.training.examples.reference_masking import masked_row, words_to_mask

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = """\
the cat sees a tree
cats run
the old dogs run near the tree

a dog sees the cats
the trees

old cat
"""


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer([*SPECIAL, *"the a old cat dog tree sees run near ##s".split()])


def as_the_original(instance: ReferenceInstance, tokenizer: WordPieceTokenizer) -> dict:
    return {
        "tokens": [tokenizer.id_to_token(token_id) for token_id in instance.token_ids],
        "segment_ids": instance.segment_ids,
        "is_random_next": instance.next_sentence_label == 1,
        "masked_lm_positions": instance.mask_positions,
        "masked_lm_labels": [tokenizer.id_to_token(token_id) for token_id in instance.mask_labels],
    }


def shown(instance: ReferenceInstance, tokenizer: WordPieceTokenizer) -> str:
    """The row in one line, each masked token with what stood there."""
    words = [tokenizer.id_to_token(token_id) for token_id in instance.token_ids]
    for position, label in zip(instance.mask_positions, instance.mask_labels, strict=True):
        words[position] += f"<{tokenizer.id_to_token(label)}>"
    return f"{instance.next_sentence_label} {sum(instance.segment_ids)} " + " ".join(words)


def instances(text: str, tokenizer: WordPieceTokenizer, **settings) -> list[ReferenceInstance]:
    return instances_of_lines(text.splitlines(), tokenizer, ReferenceSettings(**settings))


@pytest.mark.shared
@pytest.mark.parametrize("setting", range(3))
def test_the_originals_instances_are_reproduced(shared: Path, setting: int):
    data = shared / "data"
    tokenizer = WordPieceTokenizer.from_vocab_file(data / "vocab" / "bert-base-uncased-vocab.txt")
    with lzma.open(data / "bert_original" / "golden_instances.json.xz") as file:
        golden = json.load(file)
    assert len(golden) == 3
    options, expected = golden[setting]["args"], golden[setting]["instances"]
    settings = ReferenceSettings(
        length=options["max_seq_length"],
        max_predictions=options["max_predictions_per_seq"],
        masked_share=options["masked_lm_prob"],
        whole_words=options["do_whole_word_mask"],
        dupe_factor=options["dupe_factor"],
        short_seq_prob=options["short_seq_prob"],
        seed=options["random_seed"],
    )
    made = reference_instances([data / "bert_original" / "sample_text.txt"], tokenizer, settings)
    assert [as_the_original(instance, tokenizer) for instance in made] == expected


class _Stub:
    """What the Model Garden's maker asks of a tokenizer, answered by ours."""

    def __init__(self, tokenizer: WordPieceTokenizer):
        self.tokenizer, self.vocab = tokenizer, tokenizer.start_pieces

    def tokenize(self, text: str) -> list[str]:
        return self.tokenizer.tokenize(text, keep_special_tokens=False)


@pytest.mark.slow
@pytest.mark.parametrize("length,documents,seed", [(128, 40, 1), (16, 40, 2), (5, 12, 3), (24, 1, 4), (24, 2, 5)])
def test_the_model_gardens_maker_gives_the_same_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, documents: int, seed: int
):
    """It descends from the original, but draws masks otherwise (per word, from the end): so here it is lent ours."""
    theirs = pytest.importorskip(
        "official.nlp.data.create_pretraining_data", reason="needs the Model Garden: the extra `garden`"
    )
    words = sorted({word.lower().rstrip(".") for text in toy_documents(40) for line in text for word in line.split()})
    cut = [word[:3] for word in words] + [f"##{word[3:]}" for word in words if len(word) > 3]
    tokenizer = WordPieceTokenizer(list(dict.fromkeys([*SPECIAL, ".", *cut])))
    settings = ReferenceSettings(length=length, max_predictions=9, dupe_factor=3, seed=seed, whole_words=True)

    def our_masks(tokens, masked_share, max_predictions, vocab_words, rng, whole_words, longest):
        row = [tokenizer.token_to_id(token) for token in tokens]
        masked, positions = masked_row(
            row,
            words_to_mask(row, tokenizer, whole_words=whole_words),
            masked_share=masked_share,
            max_predictions=max_predictions,
            tokenizer=tokenizer,
            rng=rng,
        )
        return [vocab_words[token_id] for token_id in masked], positions, [tokens[position] for position in positions]

    monkeypatch.setattr(theirs, "create_masked_lm_predictions", our_masks)
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join("\n".join(document) for document in toy_documents(documents, seed)), encoding="utf-8")
    expected = theirs.create_training_instances(
        [str(path)],
        _Stub(tokenizer),
        lambda line: line.decode().strip(),
        settings.length,
        settings.dupe_factor,
        settings.short_seq_prob,
        settings.masked_share,
        settings.max_predictions,
        Random(seed),
        settings.whole_words,
    )
    made = [as_the_original(instance, tokenizer) for instance in reference_instances([path], tokenizer, settings)]
    assert made and made == [vars(instance) for instance in expected]


# Label, tokens of segment 1, the row; what was masked stands in angle brackets.
EXPECTED = {
    False: [
        "0 5 [CLS] the cat [CLS]<sees> a [MASK]<tree> [SEP] dog [MASK]<##s> [MASK]<run> near [SEP]",
        "1 3 [CLS] [MASK]<a> dog sees [MASK]<the> cat ##s [SEP] [MASK]<old> cat [SEP]",
        "1 5 [CLS] [MASK]<a> dog sees [MASK]<the> cat<cat> [SEP] [MASK]<the> cat sees a [SEP]",
        "1 8 [CLS] old cat<cat> [SEP] a [MASK]<dog> sees [MASK]<the> cat ##s the<the> [SEP]",
        "1 7 [CLS] [CLS]<the> [MASK]<tree> ##s [SEP] ##s [MASK]<run> the old dog tree<##s> [SEP]",
        "1 3 [CLS] the [MASK]<tree> ##s [SEP] [MASK]<old> cat [SEP]",
        "1 8 [CLS] old [MASK]<cat> [SEP] the<the> old dog ##s run [MASK]<near> [MASK]<the> [SEP]",
        "1 4 [CLS] cat [MASK]<sees> [MASK]<a> tree cat ##s [SEP] the tree<tree> [MASK]<##s> [SEP]",
        "1 3 [CLS] the old [MASK]<dog> [MASK]<##s> run near [MASK]<the> [SEP] old [MASK]<cat> [SEP]",
    ],
    True: [
        "1 8 [CLS] old cat [SEP] the old [MASK]<dog> [MASK]<##s> run [MASK]<near> [MASK]<the> [SEP]",
        "1 3 [CLS] the old [MASK]<dog> [MASK]<##s> run near [MASK]<the> [SEP] [MASK]<old> cat [SEP]",
        "1 5 [CLS] [MASK]<dog> sees the cat<cat> ##s<##s> [SEP] cat [MASK]<sees> a tree [SEP]",
        "1 8 [CLS] old [MASK]<cat> [SEP] dog sees [MASK]<the> cat ##s [MASK]<the> [MASK]<tree> [SEP]",
        "1 7 [CLS] the [MASK]<tree> [MASK]<##s> [SEP] [MASK]<sees> [MASK]<a> tree cat ##s run [SEP]",
        "1 3 [CLS] a dog sees the [MASK]<cat> [MASK]<##s> [SEP] [MASK]<old> cat [SEP]",
        "1 7 [CLS] [MASK]<the> tree ##s [SEP] [MASK]<cat> sees [MASK]<a> [MASK]<tree> cat ##s [SEP]",
        "1 4 [CLS] [MASK]<cat> [MASK]<##s> run [SEP] [MASK]<the> tree ##s [SEP]",
        "1 4 [CLS] [MASK]<the> [MASK]<cat> sees [MASK]<a> tree [SEP] the tree ##s [SEP]",
        "0 5 [CLS] [MASK]<the> cat sees<sees> [MASK]<a> tree [SEP] dog ##s [MASK]<run> near [SEP]",
    ],
}


@pytest.mark.parametrize("whole_words", [False, True])
def test_a_small_corpus_gives_the_rows_it_gave_when_all_agreed(tokenizer: WordPieceTokenizer, whole_words: bool):
    made = instances(
        TEXT, tokenizer, length=12, max_predictions=4, masked_share=0.3, dupe_factor=2, seed=5, whole_words=whole_words
    )
    assert [shown(instance, tokenizer) for instance in made] == EXPECTED[whole_words]


def test_special_tokens_in_the_text_are_text(tokenizer: WordPieceTokenizer):
    for instance in instances("the [MASK] cat\nthe [SEP] dog\n", tokenizer, dupe_factor=5):
        row = list(instance.token_ids)
        for position, label in zip(instance.mask_positions, instance.mask_labels, strict=True):
            row[position] = label
        assert tokenizer.mask_token_id not in row
        assert row.count(tokenizer.sep_token_id) == 2


def test_only_a_blank_line_ends_a_document_not_the_end_of_a_file(tokenizer: WordPieceTokenizer, tmp_path: Path):
    settings = ReferenceSettings(dupe_factor=20, short_seq_prob=0)
    (tmp_path / "first.txt").write_text("the cat\n", encoding="utf-8")
    (tmp_path / "second.txt").write_text("a dog", encoding="utf-8")
    joined = reference_instances([tmp_path / "first.txt", tmp_path / "second.txt"], tokenizer, settings)
    assert joined == instances_of_lines(["the cat", "a dog"], tokenizer, settings)
    assert {instance.next_sentence_label for instance in joined} == {0, 1}
    apart = instances_of_lines(["the cat", " \t ", "a dog"], tokenizer, settings)
    assert {instance.next_sentence_label for instance in apart} == {1}


def test_no_text_gives_no_instances(tokenizer: WordPieceTokenizer):
    assert instances("\n\n \n", tokenizer) == []


def test_the_originals_fault_is_kept_a_lone_documents_own_sentences_are_labelled_random(tokenizer: WordPieceTokenizer):
    made = instances("the cat\na dog\nold tree\n", tokenizer, dupe_factor=50)
    assert {instance.next_sentence_label for instance in made} == {0, 1}


def test_a_word_too_long_for_the_predictions_is_passed_over(tokenizer: WordPieceTokenizer):
    for instance in instances("cats\ndogs\ntrees\n", tokenizer, max_predictions=1, whole_words=True, dupe_factor=5):
        assert instance.mask_positions == []


def test_another_seed_gives_other_instances(tokenizer: WordPieceTokenizer):
    assert instances(TEXT, tokenizer, seed=1) == instances(TEXT, tokenizer, seed=1)
    assert instances(TEXT, tokenizer, seed=1) != instances(TEXT, tokenizer, seed=2)


@pytest.mark.parametrize(
    "settings,message",
    [
        ({"length": 4}, r"`length` must be a whole number of at least 5\. Received: length=4"),
        ({"max_predictions": 0}, r"`max_predictions` must be a whole number of at least 1\. Received: max_pred"),
        ({"dupe_factor": 1.5}, r"`dupe_factor` must be a whole number of at least 1\. Received: dupe_factor=1\.5"),
        ({"masked_share": 2}, r"`masked_share` must be a number from 0 to 1\. Received: masked_share=2"),
        ({"short_seq_prob": "x"}, r"`short_seq_prob` must be a number from 0 to 1\. Received: short_seq_prob='x'"),
        ({"seed": None}, r"`seed` must be a whole number from 0 to 18446744073709551615\. Received: seed=None"),
        ({"seed": -1}, r"`seed` must be a whole number from 0 to 18446744073709551615\. Received: seed=-1"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict, message: str):
    with pytest.raises(InputError, match=message):
        ReferenceSettings(**settings)


def test_settings_are_the_originals_defaults():
    assert dataclasses.asdict(ReferenceSettings()) == {
        "length": 128,
        "max_predictions": 20,
        "masked_share": 0.15,
        "whole_words": False,
        "dupe_factor": 10,
        "short_seq_prob": 0.1,
        "seed": 12345,
    }


def test_files_that_cannot_be_read_are_named(tokenizer: WordPieceTokenizer, tmp_path: Path):
    with pytest.raises(InputError, match=r"`paths` must name files that can be read\. Received: '.*no\.txt' \(No"):
        reference_instances([tmp_path / "no.txt"], tokenizer, ReferenceSettings())
    (tmp_path / "latin.txt").write_bytes("Käse\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"`paths` must name files of UTF-8 text\. Received: '.*latin\.txt'"):
        reference_instances([tmp_path / "latin.txt"], tokenizer, ReferenceSettings())
