"""The report of a fine-tuning: one HTML file that needs nothing beside it."""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..configs import FinetuneConfig
from ..report_page import draw_curve, picture_style, plain_axes, svg_text, why_no_report, write_page
from .grid import ranked
from .metric_text import metric_columns, number_text, words
from .task import Evaluation

_TEMPLATE = Path(__file__).with_name("report.html")
_MOST_CHARACTERS = 200
_MOST_WRONG = 20
_MOST_LABELS = 40
# What is counted beside the metrics, said so that it can be understood without the reference pages.
_METRIC_WORDS = {
    "truncated": "texts cut off, longer than the model's rows",
    "sentences_in_windows": "sentences in several windows",
    "cut_words": "words of which pieces were cut off",
}
_COLOURS = ("#2c6e49", "#b3261e", "#2b4c9b", "#8a5a00", "#6a3d9a", "#7a7f93")


def write_report(
    path: Path,
    config: FinetuneConfig,
    lines: Sequence[Mapping[str, Any]],
    evaluation: Evaluation,
    seeds: Sequence[Mapping[str, Any]],
    labels: Mapping[str, Mapping[str, int]],
    *,
    warnings: Sequence[str] = (),
    points: Sequence[Mapping[str, Any]] = (),
    chosen: Mapping[str, Any] | None = None,
) -> str:
    """Writes the report, and returns a sentence that says so, or why there is none.

    Args:
        path: the file to write.
        config: the settings.
        lines: of `metrics.jsonl`, each with `seed`, `step` and numbers by name: `loss` (of training since the line
            before), `learning_rate`, and after an evaluation the metrics as `dev_NAME`, the loss among them.
        evaluation: of the model that is kept, on the dev examples.
        seeds: what came of each seed: `seed` and its values by name, such as `best_step` and the metrics.
        labels: number of examples (tagging: words) with each label, by set: `{"train": {...}, "dev": {...}}`.
        warnings: sentences on what was odd beside those of the evaluation.
        points: what came of each combination of a grid, as `run_grid` returns it.
        chosen: the values of the one that the model is of.
    """
    if missing := why_no_report():
        return missing
    metrics = evaluation.metrics
    wrong = wrong_predictions(evaluation.predictions)
    return write_page(
        path,
        _TEMPLATE,
        title=f"Fine-tuning {config.output}",
        summary=_summary(config, evaluation),
        warnings=[*warnings, *evaluation.warnings],
        metrics=[
            (
                _METRIC_WORDS.get(name, words(name)) + " (chosen by)" * (name == config.main_metric),
                number_text(value),
            )
            for name, value in metrics.items()
            if not isinstance(value, dict)
        ],
        tables=[_table(name, values) for name, values in metrics.items() if isinstance(values, dict) and values],
        grid=_grid_table(points, chosen or {}, config.main_metric),
        seeds=_seed_table(seeds),
        labels=_label_table(labels),
        confusion=_confusion(evaluation.pictures.get("confusion")),
        reliability=_drawn(_reliability_figure, evaluation.pictures.get("reliability")),
        curves=_drawn(_curves_figure, lines, config.main_metric),
        wrong=[_wrong_cells(prediction) for prediction in wrong[:_MOST_WRONG]],
        wrong_count=len(wrong),
        ids=any(prediction.get("id") is not None for prediction in wrong[:_MOST_WRONG]),
        numbers=config.task == "regression",
        count=len(evaluation.predictions),
        settings=list(_settings(config, points)),
    )


def _summary(config: FinetuneConfig, evaluation: Evaluation) -> str:
    dev = ", ".join(config.dev) or f"{config.dev_share:.0%} of the training examples, held out"
    return (
        f"{config.model} fine-tuned for {config.task} on {', '.join(config.train)}; measured on "
        f"{len(evaluation.predictions):,} dev examples ({dev})."
    )


