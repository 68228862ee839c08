from pathlib import Path

import numpy as np
import pytest
from reference_runs import MODEL, draw_batches, write_run

from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.training.reference_run import ReferenceRun

CONFIG = BertConfig(**MODEL)
STEPS, BATCH, LENGTH, PREDICTIONS = 3, 4, 10, 2


@pytest.fixture
def batches() -> dict[str, np.ndarray]:
    return draw_batches(STEPS, BATCH, LENGTH, PREDICTIONS, CONFIG.vocab_size)


def test_batches_become_those_of_the_trainer(tmp_path: Path, batches: dict[str, np.ndarray]):
    write_run(tmp_path, batches)
    inputs, targets = ReferenceRun(tmp_path).batches()
    for name, array in inputs.items():
        assert array.dtype == np.int32, name
        if name != "mask_positions":
            np.testing.assert_array_equal(array, batches[name])
    used = batches["weights"] > 0
    np.testing.assert_array_equal(inputs["mask_positions"], batches["positions"] * used)
    np.testing.assert_array_equal(targets["mask_labels"], batches["labels"] * used)
    np.testing.assert_array_equal(targets["mask_weights"], batches["weights"])
    np.testing.assert_array_equal(targets["next_sentence_labels"], batches["nsp"])
    assert targets["next_sentence_weights"].dtype == np.float32
    assert targets["next_sentence_weights"].all()


def test_pytorchs_label_of_what_does_not_count_has_no_weight(tmp_path: Path, batches: dict[str, np.ndarray]):
    batches["labels"] = np.where(batches["weights"] > 0, batches["labels"], -100)
    batches["nsp"][1, 2] = -100
    write_run(tmp_path, batches)
    run = ReferenceRun(tmp_path)
    assert run.config(CONFIG) == CONFIG
    _, targets = run.batches()
    assert targets["mask_labels"].min() == targets["next_sentence_labels"].min() == 0
    assert np.argwhere(targets["next_sentence_weights"] == 0).tolist() == [[1, 2]]


def test_a_run_without_next_sentences_needs_no_labels_of_them(tmp_path: Path, batches: dict[str, np.ndarray]):
    del batches["nsp"]
    write_run(tmp_path, batches, loss="sum(w*ce)/(sum(w)+1e-5)")
    run = ReferenceRun(tmp_path)
    assert run.config(CONFIG) == CONFIG
    assert not run.batches()[1]["next_sentence_weights"].any()
    write_run(tmp_path, batches)
    with pytest.raises(InputError, match=r"whose batches.npz has no nsp, which the loss needs"):
        ReferenceRun(tmp_path)


def test_what_has_no_meaning_here_is_passed_over_aloud(tmp_path: Path, batches: dict[str, np.ndarray]):
    write_run(tmp_path, {**batches, "special_tokens": batches["nsp"]}, hardware="a laptop")
    said = []
    ReferenceRun(tmp_path, said.append)
    assert said == [
        "run.json has 'hardware', which has no meaning here and is passed over.",
        "batches.npz has 'special_tokens', which has no meaning here and is passed over.",
    ]


def test_dropout_is_off_where_the_run_says_so_and_refused_elsewhere(tmp_path: Path, batches: dict[str, np.ndarray]):
    config = BertConfig(**{**MODEL, "hidden_dropout_prob": 0.1})
    for source in ("PyTorch, float32, dropout 0", "without dropout", "dropout 0.0, on a CPU"):
        write_run(tmp_path, batches, source=source)
        assert ReferenceRun(tmp_path).config(config) == CONFIG
    for source in ("PyTorch", "PyTorch, dropout 0.1"):
        write_run(tmp_path, batches, source=source)
        with pytest.raises(InputError, match=r"`folder` must hold a run without dropout, .*hidden_dropout_prob of 0.1"):
            ReferenceRun(tmp_path).config(config)


