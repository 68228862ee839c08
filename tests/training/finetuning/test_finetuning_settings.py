"""What the settings of a fine-tuning may be."""

from pathlib import Path

import numpy as np
import pytest

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import FinetuneConfig

USUAL = {"task": "classification", "model": "model", "train": ("train.tsv",), "output": "out"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seeds": 5}, r"`seeds` must be a list of whole numbers\. Received: seeds=5$"),
        ({"seeds": (1, 2.5)}, r"`seed` must be a whole number from 0 .* Received: seed=2\.5$"),
        ({"seeds": ([1], [2])}, r"`seed` must be a whole number from 0 .* Received: seed=\[1\]$"),
        ({"seeds": (1, 1)}, r"`seeds` must be one or more different numbers\. Received: seeds=\[1, 1\]$"),
        ({"grid": [1]}, r"`grid` must be a dict of lists of values for learning_rate, .* Received: grid=\[1\]$"),
        ({"grid": {"batch_size": [2.5]}}, r"`batch_size` must be a whole number\. Received: batch_size=2\.5$"),
        ({"batch_size": 2.5}, r"`batch_size` must be a whole number\. Received: batch_size=2\.5$"),
        ({"patience": 1.5}, r"`patience` must be a whole number\. Received: patience=1\.5$"),
        ({"max_length": 64.0}, r"`max_length` must be a whole number\. Received: max_length=64\.0$"),
        ({"train": None}, r"`train` must be a list of files\. Received: train=None$"),
        ({"train": (5,)}, r"`train` must be a list of files\. Received: 5 among them$"),
        ({"dev": ("a\0b",)}, r"`dev` must be a list of files\. Received: 'a\\x00b' among them$"),
    ],
)
def test_what_a_setting_cannot_be_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        FinetuneConfig(**{**USUAL, **values})


def test_numbers_of_numpy_and_paths_will_do():
    config = FinetuneConfig(
        **{
            **USUAL,
            "train": [Path("train.tsv")],
            "learning_rate": np.float32(0.5),
            "batch_size": np.int64(8),
            "bias_correction": np.bool_(False),
            "seeds": np.arange(2),
            "grid": {"learning_rate": np.array([0.25, 0.5]), "batch_size": [np.int32(4)]},
        }
    )
    assert config == FinetuneConfig(
        **USUAL,
        learning_rate=0.5,
        batch_size=8,
        bias_correction=False,
        seeds=(0, 1),
        grid={"learning_rate": [0.25, 0.5], "batch_size": [4]},
    )
    assert type(config.learning_rate) is float and type(config.batch_size) is int and type(config.seeds[0]) is int
