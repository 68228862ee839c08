"""The public data sets are read as they are handed around, to the last row."""

from pathlib import Path

import pytest
from labelled_data import columns

from keras_bert_impl.training.finetuning.data import (
    label_counts,
    read_questions,
    read_tagged_sentences,
    read_text_examples,
    shared_texts,
)

pytestmark = [pytest.mark.slow, pytest.mark.shared]


@pytest.mark.parametrize(
    ("files", "kind", "given", "rows", "labels"),
    [
        ("glue/SST-2/train_part*.tsv", "classification", {}, 67_349, {"0": 29_780, "1": 37_569}),
        ("glue/SST-2/dev.tsv", "classification", {}, 872, {"0": 428, "1": 444}),
        ("glue/CoLA/train.tsv", "classification", {"text_column": "4"}, 8_551, {"0": 2_528, "1": 6_023}),
        ("glue/CoLA/dev.tsv", "classification", {"text_column": "4"}, 1_043, {"0": 322, "1": 721}),
        ("glue/CoLA/test.tsv", None, {}, 1_063, {}),
        ("glue/MRPC/train.tsv", "classification", {}, 3_668, {"0": 1_194, "1": 2_474}),
        ("glue/MRPC/dev.tsv", "classification", {}, 408, {"0": 129, "1": 279}),
        ("glue/MRPC/test.tsv", None, {}, 1_725, {}),
        ("glue/RTE/train.tsv", "classification", {}, 2_490, {"entailment": 1_249, "not_entailment": 1_241}),
        ("glue/RTE/dev.tsv", "classification", {}, 277, {"entailment": 146, "not_entailment": 131}),
        ("glue/RTE/test.tsv", None, {}, 3_000, {}),
        ("glue/STS-B/train.tsv", "regression", {}, 5_749, {}),
        ("glue/STS-B/dev.tsv", "regression", {}, 1_500, {}),
        ("glue/STS-B/test.tsv", None, {}, 1_379, {}),
        ("classification_zh/chnsenticorp/train.tsv.xz", "classification", {}, 9_600, {"0": 4_801, "1": 4_799}),
        ("classification_zh/chnsenticorp/dev.tsv.xz", "classification", {}, 1_200, {"0": 607, "1": 593}),
        ("classification_zh/chnsenticorp/test.tsv.xz", "classification", {}, 1_200, {"0": 592, "1": 608}),
    ],
)
def test_every_row_of_the_classification_sets_is_read(files, kind, given, rows, labels, shared: Path):
    config = columns(**given, **({"label_column": "2"} if given else {}))
    found = read_text_examples([shared / "data" / files], config, argument="train", kind=kind, say=[].append)
    assert len(found) == rows
    assert label_counts(found) == labels
    assert all(example.text for example in found)
    assert {example.text_pair is not None for example in found} == {
        any(name in files for name in ("MRPC", "RTE", "STS"))
    }
    if kind == "regression":
        assert min(example.label for example in found) == 0 and max(example.label for example in found) == 5


def test_texts_in_train_and_dev_are_found(shared: Path):
    train, dev = (
        read_text_examples(
            [shared / "data" / "glue" / "STS-B" / name], columns(), argument="t", kind="regression", say=[].append
        )
        for name in ("train.tsv", "dev.tsv")
    )
    known = {(example.text, example.text_pair) for example in train}
    assert shared_texts(train, dev) == sum((example.text, example.text_pair) in known for example in dev) == 6


@pytest.mark.parametrize(
    ("file", "sentences", "words", "scheme", "spans"),
    [
        ("ner/wnut17/train.conll", 3_394, 62_730, "IOB2", 1_975),
        ("ner/wnut17/dev.conll", 1_009, 15_733, "IOB2", 836),
        ("ner/wnut17/test.conll", 1_287, 23_394, "IOB2", 1_079),
        ("ner/wikigold.conll.txt", 1_696, 39_007, "IO, converted to IOB2", 3_558),
        ("ner_zh/weibo/train.conll", 1_350, 73_778, "IOB2", 1_895),
        ("ner_zh/weibo/dev.conll", 270, 14_509, "IOB2", 389),
        ("ner_zh/weibo/test.conll", 270, 14_842, "IOB2", 418),
        ("ner_zh/resume/train.conll.xz", 3_821, 124_099, "BMES, converted to IOB2", 13_440),
        ("ner_zh/resume/dev.conll.xz", 463, 13_890, "BMES, converted to IOB2", 1_497),
        ("ner_zh/resume/test.conll.xz", 477, 15_100, "BMES, converted to IOB2", 1_630),
    ],
)
def test_every_sentence_of_the_tagged_sets_is_read(file, sentences, words, scheme, spans, shared: Path):
    said: list[str] = []
    config = columns("tagging")
    found = read_tagged_sentences([shared / "data" / file], config, argument="train", say=said.append)
    assert len(found) == sentences
    assert sum(len(sentence.words) for sentence in found) == words
    assert sum(tag[0] == "B" for sentence in found for tag in sentence.tags) == spans
    assert said[-1].startswith(f"Tags of `train`: {scheme}, {spans:,} spans")


@pytest.mark.parametrize(
    ("file", "questions", "impossible", "moved", "absent"),
    [
        ("squad/dev-v1.1.json.xz", 10_570, 0, 0, 0),
        ("squad/dev-v2.0.json.xz", 11_873, 5_945, 0, 0),
        ("squad/xquad.en.json.xz", 1_190, 0, 0, 0),
        ("squad/xquad.zh.json.xz", 1_190, 0, 0, 0),
        ("squad_zh/cmrc2018_dev.json.xz", 3_219, 0, 7, 193),
        ("squad_zh/cmrc2018_trial.json.xz", 1_002, 0, 5, 0),
    ],
)
def test_every_question_is_read_with_its_answers_in_place(file, questions, impossible, moved, absent, shared: Path):
    said: list[str] = []
    found = read_questions([shared / "data" / file], columns("qa"), argument="train", say=said.append)
    assert len(found) == questions
    assert sum(question.impossible for question in found) == impossible
    answers = [(question.context, answer) for question in found for answer in question.answers]
    placed = [(context, answer) for context, answer in answers if answer.start >= 0]
    assert len(answers) - len(placed) == absent
    assert all(context[answer.start : answer.start + len(answer.text)] == answer.text for context, answer in placed)
    assert any(f"{moved} answers with a wrong start" in line for line in said) == bool(moved)
