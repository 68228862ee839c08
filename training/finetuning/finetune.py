"""`finetune`: from labelled examples and a model to a model that does a task, with everything that tells how well."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras_bert_impl
from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.errors import InputError

from ..checkpoint_manifest import DamagedError
from ..configs import FinetuneConfig
from ..corpus.wording import counted, percent
from ..distribution import make_deterministic, make_strategy, replicas_on_one_cpu, resolve_replicas
from ..freed_memory import keep_freed_memory
from ..stopping import stop_after_step
from .before_start import CONFIG_FILE, FOLDER, METRICS_FILE, check_output, check_settings, finished, tokenizer_of
from .data.labels import label_counts, shared_texts
from .dev_split import FEWEST_DEV_EXAMPLES, dev_split
from .facts import facts_of
from .grid import run_grid, tell_grid
from .json_files import read_own_json, write_json
from .metric_text import words
from .one_run import EVALUATION, HISTORY, MODEL, Bench
from .plan import make_plan
from .report import write_report
from .seeds import SeedResults, run_seeds, seed_warnings, tell_seeds
from .task import Evaluation, FinetuningTask, Say
from .tasks import task_class
from .unfinished import clear_leftovers, unfinished_model


@dataclasses.dataclass(frozen=True)
class Examples:
    """Labelled examples in the place of files.

    Attributes:
        train: those to train on.
        dev: those to choose the best model by; a share of `train` is held out if there are none.
    """

    train: Sequence[Any]
    dev: Sequence[Any] = ()


def finetune(
    config: FinetuneConfig,
    say: Say = lambda line: None,
    *,
    examples: Examples | None = None,
    temporary: bool = False,
    task_type: type[FinetuningTask] | None = None,
) -> dict[str, Any]:
    """Fine-tunes a model and writes its directory, with `finetuning/` in it.

    After the process was killed or stopped the same call goes on, to the same model.

    Args:
        config: the settings.
        say: takes each line of narration.
        examples: labelled examples in the place of the files that the settings name.
        temporary: whether the output is not for the user, and is not told.
        task_type: the task; that of the settings if not given.

    Returns:
        What `finetuning/metrics.json` holds: `metric`, the name of the one that the best model is chosen by;
        `metrics`, those of the best model on the dev examples, empty without any; `best_seed`, `best_step`,
        `best_epoch`; `mean`, `deviation` and `seeds`, of all seeds; `grid`, a list of the combinations, if any;
        `train_examples`, `dev_examples`, `dev_from_train`; `warnings`.

    Raises:
        InputError: if settings, examples and model do not fit one another, the output has content, too many steps
            were not finite, or the disk is full.
        StoppedBySignal: (a `KeyboardInterrupt`) at Ctrl-C or SIGTERM while it trains, once the step in progress has
            ended and a checkpoint is written; a second one stops at once.
    """
    facts = None
    if examples is None:
        check_settings(config)
    else:
        facts = facts_of(config, (examples.train, examples.dev))
    if (metrics := finished(config, facts)) is not None:
        say(f"{config.output} is finished already, by the same settings.")
        clear_leftovers(config.output)
        _tell_end(config, metrics, say)
        return metrics
    facts = facts or facts_of(config)
    check_output(config, facts)
    tokenizer = tokenizer_of(config.model, say)
    task: FinetuningTask = (task_type or task_class(config.task))(config, tokenizer, say)
    train, dev = _read(config, task, examples, say)
    task.prepare(train, dev)
    rows = task.rows(train)
    with unfinished_model(config.output, say) as unfinished, stop_after_step() as stopping:
        unfinished.begin(facts)
        keep_freed_memory()
        make_deterministic(config.deterministic)
        strategy = make_strategy(resolve_replicas(config.replicas))
        if (replicas := replicas_on_one_cpu(strategy)) > 1:
            say(f"{replicas} replicas share the cores of one CPU, so together they are seldom faster than one.")
        bench = Bench(task, rows, dev, strategy, stopping, say)
        _say_plan(config, len(rows.token_ids), say)
        points: list[dict[str, Any]] = []
        if config.grid is None:
            found = run_seeds(bench, config, unfinished.runs)
        else:
            found, points = run_grid(bench, config, unfinished.runs)
        metrics = _metrics(config, found, points, train, dev, facts, from_train=_holds_out(config, examples))
        lines = [*tell_grid(points, config.main_metric)] if points and dev else []
        for line in (*lines, *tell_seeds(found, dev), *(f"Warning: {warning}" for warning in metrics["warnings"])):
            say(line)
        model = found.folders[found.best] / MODEL
        write_json(model / FOLDER / CONFIG_FILE, config.to_dict())
        report = _write_folder(model / FOLDER, found, metrics, (train, dev))
        unfinished.complete(model)
    if not temporary:
        say(report)
    _tell_end(config, metrics, say, temporary=temporary)
    return metrics


def _holds_out(config: FinetuneConfig, examples: Examples | None) -> bool:
    return not (config.dev if examples is None else examples.dev)


def _read(
    config: FinetuneConfig, task: FinetuningTask, examples: Examples | None, say: Say
) -> tuple[list[Any], list[Any]]:
    """Returns the examples to train on, and those to choose the best model by, of which there may be none."""
    if examples is None:
        train = task.read(config.train, "train")
        dev = task.read(config.dev, "dev") if config.dev else []
    else:
        train, dev = list(examples.train), list(examples.dev)
    if dev or not _holds_out(config, examples):
        if shared := shared_texts(train, dev):
            say(
                f"{percent(shared / len(dev))} of the dev examples ({shared:,} of {len(dev):,}) are trained on, too; "
                "on new texts the model does worse than on these."
            )
        return train, dev
    kept, dev = dev_split(train, config.dev_share)
    if dev:
        say(
            f"No dev examples were given: {len(dev):,} of {len(train):,} ({percent(len(dev) / len(train))}), chosen by "
            "their texts, are not trained on, and the best model is chosen by them."
        )
    else:
        say(
            f"No dev examples were given, and {percent(config.dev_share)} of {counted(len(train), 'example')} "
            f"would be fewer than {FEWEST_DEV_EXAMPLES}: all are trained on, nothing is measured, and the model of the "
            "last epoch is kept."
        )
        if config.grid is not None:
            raise InputError(
                "`dev` must be given with a grid where there are few examples, since nothing else says which point is "
                f"the best. Received: {counted(len(train), 'example')}, dev_share={config.dev_share:g}"
            )
    return kept, dev


def _say_plan(config: FinetuneConfig, rows: int, say: Say) -> None:
    if config.grid is not None:
        return
    plan = make_plan(config, rows)
    warmup = round(config.warmup_share * plan.steps)
    often = "once" if config.epochs == 1 else f"{config.epochs:g} times"
    begin = f"{counted(warmup, 'step')} of them warm-up to" if warmup else "without warm-up, from"
    say(
        f"{counted(rows, 'row')} in {counted(plan.steps_per_epoch, 'step')} of {config.batch_size}, {often}: "
        f"{counted(plan.steps, 'step')}, {begin} a learning rate of {config.learning_rate:g}."
    )


def _metrics(
    config: FinetuneConfig,
    found: SeedResults,
    points: list[dict[str, Any]],
    train: Sequence[Any],
    dev: Sequence[Any],
    facts: dict[str, Any],
    *,
    from_train: bool,
) -> dict[str, Any]:
    best = found.results[found.best]
    chosen = {name: getattr(found.config, name) for name in config.grid or ()}
    return {
        "task": config.task,
        "metric": config.main_metric,
        "metrics": best["metrics"],
        "best_seed": best["seed"],
        "best_step": best["best_step"],
        "best_epoch": best["best_epoch"],
        **found.summary(),
        **({"grid": points, "chosen": chosen} if points else {}),
        "train_examples": len(train),
        "dev_examples": len(dev),
        "dev_from_train": from_train and bool(dev),
        "warnings": seed_warnings(found) if dev else [],
        "made_from": facts,
        "keras_bert_impl": keras_bert_impl.__version__,
    }


def _write_folder(
    folder: Path, found: SeedResults, metrics: dict[str, Any], examples: tuple[Sequence[Any], Sequence[Any]]
) -> str:
    """Writes what is told of a fine-tuning into the model's directory; returns a sentence on the report."""
    best = found.folders[found.best]
    evaluation = _written(best, EVALUATION, lambda values: Evaluation(**values))
    lines = [line for place in found.folders for line in _written(place, HISTORY, lambda values: list(values["lines"]))]
    for name, values in (("metrics.jsonl", lines), ("dev_predictions.jsonl", evaluation.predictions)):
        with atomic_file(folder / name) as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in values)
    write_json(folder / METRICS_FILE, metrics)
    seeds = [
        {"seed": result["seed"], "best_step": result["best_step"], "best_epoch": result["best_epoch"]}
        | {name: value for name, value in result["metrics"].items() if not isinstance(value, dict)}
        for result in found.results
    ]
    counts = {
        name: label_counts(part) if hasattr(part[0], "label") or hasattr(part[0], "tags") else {"questions": len(part)}
        for name, part in zip(("train", "dev"), examples, strict=True)
        if part
    }
    target = folder / "report.html"
    sentence = write_report(
        target,
        found.config,
        lines,
        evaluation,
        seeds,
        counts,
        warnings=metrics["warnings"],
        points=metrics.get("grid", ()),
        chosen=metrics.get("chosen"),
    )
    # It is told where it will lie.
    return sentence.replace(str(target), str(Path(found.config.output) / FOLDER / "report.html"))