def _table(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A metric that has a value, or several by name, for each class."""
    columns, rows = metric_columns(values)
    title = words(name).capitalize()
    return {"title": title, "columns": columns, "rows": [[name, *cells] for name, cells in rows]}


def _grid_table(points: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any], metric: str) -> dict[str, Any] | None:
    """All combinations, the best first; the one that was chosen is marked."""
    if not points:
        return None
    names = list(points[0]["values"])
    deviations = any(point["deviation"] is not None for point in points)
    rows = []
    for point in ranked(points):
        mean = "given up" if "given_up" in point else number_text(point["mean"])
        cells = [f"{point['values'][name]:g}" for name in names] + [mean]
        if deviations:
            cells.append("" if point["deviation"] is None else f"{point['deviation']:.4f}")
        rows.append({"cells": cells, "chosen": point["values"] == chosen})
    columns = [words(name) for name in (*names, metric, *(["deviation"] if deviations else []))]
    said = ", ".join(f"{words(name)} {value:g}" for name, value in chosen.items())
    return {"columns": columns, "rows": rows, "chosen": said, "several_seeds": deviations}


def _seed_table(seeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of each seed, and under them mean and sample deviation of those that are measured."""
    columns = [name for name in dict.fromkeys(name for row in seeds for name in row) if name != "seed"]
    columns = [name for name in columns if not any(isinstance(row.get(name), dict | list) for row in seeds)]
    rows = [[str(row.get("seed")), *(_seed_value(name, row.get(name)) for name in columns)] for row in seeds]
    means = []
    for name in columns:
        values = [row[name] for row in seeds if isinstance(row.get(name), float) and not name.startswith("best_")]
        enough = len(values) == len(seeds) > 1
        means.append(f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}" if enough else "")
    return {
        "columns": [words(name) for name in columns],
        "rows": rows,
        "means": means if any(means) else [],
    }


def _seed_value(name: str, value: Any) -> str:
    # Where the best model was found is a place, not a measurement.
    return f"{value:g}" if name.startswith("best_") and isinstance(value, float) else number_text(value)


def _label_table(labels: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for counts in labels.values() for name in counts))
    sums = {part: sum(counts.values()) for part, counts in labels.items()}
    return {
        "parts": list(labels),
        "rows": [
            [name, *(f"{c.get(name, 0):,} ({c.get(name, 0) / max(sums[part], 1):.1%})" for part, c in labels.items())]
            for name in names
        ],
    }


def _confusion(picture: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The matrix as cells with their colours; text, so that the browser finds the letters of any script."""
    if picture is None:
        return None
    names, counts = picture["labels"], picture["counts"]
    sums = [sum(row) for row in counts]
    # The commonest, in their order.
    shown = sorted(sorted(range(len(names)), key=lambda place: -sums[place])[:_MOST_LABELS])
    rows = []
    for right in shown:
        cells = []
        for given in shown:
            share = counts[right][given] / max(sums[right], 1)
            colour = "44, 110, 73" if right == given else "179, 38, 30"
            cells.append({"count": f"{counts[right][given]:,}", "colour": f"rgba({colour}, {0.8 * share:.3f})"})
        rows.append({"name": str(names[right]), "cells": cells})
    return {"names": [str(names[place]) for place in shown], "rows": rows, "left_out": len(names) - len(shown)}


def _drawn(figure_of: Any, values: Any, *more: Any) -> str:
    """Returns a figure as SVG text; nothing where there is nothing to draw."""
    if not values:
        return ""
    with picture_style():
        return svg_text(figure_of(values, *more))


def _curves_figure(lines: Sequence[Mapping[str, Any]], metric: str) -> Any:
    """Losses, the dev metric and the learning rate over the steps; a colour for each seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 2.9))
    # By hand: a layout that matplotlib works out takes as long as the drawing.
    figure.subplots_adjust(left=0.055, right=0.985, top=0.87, bottom=0.17, wspace=0.25)
    loss, score, rate = figure.subplots(1, 3)
    seeds = list(dict.fromkeys(line.get("seed") for line in lines))
    for colour, seed in zip(itertools.cycle(_COLOURS), seeds, strict=False):
        own = [line for line in lines if line.get("seed") == seed]
        first = seed == seeds[0]
        name = f"seed {seed}" if len(seeds) > 1 else None
        draw_curve(loss, own, "loss", color=colour, alpha=0.5, label="training" if first else None)
        for dev_loss in ("dev_loss", "dev_cross_entropy"):
            draw_curve(loss, own, dev_loss, color=colour, marker="o", label="dev" if first else None)
        draw_curve(score, own, f"dev_{metric}", color=colour, marker="o", label=name)
        draw_curve(rate, own, "learning_rate", color=colour)
    for axes, title in ((loss, "Loss"), (score, f"Dev {words(metric)}"), (rate, "Learning rate")):
        _dress(axes, title, "step")
    return figure


