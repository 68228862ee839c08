"""Small pretraining runs, in this process or in one of their own, and what must be equal between two of them."""

import json
import sys
from pathlib import Path

import numpy as np

from keras_bert_impl.training.configs import PhaseConfig, PretrainConfig
from keras_bert_impl.training.throughput import RATES

MODEL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}


def small_config(data: Path, run: Path, **changes) -> PretrainConfig:
    values = {
        "data": str(data),
        "run": str(run),
        "model": MODEL,
        "steps": 12,
        "batch_size": 8,
        "phases": (PhaseConfig(length=16, share=0.75), PhaseConfig(length=32, share=0.25, batch_size=4)),
        "learning_rate": 5e-3,
        "warmup_steps": 2,
        "replicas": 1,
        "log_every": 1,
        "evaluate_every": 4,
        "checkpoint_every": 3,
        "evaluation_examples": 20,
    }
    return PretrainConfig(**values | changes)


def lines_of(run: Path) -> list[dict]:
    """The lines of metrics, without the speeds."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in line.items() if name not in RATES} for line in lines]


def last_state_of(run: Path) -> dict[str, np.ndarray]:
    """Weights and optimizer state in the last checkpoint."""
    import tensorflow as tf

    checkpoint = tf.train.load_checkpoint(str(sorted((run / "checkpoints").glob("step_*"))[-1] / "state"))
    names = (name for name in checkpoint.get_variable_to_shape_map() if not name.startswith("_CHECKPOINTABLE"))
    return {name: checkpoint.get_tensor(name) for name in names if name != "save_counter/.ATTRIBUTES/VARIABLE_VALUE"}


def assert_same_run(one: Path, other: Path) -> None:
    """Every line of metrics, every bit of the last checkpoint and of the model, and the final metrics are equal."""
    assert lines_of(one) == lines_of(other)
    state, other_state = last_state_of(one), last_state_of(other)
    assert state.keys() == other_state.keys()
    for name, value in state.items():
        np.testing.assert_array_equal(value, other_state[name], err_msg=name)
    for name in ("model/model.safetensors", "metrics.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name


if __name__ == "__main__":
    from keras_bert_impl.training.pretrain import pretrain

    pretrain(PretrainConfig.from_dict(json.loads(sys.argv[1])))
