"""One HTML page that needs nothing beside it: what the reports of pretraining and fine-tuning share."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_bert_impl.atomic import atomic_file
from keras_bert_impl.extras import missing_packages


def why_no_report() -> str | None:
    """Returns a sentence on what a report lacks; None if there is all that it needs."""
    missing = missing_packages(("matplotlib", "jinja2"))
    return f"No report: it needs the extra `report` ({' and '.join(missing)} not installed)." if missing else None


def write_page(path: Path, template: Path, **values: Any) -> str:
    """Writes a page, and returns a sentence that says so.

    Args:
        path: the file to write.
        template: extends `report_page.html`.
        **values: what the template names.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    html = environment.get_template(template.name).render(**values)
    with atomic_file(path) as file:
        file.write(html)
    return f"Report: {path}"


def picture_style() -> Any:
    """Returns a context in which figures are made: small letters, and the same bytes for the same figure."""
    import matplotlib

    return matplotlib.rc_context({"svg.hashsalt": "report", "svg.fonttype": "none", "font.size": 9})


def svg_text(figure: Any) -> str:
    """Returns a matplotlib figure as SVG, to be put into a page."""
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue().decode("utf-8")
    return text[text.index("<svg") :]


def plain_axes(axes: Any, title: str) -> None:
    """Gives axes a title, a grid and no frame."""
    axes.set_title(title, loc="left")
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_curve(axes: Any, lines: Sequence[Mapping[str, Any]], name: str, **style: Any) -> None:
    """Draws a value over the steps of those lines that have it."""
    points = [(line["step"], line[name]) for line in lines if line.get(name) is not None]
    if points:
        axes.plot(*zip(*points, strict=True), linewidth=1.2, markersize=3.5, **style)