def _written(folder: Path, name: str, taken: Callable[[dict[str, Any]], Any]) -> Any:
    """Returns what is taken from a file that a finished run wrote."""
    fault = f"which lacks {name}"
    try:
        if (values := read_own_json(folder / name)) is not None:
            return taken(values)
    except DamagedError as error:
        fault = f"where {error}"
    except (KeyError, TypeError):
        fault = f"where {name} lacks what a run writes"
    raise InputError(
        "`output` must have whole files where it is unfinished; remove the directory named here and the same command "
        f"makes this part anew. Received: {str(folder)!r}, {fault}"
    )


def _tell_end(config: FinetuneConfig, metrics: dict[str, Any], say: Say, *, temporary: bool = False) -> None:
    value = metrics["metrics"].get(metrics["metric"])
    if metrics["dev_examples"]:
        number = "not defined" if value is None else f"{value:.4f}"
        told = f"{words(metrics['metric'])} {number} on {counted(metrics['dev_examples'], 'dev example')}"
        if metrics["deviation"] is not None:
            told = (
                f"{words(metrics['metric'])} {metrics['mean']:.4f} ± {metrics['deviation']:.4f} over "
                f"{len(metrics['seeds'])} seeds; the best, seed {metrics['best_seed']}, {number} on "
                f"{counted(metrics['dev_examples'], 'dev example')}"
            )
        say(f"{told[0].upper()}{told[1:]}.")
    if temporary:
        return
    say(f"The model is in {config.output}.")
    say(f"Next: keras-bert predict {config.output} --input FILE")
