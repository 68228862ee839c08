"""The report of a run: one HTML file that needs nothing beside it."""

import io
import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .configs import PretrainConfig
from .held_out import perplexity
from .phases import Phase
from .report_page import draw_curve, picture_style, plain_axes, svg_text, why_no_report, write_page
from .sicknesses import label_entropy
from .throughput import RATES

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
_LINE_COLUMNS = {
    "Examples per second": (RATES[0], "{:,.0f}"),
    "Real tokens per second": (RATES[1], "{:,.0f}"),
    "Waiting for input": (RATES[2], "{:.1%}"),
    "Utilisation": (RATES[3], "{:.1%}"),
}
_TRAINING, _HELD_OUT, _PLATEAU = "#7a7f93", "#b3261e", "#2c6e49"


def write_report(
    path: Path,
    config: PretrainConfig,
    lines: Sequence[dict[str, Any]],
    metrics: dict[str, Any],
    phases: Sequence[Phase],
    sicknesses: Sequence[tuple[int, str]] = (),
) -> str:
    """Writes the report, and returns a sentence that says so, or why there is none.

    Args:
        path: the file to write.
        config: the run's configuration.
        lines: of `metrics.jsonl`.
        metrics: of `metrics.json`.
        phases: of the run.
        sicknesses: what the run was warned of, with the steps.
    """
    if missing := why_no_report():
        return missing
    records = metrics["held_out"]
    # Without next-sentence prediction there are no figures of it.
    columns = [title for title, (name, _) in _COLUMNS.items() if all(name in record for record in records.values())]
    return write_page(
        path,
        _TEMPLATE,
        title=f"Pretraining {config.run}",
        summary=_summary(config, lines, metrics),
        sicknesses=sicknesses,
        best_step=metrics["best_step"],
        columns=columns,
        rows=[[length, *_cells(record, columns)] for length, record in records.items()],
        phase_columns=list(_LINE_COLUMNS),
        phases=[_phase_cells(phase, lines) for phase in phases],
        curves=draw_curves(lines),
        settings=list(_settings(config)),
    )


def draw_curves(lines: Sequence[dict[str, Any]], form: str = "svg") -> Any:
    """Draws losses, perplexity, accuracies, learning rate and speed over the steps.

    Args:
        lines: of `metrics.jsonl`.
        form: `"svg"` for the picture as text, `"png"` for bytes.
    """
    with picture_style():
        figure = curves_figure(lines)
        if form == "svg":
            return svg_text(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format=form, dpi=80)
        return stream.getvalue()


