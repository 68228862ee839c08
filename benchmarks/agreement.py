"""How far hidden states of a real model are from another implementation's (`golden_batch.npz` of the shared data)."""

import os
from pathlib import Path

import keras
import numpy as np

from keras_bert_impl.models.bert_encoder import BertEncoder

from .row import Row

_POSITIONS = [0, 1, 2, 5, 10, 40]


def measure() -> list[Row]:
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("KERAS_BERT_SHARED", beside)) / "models" / "all-MiniLM-L6-v2"
    if not folder.is_dir():
        return []
    golden = np.load(folder / "golden_batch.npz")
    encoder = BertEncoder.from_pretrained(folder, return_hidden_states=True)
    states = encoder({tensor.name: golden[tensor.name] for tensor in encoder.inputs})["hidden_states"]
    states = keras.ops.convert_to_numpy(states)[:, :, _POSITIONS]
    expected = np.stack([golden[f"hidden_{i}_positions_0_1_2_5_10_40"] for i in range(states.shape[1])], axis=1)
    real = golden["padding_mask"][:, _POSITIONS].astype(bool)
    difference = np.abs(states - expected).max(axis=(1, 3))
    what = "MiniLM, hidden states from Hugging Face's"
    return [
        Row(f"{what}, at tokens", "1e-6", 1e6 * float(difference[real].max()), bound=20),
        # Both are float32; from exact values the two are some 2e-5 off there, each in its own direction.
        Row(f"{what}, at padding", "1e-6", 1e6 * float(difference[~real].max()), bound=20),
    ]