def test_both_names_of_the_tanh_gelu_are_one_activation(tmp_path: Path, batches: dict[str, np.ndarray]):
    config = BertConfig(**{**MODEL, "hidden_act": "gelu_pytorch_tanh"})
    write_run(tmp_path, batches, hidden_act="gelu_new")
    assert ReferenceRun(tmp_path).config(config) == config
    with pytest.raises(InputError, match=r"`hidden_act` in run.json must be that of config.json, gelu. Received: hid"):
        ReferenceRun(tmp_path).config(CONFIG)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("token_ids", 61, r"has 61 in token_ids, which must be from 0 to 60"),
        ("labels", -5, r"has -5 in labels, which must be from 0 to 60"),
        ("segment_ids", 2, r"has 2 in segment_ids, which must be from 0 to 1"),
        ("padding_mask", 3, r"has 3 in padding_mask, which must be from 0 to 1"),
        ("positions", 10, r"has 10 in positions, which must be from 0 to 9"),
        ("nsp", 2, r"has 2 in nsp, which must be from 0 to 1"),
    ],
)
def test_batches_must_fit_the_model(tmp_path: Path, batches: dict[str, np.ndarray], name: str, value: int, message):
    batches[name][1, 0, ...] = value
    write_run(tmp_path, batches)
    with pytest.raises(InputError, match=rf"`folder` must hold a reference run: .*, whose batches.npz {message}"):
        ReferenceRun(tmp_path).config(CONFIG)


def test_rows_must_not_be_longer_than_the_model(tmp_path: Path):
    write_run(tmp_path, draw_batches(2, 2, 21, 2, CONFIG.vocab_size))
    with pytest.raises(InputError, match=r"batches.npz has rows of 21 tokens for 20 positions"):
        ReferenceRun(tmp_path).config(CONFIG)


def test_rates_are_one_for_each_step_or_one_for_all(tmp_path: Path, batches: dict[str, np.ndarray]):
    write_run(tmp_path, batches, learning_rate=[1e-3, 0])
    message = r"`learning_rate` in run.json must have a rate for each of the 3 steps of batches.npz. Received: 2 rates"
    with pytest.raises(InputError, match=message):
        ReferenceRun(tmp_path)
    write_run(tmp_path, batches, learning_rate=-1e-3)
    message = r"`learning_rate` in run.json must be numbers from 0 on, .* Received: learning_rate=\[-0.001, -0.001, "
    with pytest.raises(InputError, match=message):
        ReferenceRun(tmp_path)
    write_run(tmp_path, batches, learning_rate=1e-3)
    assert ReferenceRun(tmp_path).learning_rates == [1e-3] * STEPS


def test_a_folder_that_is_none_is_refused(tmp_path: Path, batches: dict[str, np.ndarray]):
    with pytest.raises(InputError, match=r"`folder` must hold .* whose run.json is missing or no JSON object"):
        ReferenceRun(tmp_path)
    write_run(tmp_path, batches)
    (tmp_path / "batches.npz").write_bytes(b"PK no archive")
    with pytest.raises(InputError, match=r"whose batches.npz is missing or damaged"):
        ReferenceRun(tmp_path)


def test_arrays_must_have_shapes_and_types_that_fit(tmp_path: Path, batches: dict[str, np.ndarray]):
    for changes, message in (
        ({"labels": batches["labels"][:, :3]}, r"has labels of shape \(3, 3, 2\), which must be \(steps, batch, pred"),
        ({"nsp": batches["nsp"][..., None]}, r"has nsp of shape \(3, 4, 1\), which must be \(steps, batch\)"),
        ({"token_ids": batches["token_ids"].astype(float)}, r"has token_ids of type float64"),
        ({name: array[:0] for name, array in batches.items()}, r"holds nothing: {'steps': 0"),
    ):
        write_run(tmp_path, {**batches, **changes})
        with pytest.raises(InputError, match=message):
            ReferenceRun(tmp_path)
    del batches["weights"]
    write_run(tmp_path, batches)
    with pytest.raises(InputError, match=r"whose batches.npz has no weights"):
        ReferenceRun(tmp_path)