def curves_figure(lines: Sequence[dict[str, Any]]) -> Any:
    """Returns the matplotlib figure of `draw_curves`."""
    from matplotlib.figure import Figure

    pictures: list[tuple[Any, ...]] = [
        ("Loss (MLM and NSP)", "loss"),
        ("Learning rate", "learning_rate"),
        ("MLM loss", "mlm_loss", "unigram model", lambda line: line.get("held_out_unigram_loss")),
        ("Perplexity", "mlm_perplexity", "unigram model", _unigram_perplexity),
        ("MLM accuracy", "mlm_accuracy"),
        ("NSP loss", "nsp_loss", "label shares", _label_entropy),
        ("NSP accuracy", "nsp_accuracy", "commoner label", _majority_share),
        *((title, name) for title, (name, _) in _LINE_COLUMNS.items()),
        ("Skipped steps", "skipped_steps"),
        ("Loss scale", "loss_scale"),
    ]
    # Older runs have no such lines; most skip no step and scale no loss.
    optional = {name: any(line.get(name) for line in lines) for name in ("mlm_perplexity", *RATES[1:])}
    optional |= {name: any(line.get(name) for line in lines) for name in ("skipped_steps", "loss_scale")}
    pictures = [picture for picture in pictures if optional.get(picture[1], True)]
    if all("nsp_loss" not in line for line in lines):  # The whole loss is that of MLM.
        pictures = [picture for picture in pictures if "NSP" not in picture[0]]
    rows = -(-len(pictures) // 2)
    height = 2.75 * rows
    figure = Figure(figsize=(10, height))
    # By hand: a layout that matplotlib works out takes as long as the drawing.
    figure.subplots_adjust(
        left=0.065, right=0.985, top=1 - 0.35 / height, bottom=0.5 / height, wspace=0.17, hspace=0.42
    )
    axes = figure.subplots(rows, 2).flatten()
    for place, picture in itertools.zip_longest(axes, pictures):
        if picture:
            _draw(place, lines, *picture)
        else:
            place.set_axis_off()
    return figure


def _majority_share(line: dict[str, Any]) -> float | None:
    return line.get("held_out_nsp_majority_share")


def _unigram_perplexity(line: dict[str, Any]) -> float | None:
    loss = line.get("held_out_unigram_loss")
    return None if loss is None else perplexity(loss)


def _label_entropy(line: dict[str, Any]) -> float | None:
    share = _majority_share(line)
    return None if share is None else label_entropy(share)


def _draw(
    axes: Any,
    lines: Sequence[dict[str, Any]],
    title: str,
    name: str,
    plateau: str = "",
    plateau_of: Callable[[dict[str, Any]], float | None] = lambda line: None,
) -> None:
    if name == "mlm_perplexity":  # It begins at the size of the vocabulary.
        axes.set_yscale("log")
    plain_axes(axes, title)
    for first, second in itertools.pairwise(lines):
        if first["phase"] != second["phase"]:
            axes.axvline(first["step"], color="#bbbbc4", linewidth=0.8)
    for phase in sorted({line["phase"] for line in lines}):
        in_phase = [line for line in lines if line["phase"] == phase]
        once = phase == lines[0]["phase"]
        draw_curve(axes, in_phase, name, color=_TRAINING, label="training" if once else None)
        draw_curve(axes, in_phase, f"held_out_{name}", color=_HELD_OUT, marker="o", label="held out" if once else None)
        if values := [value for line in in_phase if (value := plateau_of(line)) is not None]:
            ends = [in_phase[end]["step"] for end in (0, -1)]
            label = plateau if plateau not in axes.get_legend_handles_labels()[1] else None
            axes.plot(ends, [values[-1]] * 2, color=_PLATEAU, linestyle="--", linewidth=1.2, label=label)
    if name in (*RATES, "skipped_steps"):
        axes.set_ylim(bottom=0)
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


def _summary(config: PretrainConfig, lines: Sequence[dict[str, Any]], metrics: dict[str, Any]) -> str:
    said = f"{metrics['steps']:,} steps of BERT pretraining on {config.data}."
    if tokens := sum(line.get("tokens", 0) for line in lines):
        examples = sum(line["examples"] for line in lines if "examples" in line)
        said += f" {examples:,} examples with {tokens:,} real tokens were read, those of skipped steps not counted."
    replicas = dict.fromkeys(line["replicas"] for line in lines if "replicas" in line)
    if replicas:
        said += f" Replicas: {', then '.join(map(str, replicas))}; dtype {config.dtype}."
    if skipped := max((line.get("skipped_steps", 0) for line in lines), default=0):
        said += f" Skipped steps, whose loss or gradient was not finite: {skipped:,}."
    return said


def _phase_cells(phase: Phase, lines: Sequence[dict[str, Any]]) -> list[str]:
    """The plan of a phase and the medians of its lines."""
    rows = f"{phase.batch_size:,}{' packed' if phase.packed else ''}"
    cells = [str(phase.number), f"{phase.first_step + 1:,} to {phase.last_step:,}", str(phase.length), rows]
    for name, form in _LINE_COLUMNS.values():
        values = [line[name] for line in lines if line["phase"] == phase.number and line.get(name) is not None]
        cells.append(form.format(statistics.median(values)) if values else "–")
    return cells


def _cells(record: dict[str, Any], columns: Iterable[str]) -> list[str]:
    return [
        "not finite" if record[name] is None else form.format(record[name])
        for name, form in (_COLUMNS[title] for title in columns)
    ]


def _settings(config: PretrainConfig) -> Iterator[tuple[str, str]]:
    for name, value in config.to_dict().items():
        if name == "phases":
            value = "; ".join(", ".join(f"{k} {v}" for k, v in phase.items() if v is not None) for phase in value)
        yield name, "" if value is None else str(value)
