from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from records import LENGTH, PREDICTIONS, VOCAB_SIZE, example, features, random_rows, read_features, write_records

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer
from keras_bert_impl.training.examples.tfrecord import TFRecordExamples
from keras_bert_impl.training.examples.tfrecord_writing import write_tfrecords


def opened(*paths: Path | str, **settings) -> TFRecordExamples:
    return TFRecordExamples(paths, **{"vocab_size": VOCAB_SIZE, **settings})


def assert_rows(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], indices=slice(None)) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values[indices], err_msg=name)
        assert found[name].dtype == values.dtype, name


@pytest.mark.parametrize("files", [1, 3])
def test_what_was_written_is_read_again_in_any_order(tmp_path: Path, files: int):
    rows, paths = random_rows(50), [tmp_path / str(number) for number in range(files)]
    write_tfrecords([rows], paths)
    examples = opened(*paths)
    assert (len(examples), examples.length, examples.predictions) == (50, LENGTH, PREDICTIONS)
    in_files = np.concatenate([np.arange(number, 50, files) for number in range(files)])
    assert_rows(examples.rows(np.arange(50)), rows, in_files)
    some = np.array([49, 0, 17, 17, 33])
    assert_rows(examples.rows(some), rows, in_files[some])


def test_patterns_are_replaced_by_what_they_match_in_order(tmp_path: Path):
    paths = [tmp_path / f"part-{number}" for number in range(3)]
    write_tfrecords([random_rows(30)], paths)
    assert_rows(opened(tmp_path / "part-*").rows(np.arange(30)), opened(*paths).rows(np.arange(30)))


def test_an_empty_file_among_others_is_passed_over(tmp_path: Path):
    rows = random_rows(2)
    write_tfrecords([rows], paths := [tmp_path / str(number) for number in range(4)])
    assert_rows(opened(*reversed(paths)).rows(np.array([1, 0])), rows)


@pytest.mark.parametrize("version", [1, 2])
def test_both_sets_of_names_are_read(tmp_path: Path, version: int):
    new = {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"} if version == 2 else {}
    records = [{new.get(name, name): values for name, values in row.items()} for row in features(20)]
    path = write_records(tmp_path / "file", [example(row) for row in records])
    assert_rows(opened(path).rows(np.arange(20)), random_rows(20))


def test_features_of_other_kinds_beside_ours_are_passed_over(tmp_path: Path):
    more = {"position_ids": [1, 2, 3], "source": [b"a book"], "share": [0.5]}
    path = write_records(tmp_path / "file", [example(row | more) for row in features(4)])
    assert_rows(opened(path).rows(np.arange(4)), random_rows(4))


def test_padding_and_slots_are_told_by_mask_and_weight_never_by_an_id(tmp_path: Path):
    """Token 0 may be text and may be a label, and anything may stand where nothing is."""
    row = {
        "input_ids": [2, 0, 4, 3, 0, 3, 9, 9],
        "input_mask": [1, 1, 1, 1, 1, 1, 0, 0],
        "segment_ids": [0, 0, 0, 0, 1, 1, 1, 0],
        "masked_lm_positions": [2, 4, 7],
        "masked_lm_ids": [0, 8, 9],
        "masked_lm_weights": [1.0, 0.0, 0.0],
        "next_sentence_labels": [1],
    }
    path = write_records(tmp_path / "file", [example(row)])
    found = opened(path, pad_token_id=6).rows(np.array([0]))
    assert found["token_ids"].tolist() == [[2, 0, 4, 3, 0, 3, 6, 6]]
    assert found["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]
    assert found["mask_positions"].tolist() == [[2, 0, 0]]
    assert found["mask_labels"].tolist() == [[0, 0, 0]]
    assert found["mask_weights"].tolist() == [[1, 0, 0]]


Damage = Callable[[dict[str, list]], bytes]

WRONG: dict[str, tuple[Damage, str]] = {
    "shorter": (
        lambda row: example(row | {"input_ids": row["input_ids"][:-1]}),
        r"has 11 int64 values as input_ids where 12 int64 values are due",
    ),
    "longer": (
        lambda row: example(row | {"masked_lm_weights": [1.0] * 4}),
        r"has 4 float32 values as masked_lm_weights where 3 float32 values are due",
    ),
    "two labels": (
        lambda row: example(row | {"next_sentence_labels": [0, 1]}),
        r"has 2 int64 values as next_sentence_labels where 1 int64 values are due",
    ),
    "no label": (
        lambda row: example({name: row[name] for name in row if name != "next_sentence_labels"}),
        r"has 0 no values as next_sentence_labels where 1 int64 values are due",
    ),
    "another type": (
        lambda row: example(row | {"masked_lm_ids": [1.0] * 3}),
        r"has 3 float32 values as masked_lm_ids where 3 int64 values are due",
    ),
    "no example": (lambda row: b"\xff" * 40, r"is no tf\.train\.Example"),
    "token": (
        lambda row: example(row | {"input_ids": [2, 50] + [3] * 10}),
        r"has 50 in input_ids, which must be at least 0 and less than 50, the size of the vocabulary",
    ),
    "negative": (
        lambda row: example(row | {"input_ids": [2, -1] + [3] * 10}),
        r"has -1 in input_ids, which must be at least 0",
    ),
    "beyond 32 bits": (
        lambda row: example(row | {"input_ids": [2, 2**32 + 1] + [3] * 10}),
        r"has 4294967297 in input_ids, which must be",
    ),
    "label": (
        lambda row: example(row | {"masked_lm_ids": [1, 99, 1]}),
        r"has 99 in masked_lm_ids, which must be at least 0 and less than 50, the size of the vocabulary",
    ),
    "position": (
        lambda row: example(row | {"masked_lm_positions": [1, 12, 1]}),
        r"has 12 in masked_lm_positions, which must be at least 0 and less than 12, the length of the row",
    ),
    "segment": (
        lambda row: example(row | {"segment_ids": [2] * 12}),
        r"has 2 in segment_ids, which must be at least 0 and less than 2, the number of segments",
    ),
    "mask": (
        lambda row: example(row | {"input_mask": [7] * 12}),
        r"has 7 in input_mask, which must be at least 0 and less than 2, for it says yes or no",
    ),
    "next": (
        lambda row: example(row | {"next_sentence_labels": [2]}),
        r"has 2 in next_sentence_labels, which must be at least 0 and less than 2, for it says yes or no",
    ),
    "weight": (
        lambda row: example(row | {"masked_lm_weights": [1.0, float("nan"), 0.0]}),
        r"has nan in masked_lm_weights, which must be at least 0 and less than inf, for it is a weight",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, case: str):
    damage, message = WRONG[case]
    rows = features(10)
    records = [example(row) for row in rows]
    records[6] = damage(rows[6])
    good = write_records(tmp_path / "good", [example(row) for row in rows])
    bad = write_records(tmp_path / "bad", records)
    examples = opened(good, bad)
    examples.rows(np.arange(16))
    with pytest.raises(InputError, match=rf"Received: '.*bad', whose record 6 \(counted from 0\) {message}"):
        examples.rows(np.array([3, 19, 16, 2]))
    with pytest.raises(InputError, match=message):
        examples.check()
    assert message[-10:].replace("\\", "") in str(examples.failure)


def test_a_sound_set_passes_the_check(tmp_path: Path):
    opened(write_records(tmp_path / "file", [example(row) for row in features(10)])).check()


def test_damaged_bytes_are_named(tmp_path: Path):
    path = write_records(tmp_path / "file", [example(row) for row in features(10)])
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    examples = opened(path)
    with pytest.raises(InputError, match=r"record 9 \(counted from 0\) does not agree with its check sum"):
        examples.check()


@pytest.mark.parametrize(
    "record,message",
    [
        (
            example({"text": [b"a"]}),
            r"record 0 \(counted from 0\) lacks input_ids or input_word_ids, input_mask, .*: text",
        ),
        (example({}), r"its features are: none"),
        (b"\xff" * 30, r"is no tf\.train\.Example"),
        (
            example(features(1)[0] | {"input_mask": [1]}),
            r"has 1 int64 values as input_mask where 12 int64 values are due",
        ),
        (
            example(features(1)[0] | {"masked_lm_positions": []}),
            r"has 0 no values as masked_lm_positions where 1 int64",
        ),
    ],
)
def test_files_of_another_form_are_refused_on_opening(tmp_path: Path, record: bytes, message: str):
    with pytest.raises(InputError, match=message):
        opened(write_records(tmp_path / "file", [record]))


def test_no_records_at_all_are_refused(tmp_path: Path):
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match=r"`paths` must name files that hold records\. Received: \['.*empty'\]"):
        opened(tmp_path / "empty")
    with pytest.raises(InputError, match=r"`paths` must name files that hold records\. Received: \[\]"):
        opened()


def test_a_pattern_without_match_and_a_single_name_are_refused(tmp_path: Path):
    with pytest.raises(
        InputError, match=r"`paths` must name files that exist\. Received: '.*/x\*', which nothing match"
    ):
        opened(tmp_path / "x*")
    with pytest.raises(
        InputError, match=r"`paths` must be a list of files, not a single name\. Received: paths='file'"
    ):
        TFRecordExamples("file", vocab_size=5)


def test_tokens_are_counted_as_they_stood_before_the_masks(tmp_path: Path):
    rows = random_rows(40)
    write_tfrecords([rows], [tmp_path / "file"])
    tokenizer = WordPieceTokenizer(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(5, VOCAB_SIZE))]
    )
    expected = np.zeros(VOCAB_SIZE, np.int64)
    for row in range(40):
        tokens = rows["token_ids"][row, rows["padding_mask"][row] > 0]
        for slot in np.flatnonzero(rows["mask_weights"][row]):
            tokens[rows["mask_positions"][row, slot]] = rows["mask_labels"][row, slot]
        np.add.at(expected, tokens[~np.isin(tokens, [2, 3])], 1)
    assert np.array_equal(opened(tmp_path / "file").token_counts(tokenizer), expected)


