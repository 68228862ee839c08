"""Runs of another implementation, replayed; and what can be said of a replay without one."""

import json
from pathlib import Path

import numpy as np
import pytest
from reference_runs import MODEL, draw_batches, train_with_pytorch, write_run
from safetensors.numpy import load_file

from keras_bert_impl import BertConfig, BertMaskedLM, BertPretrainer
from keras_bert_impl.losses import MLM_EPSILON, masked_lm_loss_sum, next_sentence_loss_sum
from keras_bert_impl.training import replay_reference_run


def check_replay(folder: Path, scratch: Path, *, losses: float = 1e-4, weights: float = 2e-5) -> None:
    """Replays a run; compares the loss of every step and every final weight with the recorded ones.

    Not the keys' biases: they have no influence on attention, so their gradient is rounding alone, which the
    optimizer divides by its own size.
    """
    found = replay_reference_run(folder, final_model=scratch / "final")
    recorded = json.loads((folder / "run.json").read_text(encoding="utf-8"))["loss_per_step"]
    np.testing.assert_allclose(found, recorded, rtol=0, atol=losses)
    ours, theirs = load_file(scratch / "final" / "model.safetensors"), load_file(folder / "final.safetensors")
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if not name.endswith("attention.self.key.bias"):
            np.testing.assert_allclose(ours[name], value, rtol=0, atol=weights, err_msg=name)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("run", ["adamw_gelu_erf", "bert_adam_gelu_tanh"])
def test_fifty_steps_equal_an_independent_implementations(shared: Path, tmp_path: Path, run: str):
    check_replay(shared / "data" / "reference_runs" / run, tmp_path)


MASKED_LM = "sum(w*ce)/(sum(w)+1e-5)"


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"loss": MASKED_LM},
        {"clip": None, "no_decay": None, "betas": [0.8, 0.98], "sizes": (13, 6, 11, 3), "weight_decay": 0.1},
        {"optimizer": "the original's Adam without bias correction", "model": {"hidden_act": "gelu_new"}},
        {"model": {"hidden_act": "relu", "num_hidden_layers": 3, "layer_norm_eps": 1e-5, "vocab_size": 97}},
        {"optimizer": "LAMB with bias correction", "lamb": "all"},
        {"optimizer": "ALBERT's LAMB without bias correction", "lamb": "decayed"},
    ],
    ids=["adamw", "masked-lm", "unclipped", "original", "relu", "lamb", "albert-lamb"],
)
def test_any_run_of_pytorch_is_replayed(tmp_path: Path, variant: dict):
    pytest.importorskip("torch", reason="needs PyTorch: pip install torch transformers")
    pytest.importorskip("transformers", reason="needs Hugging Face transformers: pip install transformers")
    (tmp_path / "run").mkdir()
    train_with_pytorch(tmp_path / "run", **variant)
    check_replay(tmp_path / "run", tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small run of two steps, of which nothing is recorded."""
    folder = tmp_path / "run"
    BertPretrainer(BertConfig(**MODEL), seed=3).save_pretrained(folder)
    write_run(folder, draw_batches(2, 4, 10, 3, MODEL["vocab_size"]))
    return folder


def first_loss(folder: Path) -> float:
    """The loss of the first step, put together from the losses' own functions."""
    batch = {name: array[0] for name, array in np.load(folder / "batches.npz").items()}
    inputs = {name: batch[name] for name in ("token_ids", "segment_ids", "padding_mask")}
    outputs = BertPretrainer.from_pretrained(folder)({**inputs, "mask_positions": batch["positions"]})
    mlm_loss = masked_lm_loss_sum(outputs["mlm_logits"], batch["labels"], batch["weights"])
    nsp_loss = next_sentence_loss_sum(outputs["nsp_logits"], batch["nsp"])
    return float(mlm_loss) / (batch["weights"].sum() + MLM_EPSILON) + float(nsp_loss) / len(batch["nsp"])


@pytest.mark.slow
def test_there_is_a_loss_for_every_step_however_it_is_worked_through(folder: Path):
    whole = replay_reference_run(folder)
    assert len(whole) == 2
    assert whole[0] == pytest.approx(first_loss(folder), abs=1e-5)
    assert replay_reference_run(folder, micro_batches=2) == pytest.approx(whole, abs=1e-5)


@pytest.mark.slow
def test_what_a_loss_does_not_reach_is_not_decayed_either(folder: Path, tmp_path: Path):
    write_run(folder, dict(np.load(folder / "batches.npz")), loss=MASKED_LM, weight_decay=1)
    replay_reference_run(folder, final_model=tmp_path / "final")
    before, after = load_file(folder / "model.safetensors"), load_file(tmp_path / "final" / "model.safetensors")
    unreached = [name for name in before if "pooler" in name or "seq_relationship" in name]
    assert len(unreached) == 4
    for name, value in before.items():
        assert np.array_equal(value, after[name]) == (name in unreached), name


@pytest.mark.slow
def test_a_model_without_pooler_has_its_own_form(tmp_path: Path):
    BertMaskedLM(BertConfig(**MODEL), seed=3).save_pretrained(tmp_path / "run")
    write_run(tmp_path / "run", draw_batches(2, 4, 10, 3, MODEL["vocab_size"]), loss=MASKED_LM)
    assert len(replay_reference_run(tmp_path / "run", final_model=tmp_path / "final")) == 2
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "final"))
    assert before.keys() == after.keys()
