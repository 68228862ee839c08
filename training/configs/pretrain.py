"""Settings of `pretrain`."""

import dataclasses
from typing import Any

from keras_bert_impl.errors import InputError

from .masking import check_masking, masking_field
from .settings import ANY, Settings, check_range, check_seed, setting


@dataclasses.dataclass(frozen=True, kw_only=True)
class PhaseConfig(Settings):
    """One stretch of pretraining at one sequence length."""

    length: int = setting(help="sequence length, in tokens")
    share: float = setting(help="share of all steps")
    batch_size: int | None = setting(None, help="rows per step over all replicas; the run's when not given")
    packed: bool | None = setting(
        None, help="whether a row holds several examples; when not given, from length 256 on, save for TFRecord files"
    )

    def __post_init__(self) -> None:
        counts = [self.length] if self.batch_size is None else [self.length, self.batch_size]
        whole = all(type(count) is int and count > 0 for count in counts)
        if not whole or type(self.share) not in (int, float):
            raise InputError(
                "`phases` must have whole numbers from 1 on as length and batch_size, and numbers as share. "
                f"Received: length={self.length!r}, share={self.share!r}, batch_size={self.batch_size!r}"
            )
        if self.packed not in (None, True, False):
            raise InputError(f"`phases` must have true or false as packed. Received: packed={self.packed!r}")


DEFAULT_PHASES = (PhaseConfig(length=128, share=0.9), PhaseConfig(length=512, share=0.1))


def _phase(value: Any) -> PhaseConfig:
    if isinstance(value, PhaseConfig):
        return value
    if not isinstance(value, dict):
        raise InputError(f"`phases` must be a list of {{length, share, batch_size, packed}}. Received: {value!r}")
    return PhaseConfig.from_dict(value, name="phases")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainConfig(Settings):
    """Pretrain BERT with masked language modelling and next-sentence prediction."""

    data: str = setting(help="directory that `prepare` wrote")
    run: str = setting(help="run directory; given again, the run goes on from its last checkpoint")
    preset: str | None = setting(
        None, help="size of the model: tiny (when not given), mini, small, medium, base or large"
    )
    model: dict[str, Any] | None = setting(None, help="fields of BertConfig that replace the preset's, as JSON")
    init: str | None = setting(
        None,
        help="model directory whose weights the run starts from; it says the size too, instead of preset and model",
    )
    allow_missing: tuple[str, ...] = setting(
        (), help="init: parts of pooler, mlm_head and nsp_head that it may lack and that then start fresh"
    )
    steps: int = setting(1_000_000, help="training steps over all phases")
    batch_size: int = setting(256, help="rows per step over all replicas; one holds an example, or if packed several")
    phases: tuple[PhaseConfig, ...] = setting(
        DEFAULT_PHASES, help="stretches of the run, as a list of {length, share, batch_size, packed}"
    )
    micro_batches: int = setting(1, help="parts that a replica's batch is worked through in; saves memory")
    learning_rate: float = setting(1e-4, help="highest learning rate, reached after the warm-up")
    warmup_steps: int | None = setting(None, help="steps of linear warm-up; 1 % of the steps when not given")
    weight_decay: float = setting(0.01, help="decoupled, times the learning rate; not on biases and LayerNorm")
    beta_1: float = setting(0.9, help="Adam's decay of the mean gradient")
    beta_2: float = setting(0.999, help="Adam's decay of the mean squared gradient")
    epsilon: float = setting(1e-6, help="Adam's addend to the root")
    bias_correction: bool = setting(False, help="Adam's correction of the first steps; the original has none")
    clip_norm: float = setting(1.0, help="largest global norm of the whole batch's gradient; 0 for no clipping")
    masked_share: float = setting(0.15, help="share of the positions to predict")
    masking: str = masking_field("masking")
    max_ngram: int = masking_field("max_ngram")
    replicas: int | None = setting(
        None, help="replicas under MirroredStrategy; every GPU, else one. More on a CPU makes logical devices"
    )
    dtype: str = setting("float32", help="float32 or mixed_bfloat16")
    seed: int = setting(1, help="seed of initial values, dropout, order and masks")
    steps_per_execution: int = setting(1, help="steps per call of the compiled function")
    log_every: int | None = setting(
        None, help="steps between lines of metrics; a two-hundredth of the steps, at most 100, when not given"
    )
    evaluate_every: int | None = setting(None, help="steps between evaluations; a tenth of the steps when not given")
    evaluation_examples: int = setting(2000, help="held-out examples per length in an evaluation; 0 for all")
    checkpoint_every: int | None = setting(None, help="steps between checkpoints; those of evaluate_every if not given")
    keep_checkpoints: int = setting(3, help="last checkpoints kept")

    def __post_init__(self) -> None:
        phases = tuple(_phase(phase) for phase in self.phases)
        object.__setattr__(self, "phases", phases)
        object.__setattr__(self, "allow_missing", tuple(self.allow_missing))
        if self.init is None and self.allow_missing:
            raise InputError(f"`allow_missing` must go with `init`. Received: allow_missing={self.allow_missing!r}")
        if self.init is not None and (self.preset or self.model):
            name = "preset" if self.preset else "model"
            raise InputError(
                f"`{name}` cannot be given with `init`, whose model directory says what the model is. "
                f"Received: {name}={getattr(self, name)!r}, init={self.init!r}"
            )
        for name in ("steps", "batch_size", "micro_batches", "steps_per_execution", "keep_checkpoints"):
            check_range(self, name, 1, ANY)
        for name in ("warmup_steps", "evaluation_examples", "clip_norm", "weight_decay"):
            if getattr(self, name) is not None:
                check_range(self, name, 0, ANY)
        for name in ("replicas", "log_every", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) is not None:
                check_range(self, name, 1, ANY)
        check_range(self, "learning_rate", 0, 10, low_open=True)
        check_range(self, "epsilon", 0, 1, low_open=True)
        check_range(self, "masked_share", 0, 1, low_open=True)
        check_masking(self)
        check_seed(self.seed)
        for name in ("beta_1", "beta_2"):
            check_range(self, name, 0, 1)
        if self.dtype not in ("float32", "mixed_bfloat16"):
            # float16 would need its loss scaled.
            raise InputError(f"`dtype` must be float32 or mixed_bfloat16. Received: dtype={self.dtype!r}")
        if not phases or abs(sum(phase.share for phase in phases) - 1) > 1e-6 or min(p.share for p in phases) <= 0:
            shares = [phase.share for phase in phases]
            raise InputError(f"`phases` must have positive shares that add up to 1. Received: shares={shares}")
        for phase in phases:
            batch_size = phase.batch_size or self.batch_size
            parts = (self.replicas or 1) * self.micro_batches
            if batch_size % parts:
                raise InputError(
                    "`batch_size` must be a multiple of `replicas` times `micro_batches`. "
                    f"Received: batch_size={batch_size}, replicas={self.replicas or 1}, "
                    f"micro_batches={self.micro_batches}"
                )