def _reliability_figure(picture: Mapping[str, Sequence[float]]) -> Any:
    """How often answers of a probability are right; on the diagonal, as often as the probability says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 3.4))
    figure.subplots_adjust(left=0.12, right=0.97, top=0.9, bottom=0.14)
    axes = figure.subplots()
    points = [
        (confidence, accuracy, count)
        for confidence, accuracy, count in zip(
            picture["confidence"], picture["accuracy"], picture["counts"], strict=True
        )
        if count
    ]
    axes.plot([0, 1], [0, 1], color="#7a7f93", linestyle="--", linewidth=1, label="as probable as said")
    axes.plot([p[0] for p in points], [p[1] for p in points], color="#b3261e", linewidth=1.2, label="dev")
    most = max((count for *_, count in points), default=1)
    axes.scatter(
        [p[0] for p in points], [p[1] for p in points], s=[8 + 60 * p[2] / most for p in points], color="#b3261e"
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    _dress(axes, "Share of right answers", "probability of the answer")
    return figure


def _dress(axes: Any, title: str, below: str) -> None:
    plain_axes(axes, title)
    axes.set_xlabel(below)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize="small")


def wrong_predictions(predictions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns those that are not right, the surest first; numbers by how far they are off."""
    wrong = [prediction for prediction in predictions if not _correct(prediction)]
    return sorted(wrong, key=lambda prediction: -_surprise(prediction))


def _correct(prediction: Mapping[str, Any]) -> bool:
    if "correct" in prediction:
        return bool(prediction["correct"])
    return "right" not in prediction or prediction["right"] == _given(prediction)


def _given(prediction: Mapping[str, Any]) -> Any:
    return next((prediction[name] for name in ("label", "tags", "answer") if name in prediction), None)


def _surprise(prediction: Mapping[str, Any]) -> float:
    label, right = prediction.get("label"), prediction.get("right")
    if isinstance(label, float) and isinstance(right, int | float):
        return abs(label - right)
    return float(prediction.get("probability") or 0)


def _wrong_cells(prediction: Mapping[str, Any]) -> dict[str, Any]:
    texts = [prediction[name] for name in ("text", "text_pair", "question", "context") if prediction.get(name)]
    if not texts and "words" in prediction:
        texts = [" ".join(prediction["words"])]
    probability = prediction.get("probability")
    given, right = _given(prediction), prediction.get("right")
    if "tags" in prediction and right is not None:  # Only the words in question.
        odd = [
            (f"{word} {r}", f"{word} {g}")
            for word, r, g in zip(prediction["words"], right, prediction["tags"], strict=True)
            if r != g
        ]
        right, given = "; ".join(pair[0] for pair in odd), "; ".join(pair[1] for pair in odd)
    return {
        "id": "" if prediction.get("id") is None else str(prediction["id"]),
        "texts": [cut(text) for text in texts],
        "right": cut(_words(right)),
        "given": cut(_words(given)),
        "probability": "" if probability is None else f"{probability:.3f}",
    }


def _words(answer: Any) -> str:
    if isinstance(answer, list | tuple):
        return ", ".join(map(_words, answer)) or "none"
    return f"{answer:.4g}" if isinstance(answer, float) else ("none" if answer in ("", None) else str(answer))


def cut(text: str) -> str:
    """Returns the first 200 characters, with … where there were more."""
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"


def _settings(config: FinetuneConfig, points: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, value in config.to_dict().items():
        if name == "grid" and points:
            tried = {key: dict.fromkeys(point["values"][key] for point in points) for key in points[0]["values"]}
            value = "; ".join(f"{key} {', '.join(f'{one:g}' for one in ones)}" for key, ones in tried.items())
        if isinstance(value, list | tuple):
            value = ", ".join(map(str, value))
        yield name, "" if value is None else str(value)
