"""Settings of every step on the way, as typed data.

No TensorFlow here: the command line builds its options from these classes. Each field's help text is
its documentation; the defaults are the original BERT's unless the text says otherwise.
"""

from .evaluate import EvaluateConfig
from .finetune import METRICS, FinetuneConfig
from .masking import MASKING_KINDS
from .phases import DEFAULT_PHASES, PhaseConfig
from .predict import PredictConfig
from .prepare import LANGUAGES, MOST_WORKERS, PAIRS_ONLY, REFERENCE_SETTINGS, PrepareConfig
from .pretrain import PretrainConfig
from .settings import Settings, check_seed
from .vocab import VocabConfig

__all__ = [
    "DEFAULT_PHASES",
    "LANGUAGES",
    "MASKING_KINDS",
    "METRICS",
    "MOST_WORKERS",
    "PAIRS_ONLY",
    "REFERENCE_SETTINGS",
    "EvaluateConfig",
    "FinetuneConfig",
    "PhaseConfig",
    "PredictConfig",
    "PrepareConfig",
    "PretrainConfig",
    "Settings",
    "VocabConfig",
    "check_seed",
]
