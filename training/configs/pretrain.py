"""Settings of `pretrain`."""

import dataclasses
from typing import Any

from keras_bert_impl.errors import InputError

from .addresses import split_addresses
from .masking import check_masking, masking_field
from .phases import DEFAULT_PHASES, MOST_ROWS, MOST_STEPS, PhaseConfig, check_phases, to_phase
from .settings import ANY, Settings, check_range, check_seed, check_word, setting

_MOST_REPLICAS = 1024
# A call of the compiled function cannot be interrupted.
_MOST_STEPS_PER_EXECUTION = 100_000


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
    steps: int | None = setting(
        None, help="training steps over all phases; when not given 1,000,000, or the sum where phases have steps"
    )
    batch_size: int = setting(256, help="rows per step over all replicas; one holds an example, or if packed several")
    phases: tuple[PhaseConfig, ...] = setting(
        DEFAULT_PHASES,
        help="stretches of the run, as a list of {length, share or steps, batch_size, learning_rate, warmup_steps, "
        "packed, bucketed}",
    )
    micro_batches: int = setting(1, help="parts that a replica's batch is worked through in; saves memory")
    learning_rate: float = setting(1e-4, help="highest learning rate, reached after the warm-up")
    warmup_steps: int | None = setting(None, help="steps of linear warm-up; 1 % of the steps when not given")
    schedule: str = setting(
        "linear", help="fall of the learning rate after the warm-up: 'linear', 'polynomial', 'cosine', or 'constant'"
    )
    schedule_span: str = setting("run", help="what warm-up and fall span: the whole 'run', or each 'phase' anew")
    schedule_power: float = setting(1.0, help="polynomial: exponent of the share of the steps that is left")
    decay_from: str = setting(
        "start", help="the fall is counted from the 'start', as in the original, or from the end of the 'warmup'"
    )
    end_learning_rate: float = setting(0.0, help="learning rate that the fall ends at")
    optimizer: str = setting("adamw", help="'adamw' or 'lamb'")
    trust_ratio: str | None = setting(
        None, help="lamb: variables whose step follows their own norm: 'decayed' (when not given), or 'all'"
    )
    layer_decay: float = setting(1.0, help="factor of the learning rate from each layer to the one below it")
    weight_decay: float = setting(0.01, help="decoupled, times the learning rate")
    not_decayed: tuple[str, ...] = setting(
        ("bias", "layer_norm"), help="roles without weight decay, of bias, layer_norm and embedding"
    )
    beta_1: float = setting(0.9, help="decay of the mean gradient")
    beta_2: float = setting(0.999, help="decay of the mean squared gradient")
    epsilon: float = setting(1e-6, help="addend to the root of the mean squared gradient")
    bias_correction: bool = setting(False, help="Adam's correction of the first steps; the original has none")
    clip_norm: float = setting(1.0, help="largest global norm of the whole batch's gradient; 0 for no clipping")
    masked_share: float = setting(0.15, help="share of the positions to predict")
    masking: str = masking_field("masking")
    max_ngram: int = masking_field("max_ngram")
    replicas: int | None = setting(
        None, help="replicas under MirroredStrategy; every GPU, else one. More on a CPU makes logical devices"
    )
    cluster: str | None = setting(
        None, help="several machines: HOST:PORT of each, separated by commas, the same list on all of them"
    )
    worker: int | None = setting(
        None, help="cluster: number of this machine in the list, from 0; found by its addresses when not given"
    )
    dtype: str = setting("float32", help="float32, mixed_bfloat16, or mixed_float16 with loss scaling")
    xla: bool | None = setting(
        None, help="compile forward and backward pass with XLA; on GPUs when not given, where it saves time"
    )
    skip_padding: bool | None = setting(
        None, help="leave padding and unused prediction slots out of the computation; except under XLA when not given"
    )
    non_finite_limit: int = setting(
        10, help="steps of a run whose loss or gradient may be infinite or not a number; they are skipped and counted"
    )
    deterministic: bool = setting(
        True, help="on GPUs use operations that give the same bits in every run; other ones may be faster"
    )
    seed: int = setting(1, help="seed of initial values, dropout, order and masks")
    steps_per_execution: int = setting(1, help="steps per call of the compiled function")
    log_every: int | None = setting(
        None, help="steps between lines of metrics; a two-hundredth of the steps, at most 100, when not given"
    )
    evaluate_every: int | None = setting(None, help="steps between evaluations; a tenth of the steps when not given")
    evaluation_examples: int = setting(2000, help="held-out examples per length in an evaluation; 0 for all")
    checkpoint_every: int | None = setting(None, help="steps between checkpoints; those of evaluate_every if not given")
    keep_checkpoints: int = setting(3, help="last checkpoints kept")
    peak_flops: float | None = setting(
        None,
        help="most floating-point operations a second of a replica, to tell its utilisation; measured if not given",
    )
    dry_run: bool = setting(
        False, help="make a few steps of each phase, tell parameters, memory, speed and expected time, and stop"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "phases", tuple(to_phase(phase) for phase in self.phases))
        object.__setattr__(self, "allow_missing", tuple(self.allow_missing))
        object.__setattr__(self, "not_decayed", tuple(self.not_decayed))
        self._check_places()
        self._check_model()
        for name in ("steps", "log_every", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) is not None:
                check_range(self, name, 1, MOST_STEPS)
        if self.replicas is not None:
            check_range(self, "replicas", 1, _MOST_REPLICAS)
        for name in ("batch_size", "micro_batches"):
            check_range(self, name, 1, MOST_ROWS)
        check_range(self, "steps_per_execution", 1, _MOST_STEPS_PER_EXECUTION)
        check_range(self, "keep_checkpoints", 1, 1_000_000)
        for name in ("evaluation_examples", "non_finite_limit"):
            check_range(self, name, 0, ANY)
        check_range(self, "masked_share", 0, 1, low_open=True)
        check_masking(self)
        check_seed(self.seed)
        check_word(self, "dtype", ("float32", "mixed_bfloat16", "mixed_float16"))
        if self.peak_flops is not None:
            check_range(self, "peak_flops", 0, 1e20, low_open=True)
        self._check_optimizer()
        self._check_schedule()
        check_phases(self.phases, self.steps)
        self._check_no_effect()
        self._check_layout()

    @property
    def total_steps(self) -> int:
        """Steps over all phases."""
        of_phases = [phase.steps for phase in self.phases if phase.steps is not None]
        return self.steps or sum(of_phases) or 1_000_000

    def _check_places(self) -> None:
        for name in ("data", "run", "init"):
            value = getattr(self, name)
            if value is None and name == "init":
                continue
            try:
                # Settings and facts of the run are kept as UTF-8 text.
                sound = isinstance(value, str) and bool(value) and b"\0" not in value.encode()
            except UnicodeEncodeError:
                sound = False
            if not sound:
                raise InputError(f"`{name}` must be the name of a directory, as UTF-8 text. Received: {name}={value!r}")

    def _check_model(self) -> None:
        if self.init is None and self.allow_missing:
            raise InputError(f"`allow_missing` must go with `init`. Received: allow_missing={self.allow_missing!r}")
        if self.init is not None and (self.preset or self.model):
            name = "preset" if self.preset else "model"
            raise InputError(
                f"`{name}` cannot be given with `init`, whose model directory says what the model is. "
                f"Received: {name}={getattr(self, name)!r}, init={self.init!r}"
            )

    def _check_optimizer(self) -> None:
        check_word(self, "optimizer", ("adamw", "lamb"))
        if self.trust_ratio is not None:
            check_word(self, "trust_ratio", ("decayed", "all"))
            if self.optimizer != "lamb":
                raise InputError(
                    "`trust_ratio` must go with `optimizer` lamb. "
                    f"Received: trust_ratio={self.trust_ratio!r}, optimizer={self.optimizer!r}"
                )
        check_range(self, "learning_rate", 0, 10, low_open=True)
        check_range(self, "layer_decay", 0, 1, low_open=True)
        check_range(self, "epsilon", 0, 1, low_open=True)
        for name in ("clip_norm", "weight_decay"):
            check_range(self, name, 0, ANY)
        for name in ("beta_1", "beta_2"):
            check_range(self, name, 0, 1)
        roles = ("bias", "layer_norm", "embedding")
        if wrong := sorted(set(self.not_decayed) - set(roles)):
            raise InputError(f"`not_decayed` must be of {', '.join(roles)}. Received: {wrong[0]!r}")

    def _check_schedule(self) -> None:
        check_word(self, "schedule", ("linear", "polynomial", "cosine", "constant"))
        check_word(self, "schedule_span", ("run", "phase"))
        check_word(self, "decay_from", ("start", "warmup"))
        check_range(self, "schedule_power", 0, 100, low_open=True)
        if self.warmup_steps is not None:
            check_range(self, "warmup_steps", 0, MOST_STEPS)
        check_range(self, "end_learning_rate", 0, self.learning_rate)
        if self.schedule_power != 1 and self.schedule != "polynomial":
            raise InputError(
                "`schedule_power` must go with `schedule` polynomial. "
                f"Received: schedule_power={self.schedule_power}, schedule={self.schedule!r}"
            )
        for phase in self.phases:
            for name in ("learning_rate", "warmup_steps"):
                if getattr(phase, name) is not None and self.schedule_span != "phase":
                    raise InputError(
                        f"`phases` may have their own {name} only with `schedule_span` phase. "
                        f"Received: {name}={getattr(phase, name)}, schedule_span={self.schedule_span!r}"
                    )

    def _check_no_effect(self) -> None:
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in ("batch_size", "learning_rate"):
            value, of_phases = getattr(self, name), [getattr(phase, name) for phase in self.phases]
            if None not in of_phases and value not in (defaults[name], *of_phases):
                raise InputError(
                    f"`{name}` would have no effect, since every phase has its own: give `phases` with another. "
                    f"Received: {name}={value}, phases with {of_phases}"
                )

    def _check_layout(self) -> None:
        if self.xla and self.skip_padding:
            raise InputError(
                "`skip_padding` must be off with `xla`, which needs fixed shapes. Received: skip_padding=True, xla=True"
            )
        if self.cluster is not None:
            split_addresses(self.cluster)
            if self.worker is not None:
                check_range(self, "worker", 0, ANY)
        elif self.worker is not None:
            raise InputError(f"`worker` must go with `cluster`. Received: worker={self.worker!r}")
        for phase in self.phases:
            batch_size = phase.batch_size or self.batch_size
            parts = (self.replicas or 1) * self.micro_batches
            if batch_size % parts:
                raise InputError(
                    "`batch_size` must be a multiple of `replicas` times `micro_batches`. "
                    f"Received: batch_size={batch_size}, replicas={self.replicas or 1}, "
                    f"micro_batches={self.micro_batches}"
                )
