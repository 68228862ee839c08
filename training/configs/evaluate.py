"""Settings of `evaluate`."""

import dataclasses

from keras_bert_impl.errors import InputError

from .masking import check_given_masks
from .settings import ANY, Settings, check_range, check_seed, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateConfig(Settings):
    """Measure a pretrained model on held-out examples."""

    model: str = setting(help="model directory or run directory")
    data: str = setting(help="directory that `prepare` wrote")
    lengths: tuple[int, ...] | None = setting(None, help="sequence lengths; all that the data has when not given")
    batch_size: int = setting(32, help="examples per batch")
    examples: int = setting(0, help="held-out examples per length; 0 for all")
    masked_share: float | None = setting(
        None, help="share of the positions to predict; that of the run when not given, 0.15 for a model directory"
    )
    masking: str | None = setting(
        None, help="'token', 'whole-word' or 'n-gram'; that of the run when not given, 'token' for a model directory"
    )
    max_ngram: int | None = setting(None, help="n-gram: most words of one; that of the run, or 3, when not given")
    seed: int = setting(1, help="seed of the masks")
    output: str | None = setting(None, help="file to write the metrics to, as JSON")

    def __post_init__(self) -> None:
        if self.lengths is not None and len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"`lengths` must be different numbers. Received: lengths={list(self.lengths)}")
        check_range(self, "batch_size", 1, ANY)
        check_seed(self.seed)
        check_range(self, "examples", 0, ANY)
        check_given_masks(self, "n-gram" if self.masking is None else self.masking)
