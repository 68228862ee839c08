"""The report of a run: one HTML file that needs nothing beside it."""

import importlib.util
import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file

from .configs import PretrainConfig

_TEMPLATE = Path(__file__).with_name("report.html")
_COLUMNS = {
    "MLM loss": ("mlm_loss", "{:.4f}"),
    "Unigram loss": ("unigram_loss", "{:.4f}"),
    "Perplexity": ("mlm_perplexity", "{:.1f}"),
    "MLM accuracy": ("mlm_accuracy", "{:.1%}"),
    "NSP loss": ("nsp_loss", "{:.4f}"),
    "NSP accuracy": ("nsp_accuracy", "{:.1%}"),
    "True next": ("nsp_true_next_share", "{:.1%}"),
    "Random next": ("nsp_random_next_share", "{:.1%}"),
    "Predicted tokens": ("predicted_tokens", "{:,}"),
    "Examples": ("examples", "{:,}"),
}
_TRAINING, _HELD_OUT, _PLATEAU = "#7a7f93", "#b3261e", "#2c6e49"


def write_report(path: Path, config: PretrainConfig, lines: Sequence[dict[str, Any]], metrics: dict[str, Any]) -> str:
    """Writes the report, and returns a sentence that says so, or why there is none.

    Args:
        path: the file to write.
        config: the run's configuration.
        lines: of `metrics.jsonl`.
        metrics: of `metrics.json`.
    """
    missing = [name for name in ("matplotlib", "jinja2") if importlib.util.find_spec(name) is None]
    if missing:
        return f"No report: it needs the extra `report` ({' and '.join(missing)} not installed)."
    import jinja2

    template = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True).from_string(
        _TEMPLATE.read_text(encoding="utf-8")
    )
    records = metrics["held_out"]
    # Without next-sentence prediction there are no figures of it.
    columns = [title for title, (name, _) in _COLUMNS.items() if all(name in record for record in records.values())]
    html = template.render(
        title=f"Pretraining {config.run}",
        summary=_summary(config, lines, metrics),
        best_step=metrics["best_step"],
        columns=columns,
        rows=[[length, *_cells(record, columns)] for length, record in records.items()],
        curves=draw_curves(lines),
        settings=list(_settings(config)),
    )
    with atomic_file(path) as file:
        file.write(html)
    return f"Report: {path}"


def draw_curves(lines: Sequence[dict[str, Any]], form: str = "svg") -> Any:
    """Draws losses, accuracies, learning rate and speed over the steps.

    Args:
        lines: of `metrics.jsonl`.
        form: `"svg"` for the picture as text, `"png"` for bytes.
    """
    import matplotlib

    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "report", "svg.fonttype": "none", "font.size": 9}):
        figure = curves_figure(lines)
        figure.savefig(stream, format=form, dpi=80, metadata={"Date": None} if form == "svg" else None)
    if form != "svg":
        return stream.getvalue()
    text = stream.getvalue().decode("utf-8")
    return text[text.index("<svg") :]


def curves_figure(lines: Sequence[dict[str, Any]]) -> Any:
    """Returns the matplotlib figure of `draw_curves`."""
    from matplotlib.figure import Figure

    pictures: list[tuple[Any, ...]] = [
        ("Loss (MLM and NSP)", "loss"),
        ("Learning rate", "learning_rate"),
        ("MLM loss", "mlm_loss", "unigram model", lambda line: line.get("held_out_unigram_loss")),
        ("MLM accuracy", "mlm_accuracy"),
        ("NSP loss", "nsp_loss", "label shares", _label_entropy),
        ("NSP accuracy", "nsp_accuracy", "commoner label", _majority_share),
        ("Examples per second", "examples_per_second"),
    ]
    if all("nsp_loss" not in line for line in lines):  # The whole loss is that of MLM.
        pictures = [picture for picture in pictures if "NSP" not in picture[0]]
    rows = -(-len(pictures) // 2)
    figure = Figure(figsize=(10, 2.75 * rows), layout="constrained")
    axes = figure.subplots(rows, 2).flatten()
    for place, picture in itertools.zip_longest(axes, pictures):
        if picture:
            _draw(place, lines, *picture)
        else:
            place.set_axis_off()
    return figure


def _majority_share(line: dict[str, Any]) -> float | None:
    return line.get("held_out_nsp_majority_share")


def _label_entropy(line: dict[str, Any]) -> float | None:
    share = _majority_share(line)
    return None if share is None else -sum(p * math.log(p) for p in (share, 1 - share) if p > 0)


def _draw(
    axes: Any,
    lines: Sequence[dict[str, Any]],
    title: str,
    name: str,
    plateau: str = "",
    plateau_of: Callable[[dict[str, Any]], float | None] = lambda line: None,
) -> None:
    axes.set_title(title, loc="left")
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for first, second in itertools.pairwise(lines):
        if first["phase"] != second["phase"]:
            axes.axvline(first["step"], color="#bbbbc4", linewidth=0.8)
    for phase in sorted({line["phase"] for line in lines}):
        in_phase = [line for line in lines if line["phase"] == phase]
        once = phase == lines[0]["phase"]
        _curve(axes, in_phase, name, color=_TRAINING, label="training" if once else None)
        _curve(axes, in_phase, f"held_out_{name}", color=_HELD_OUT, marker="o", label="held out" if once else None)
        if values := [value for line in in_phase if (value := plateau_of(line)) is not None]:
            ends = [in_phase[end]["step"] for end in (0, -1)]
            label = plateau if plateau not in axes.get_legend_handles_labels()[1] else None
            axes.plot(ends, [values[-1]] * 2, color=_PLATEAU, linestyle="--", linewidth=1.2, label=label)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        # Above the curves, at the end of the title's line.
        axes.legend(
            frameon=False,
            loc="lower right",
            bbox_to_anchor=(1, 1),
            borderaxespad=0,
            ncols=3,
            columnspacing=1,
            handlelength=1.5,
            fontsize="small",
        )
    axes.set_xlabel("step")


def _curve(axes: Any, lines: Sequence[dict[str, Any]], name: str, **style: Any) -> None:
    points = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
    if points:
        axes.plot(*zip(*points, strict=True), linewidth=1.2, markersize=3.5, **style)


def _summary(config: PretrainConfig, lines: Sequence[dict[str, Any]], metrics: dict[str, Any]) -> str:
    phases = ", then ".join(f"length {phase.length} for {phase.share:.0%}" for phase in config.phases)
    rates = [line["examples_per_second"] for line in lines if line["examples_per_second"]]
    speed = f" Median speed: {sorted(rates)[len(rates) // 2]:.0f} examples per second." if rates else ""
    return f"{metrics['steps']:,} steps of BERT pretraining on {config.data}: {phases} of the steps.{speed}"


def _cells(record: dict[str, Any], columns: Iterable[str]) -> list[str]:
    return [form.format(record[name]) for name, form in (_COLUMNS[title] for title in columns)]


def _settings(config: PretrainConfig) -> Iterator[tuple[str, str]]:
    for name, value in config.to_dict().items():
        if name == "phases":
            value = "; ".join(", ".join(f"{k} {v}" for k, v in phase.items() if v is not None) for phase in value)
        yield name, "" if value is None else str(value)
