"""What a training wrote about a model beside it: how good it is, and on how many examples."""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Measurements(NamedTuple):
    """How good a model was found to be.

    Attributes:
        source: the file, from the model or run directory on.
        made_from: what is known of its making: a sentence for each fact.
        tables: by heading, numbers by name.
        warnings: what the training warned of.
    """

    source: str
    made_from: tuple[str, ...]
    tables: dict[str, dict[str, float]]
    warnings: tuple[str, ...] = ()


def measurements(model: Path) -> Measurements | None:
    """Returns what `finetune` or `pretrain` wrote about a model directory; None if neither did.

    A file that is not as these write it counts as a statement that cannot be read, since an export does not need it.
    """
    for path, source, read in (
        (model / "finetuning" / "metrics.json", "finetuning/metrics.json", _of_finetuning),
        (model.parent / "metrics.json", "metrics.json", _of_pretraining),
    ):
        # A run directory holds its model under this name.
        if path.is_file() and (read is _of_finetuning or model.name == "model"):
            try:
                metrics = json.loads(path.read_text(encoding="utf-8"))
                json.dumps(metrics, ensure_ascii=False).encode()  # half a character could not be written
                return read(source, metrics)
            except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
                return Measurements(source, (), {}, (f"`{source}` is not as a training writes it, and was not read.",))
    return None


def _of_finetuning(source: str, metrics: dict[str, Any]) -> Measurements:
    settings = metrics["made_from"]["settings"]
    files = ", ".join(f"`{Path(name).name}`" for name in settings.get("train") or ())
    made_from = [
        f"Fine-tuned for {metrics['task']} from `{Path(settings['model']).name}` on {metrics['train_examples']:,} "
        f"examples{f' of {files}' if files else ''}, up to epoch {metrics['best_epoch']:g}."
    ]
    tables = {}
    if metrics["dev_examples"]:
        made_from.append(
            f"The best model was chosen by `{metrics['metric']}` on these dev examples, so on others it may do worse."
        )
        whose = "held out of the training files" if metrics["dev_from_train"] else "given for it"
        tables[f"On {metrics['dev_examples']:,} dev examples, {whose}"] = _numbers(metrics["metrics"])
    return Measurements(source, tuple(made_from), tables, tuple(map(str, metrics["warnings"])))


def _of_pretraining(source: str, metrics: dict[str, Any]) -> Measurements:
    tables = {
        f"On held-out text, rows of up to {int(length)} tokens": _numbers(record)
        for length, record in metrics["held_out"].items()
    }
    return Measurements(source, (f"Pretrained for {metrics['best_step']:,} steps.",), tables)


def _numbers(record: dict[str, Any]) -> dict[str, float]:
    return {
        name: value for name, value in record.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }
