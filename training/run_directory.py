"""What a run directory holds, and whether it belongs to the run that is asked for.

`config.json` is the configuration, every value decided; `run.json` what the run found when it began: the
model's full configuration and a digest of the data's manifest.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.config import BertConfig
from keras_bert_impl.errors import InputError

from .configs import PretrainConfig

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
        self.model = self.path / "model"
        self.metrics_log = self.path / "metrics.jsonl"
        self.metrics = self.path / "metrics.json"
        self.tensorboard = self.path / "tensorboard"
        self.report = self.path / "report.html"

    def check(self, config: PretrainConfig, model: BertConfig, data_digest: str) -> None:
        """Checks that the directory is free or this run's; writes nothing.

        Raises:
            InputError: if it belongs to another configuration or other data (the first difference is
                named), or is something else than a run directory.
        """
        if not self.config.exists():
            if self.path.exists() and (not self.path.is_dir() or set(self._content()) - {self.facts.name}):
                raise InputError(
                    "`run` must be a new or empty directory, or one in which a run began. "
                    f"Received: {str(self.path)!r}, which has other content"
                )
            return
        stored, facts = PretrainConfig.from_dict(read_json(self.config)), read_json(self.facts)
        if facts["data_digest"] != data_digest:
            raise InputError(
                f"`data` has changed since the run began. Received: {config.data!r} for the run {str(self.path)!r}"
            )
        _refuse_difference(facts["model"], model.to_dict(), self.path, "model.")
        _refuse_difference(_what_matters(stored), _what_matters(config), self.path)

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
    """Writes an object to a JSON file, whole or not at all."""
    with atomic_file(path) as file:
        json.dump(value, file, indent=2)
        file.write("\n")


def _what_matters(config: PretrainConfig) -> dict[str, Any]:
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    values = {name: value for name, value in values.items() if name not in _FREE}
    values["steps"] = config.total_steps
    values["phases"] = [phase.to_dict() for phase in config.phases]
    values["init"] = str(Path(config.init).resolve()) if config.init else None
    return values


def _refuse_difference(stored: dict[str, Any], given: dict[str, Any], path: Path, prefix: str = "") -> None:
    for name, value in stored.items():
        if given[name] != value:
            raise InputError(
                f"`run` holds a run of another configuration: {prefix}{name} is {value!r} there. "
                f"Received: {prefix}{name}={given[name]!r} for the run {str(path)!r}"
            )
