"""What must be the same on all machines before they train together."""

import platform
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_bert_impl
from keras_bert_impl.config import BertConfig

from .configs import PretrainConfig

# Where things lie and how fast a device is may differ; the machines' addresses are compared without it.
_OWN = {"data", "run", "init", "preset", "model", "cluster", "worker", "replicas", "peak_flops"}


def shared_facts(config: PretrainConfig, model: BertConfig, data_digest: str) -> dict[str, Any]:
    """Returns JSON values by names for a person: versions, the data, the model and the settings, all decided."""
    versions = {
        "keras_bert_impl": keras_bert_impl.__version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": np.__version__,
    }
    return {
        **{f"the version of {name}": version for name, version in versions.items()},
        "the data's digest": data_digest,
        **{f"the model's {name}": value for name, value in model.to_dict().items()},
        **{name: _plain(value) for name, value in config.to_dict().items() if name not in _OWN},
        "replicas": config.replicas,
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