def test_errors_of_tensorflow_that_are_not_ours_pass_through(tmp_path: Path):
    examples = opened(write_records(tmp_path / "file", [example(row) for row in features(2)]))
    with pytest.raises(tf.errors.NotFoundError), examples.plain_errors():
        raise tf.errors.NotFoundError(None, None, "something else")


@pytest.mark.shared
def test_the_originals_sample_is_read_as_it_stands(shared: Path):
    path = shared / "data" / "bert_original" / "sample_text.tfrecord"
    examples = opened(path, vocab_size=30522)
    assert (len(examples), examples.length, examples.predictions) == (45, 128, 20)
    found, raw = examples.rows(np.arange(45)), read_features(path)
    names = {
        "token_ids": "input_ids",
        "padding_mask": "input_mask",
        "segment_ids": "segment_ids",
        "mask_positions": "masked_lm_positions",
        "mask_labels": "masked_lm_ids",
        "mask_weights": "masked_lm_weights",
    }
    for ours, name in names.items():
        assert found[ours].tolist() == [row[name] for row in raw], name
    assert found["next_sentence_labels"].tolist() == [row["next_sentence_labels"][0] for row in raw]


@pytest.mark.shared
def test_the_originals_sample_holds_the_text_and_the_numbers_of_its_instances(shared: Path):
    """Neither its seed nor its exact script is known, so no row of it is a golden one; what both must have is here.

    Two oddities: its full rows have 20 predictions where the released script makes 19, and a line of it was read
    as Latin-1.
    """
    data = shared / "data"
    tokenizer = WordPieceTokenizer.from_vocab_file(data / "vocab" / "bert-base-uncased-vocab.txt")
    text = (data / "bert_original" / "sample_text.txt").read_text(encoding="utf-8")
    lines = [tokenizer.encode_ids(line, keep_special_tokens=False) for line in text.splitlines()]
    stretch = " ".join(str(token_id) for line in lines for token_id in line)
    latin_line = " ".join(map(str, lines[0][:12]))
    rows = opened(data / "bert_original" / "sample_text.tfrecord", vocab_size=30522).rows(np.arange(45))
    for row in range(45):
        length, count = int(rows["padding_mask"][row].sum()), int(rows["mask_weights"][row].sum())
        assert count == (20 if length == 128 else round(length * 0.15))
        tokens = rows["token_ids"][row, :length]
        tokens[rows["mask_positions"][row, :count]] = rows["mask_labels"][row, :count]
        second = int(np.argmax(rows["segment_ids"][row]))
        assert [tokens[0], tokens[second - 1], tokens[-1]] == [101, 102, 102]
        for part in (tokens[1 : second - 1], tokens[second:-1]):
            assert (words := " ".join(map(str, part))) in stretch or words.startswith(latin_line)


@pytest.mark.shared
def test_rows_packed_by_others_are_refused(shared: Path):
    with pytest.raises(InputError, match=r"record 0 \(counted from 0\) lacks input_ids .* packed_input_ids"):
        opened(shared / "data" / "bert_original" / "sample_text_packed.tfrecord", vocab_size=30522)
