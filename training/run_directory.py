"""What a run directory holds, and whether it belongs to the run that is asked for.

`config.json` is the configuration, every value decided; `run.json` what the run found when it began: the
model's full configuration and a digest of the data's manifest.
"""

import json
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.checkpoints.hugging_face import check_model_target
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError
from keras_bert_impl.finite_values import finite_or_none

from .checkpointing import saved_steps
from .configs import PretrainConfig
from .metrics_log import MetricsLog
from .set_aside import set_aside

# May differ when a run goes on: where things lie, how the work is laid out, what is kept and shown.
_FREE = {
    "data",
    "run",
    "preset",
    "model",
    "replicas",
    "cluster",
    "worker",
    "micro_batches",
    "steps_per_execution",
    "deterministic",
    "xla",
    "skip_padding",
    "non_finite_limit",
    "peak_flops",
    "dry_run",
    "evaluate_every",
    "checkpoint_every",
    "keep_checkpoints",
    "log_every",
}


class RunDirectory:
    """The places inside a run directory.

    Args:
        path: the directory; it need not exist.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.facts = self.path / "run.json"
        self.checkpoints = self.path / "checkpoints"
        # There from the first checkpoint on.
        self.saved = self.path / ".saved"
        self.model = self.path / "model"
        self.metrics_log = self.path / "metrics.jsonl"
        self.metrics = self.path / "metrics.json"
        self.tensorboard = self.path / "tensorboard"
        self.report = self.path / "report.html"

    def check(self, config: PretrainConfig, model: BertConfig, data_digest: str) -> None:
        """Checks that the directory is free or this run's; writes nothing.

        Raises:
            InputError: if it belongs to another configuration or other data (the first difference is
                named), is something else than a run directory, or its config.json or run.json is damaged.
        """
        if not self.config.exists():
            if self.path.exists() and (not self.path.is_dir() or set(self._content()) - {self.facts.name}):
                raise InputError(
                    "`run` must be a new or empty directory, or one in which a run began. "
                    f"Received: {str(self.path)!r}, which has other content"
                )
            return
        stored, facts = self.stored_config(), self._stored_facts()
        if facts["data_digest"] != data_digest:
            raise InputError(
                f"`data` has changed since the run began. Received: {config.data!r} for the run {str(self.path)!r}"
            )
        _refuse_difference(facts["model"], model.to_dict(), self.path, "model.")
        _refuse_difference(_what_matters(stored), _what_matters(config), self.path)

    def stored_config(self) -> PretrainConfig:
        """Returns the configuration in the run's `config.json`; raises `InputError` if that is damaged."""
        values = read_json(self.config)
        try:
            config = PretrainConfig.from_dict(values)
            if config.model is not None and not isinstance(config.model, dict):
                raise ValueError(f"model is {json.dumps(config.model)} there")
            _what_matters(config)
        except (InputError, TypeError, ValueError, AttributeError) as error:
            raise InputError(_not_as_written(self.config, str(error))) from error
        return config

    def _stored_facts(self) -> dict[str, Any]:
        facts = read_json(self.facts)
        try:
            if facts.keys() != {"data_digest", "model"}:
                raise ValueError(f"it has the keys {sorted(facts)} instead of data_digest and model")
            if not isinstance(facts["model"], dict):
                raise ValueError(f"model is {json.dumps(facts['model'])} there")
            BertConfig.from_dict(facts["model"])
        except (InputError, TypeError, ValueError) as error:
            raise InputError(_not_as_written(self.facts, str(error))) from error
        return facts

    def check_progress(self) -> None:
        """Checks that a run that has saved a checkpoint still has one; without any it would begin anew.

        Raises:
            InputError: if `metrics.jsonl` has lines and the checkpoints are gone.
        """
        if saved_steps(self.checkpoints):
            return
        lines = MetricsLog(self.metrics_log).lines()
        if lines and (self.saved.exists() or _show_a_checkpoint(lines)):
            raise InputError(
                "`run` must have its checkpoints; put a copy of them in their place, take another `run`, or remove "
                f"{self.metrics_log.name} and the run begins anew. Received: {str(self.path)!r}, which has metrics up "
                f"to step {lines[-1]['step']} and no checkpoint"
            )
        self.saved.unlink(missing_ok=True)

    def set_damaged_model_aside(self) -> Path | None:
        """Moves what is in the model's place and is none to another name, and returns that; None if all is well."""
        try:
            check_model_target(self.model)
        except InputError:
            return set_aside(self.model)
        return None

    def note_checkpoint(self) -> None:
        """Notes that the run has a checkpoint."""
        if not self.saved.exists():
            with atomic_file(self.saved):
                pass

    def begin(self, config: PretrainConfig, model: BertConfig, data_digest: str) -> None:
        """Makes the directory this run's, if it is not already."""
        if not self.config.exists():
            write_json(self.facts, {"data_digest": data_digest, "model": model.to_dict()})
            # Last: with it, the run has begun.
            write_json(self.config, config.to_dict())

    def _content(self) -> list[str]:
        # A leading dot: what a killed process was just writing.
        return [path.name for path in self.path.iterdir() if not path.name.startswith(".")]


def read_json(path: Path) -> dict[str, Any]:
    """Returns the object in a JSON file; raises `InputError` if the file is missing or damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"`run` must hold a whole {path.name}. Received: {str(path)!r}: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"`run` must hold a whole {path.name}. Received: {str(path)!r}, which is no JSON object")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes an object to a JSON file, whole or not at all; what is not finite becomes null."""
    with atomic_file(path) as file:
        json.dump(finite_or_none(value), file, indent=2, allow_nan=False)
        file.write("\n")


def _not_as_written(path: Path, fault: str) -> str:
    return (
        f"`run` must hold its own {path.name}, as the run wrote it when it began; put a copy of that file in its "
        f"place, or take another `run`. Received: {str(path)!r}, in which something is wrong: {fault}"
    )


def _show_a_checkpoint(lines: list[dict[str, Any]]) -> bool:
    """Whether lines are there that come after a checkpoint: the first held-out loss and the end of a phase have one."""
    evaluated = any(line.get("held_out_mlm_loss") is not None for line in lines[:-1])
    return evaluated or lines[-1]["phase"] != lines[0]["phase"]


def _what_matters(config: PretrainConfig) -> dict[str, Any]:
    values = {name: value for name, value in config.to_dict().items() if name not in _FREE}
    values["steps"] = config.total_steps
    values["init"] = str(Path(config.init).resolve()) if config.init else None
    return values


def _refuse_difference(stored: dict[str, Any], given: dict[str, Any], path: Path, prefix: str = "") -> None:
    for name, value in stored.items():
        if given.get(name) != value:
            raise InputError(
                f"`run` holds a run of another configuration: {prefix}{name} is {json.dumps(value)} there. "
                f"Received: {prefix}{name}={json.dumps(given.get(name))} for the run {str(path)!r}"
            )
