"""What a TFLite file is and what it cost: for programs, for people, and as the reason to refuse it."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from keras_bert_impl.finite_values import finite_or_none

from .agreement import Agreement
from .measure_tflite import Measured
from .operators import Operators
from .text_rows import TextRows

JSON_FILE, PAGE_FILE = "report.json", "report.md"
_MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Metric:
    """A metric of the task on labelled examples, in points of 100.

    Attributes:
        name: such as `"accuracy"`.
        before: that of the Keras model.
        after: that of the file.
    """

    name: str
    before: float
    after: float


@dataclasses.dataclass(frozen=True)
class Variant:
    """A file, with its weights in one form.

    Attributes:
        form: such as `"dynamic"`; `"none"` for float32.
        bytes: its size, with all that lies in it.
        seconds: that it took to make it, from the Keras model on.
        operators: of the graph.
        agreement: with the Keras model.
        metric: on labelled examples, where there are some.
        measured: speed and memory.
    """

    form: str
    bytes: int
    seconds: float
    operators: Operators
    agreement: Agreement
    metric: Metric | None
    measured: Measured

    def losses(self, max_drop: float) -> list[str]:
        """Returns what it lost more of than `max_drop` points, in words; what is no number is lost."""
        lost = []
        drop = 100 * (1 - self.agreement.share)
        if not drop <= max_drop:
            lost.append(f"{points(drop)} of agreement with the Keras model ({100 * self.agreement.share:.2f}%)")
        if self.metric is not None and not self.metric.before - self.metric.after <= max_drop:
            metric = self.metric
            change = f"{metric.before:.2f} to {metric.after:.2f}"
            lost.append(f"{points(metric.before - metric.after)} of {metric.name.replace('_', ' ')} ({change})")
        return lost

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {
            "quantize": self.form,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 2),
            "operators": self.operators.to_dict(),
            "agreement": self.agreement.to_dict(),
            "metric": None if self.metric is None else dataclasses.asdict(self.metric),
            "measured": self.measured.to_dict(),
        }


@dataclasses.dataclass(frozen=True)
class Report:
    """What was seen of an export.

    Attributes:
        kind: of answer.
        compared_on: the texts, in words.
        variants: the float32 file first; the last is the one that is exported.
        max_drop: points that may be lost.
        allowed: whether more may be lost.
        calibration: texts that activations were calibrated on, in words; None without.
        text_rows: of a file that takes texts, what rows it makes of them.
        notes: what else there is to say, in sentences.
    """

    kind: str
    compared_on: str
    variants: Sequence[Variant]
    max_drop: float
    allowed: bool
    calibration: str | None = None
    text_rows: TextRows | None = None
    notes: Sequence[str] = ()

    @property
    def losses(self) -> list[str]:
        """What the exported file lost too much of."""
        lost = self.variants[-1].losses(self.max_drop)
        if self.text_rows is not None:
            drop = 100 * (1 - self.text_rows.share)
            if not drop <= self.max_drop:
                lost.append(f"{points(drop)} of the rows of texts")
        return lost

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return finite_or_none(
            {
                "kind": self.kind,
                "compared_on": self.compared_on,
                "calibration": self.calibration,
                "text_rows": None if self.text_rows is None else self.text_rows.to_dict(),
                "max_drop": self.max_drop,
                "drop_allowed": self.allowed,
                "lost_too_much": self.losses,
                "notes": list(self.notes),
                "variants": [variant.to_dict() for variant in self.variants],
            }
        )

    def table(self) -> list[str]:
        """Returns lines of a table, with a column for the Keras model and one for each file."""
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def page(self) -> str:
        """Returns the report in Markdown."""
        head, *rows = self._rows()
        last = self.variants[-1]
        lines = [
            f"# TFLite file for {self.kind}, {_name(last.form)}",
            "",
            f"Compared with the Keras model on {self.compared_on}."
            + (f" Activations were calibrated on {self.calibration}." if self.calibration else ""),
            "",
            f"| {' | '.join(head)} |",
            f"|---|{'---:|' * (len(head) - 1)}",
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
            f"Agreement: {last.agreement.meaning}. Times and memory are of this machine's CPU, one row of "
            f"{last.measured.columns} columns at a time, in a process with LiteRT alone.",
            "",
            *(f"- {note}" for note in self.notes),
            *([""] if self.notes else []),
        ]
        if self.losses:
            allowed = "which was allowed" if self.allowed else "so it was refused"
            lines += [f"It lost {' and '.join(self.losses)}, more than {points(self.max_drop)}: {allowed}.", ""]
        if last.agreement.examples:
            lines += ["Some texts that are answered otherwise:", "", "| text | Keras | file |", "|---|---|---|"]
            lines += [f"| {' | '.join(map(_cell, example))} |" for example in last.agreement.examples]
            lines.append("")
        uses = {"Operators": last.operators.built_in, "Custom operators": last.operators.custom}
        for name, counts in uses.items():
            lines.append(f"{name}: {', '.join(f'{one} {count}' for one, count in counts.items()) or 'none'}.")
        return "\n".join(lines) + "\n"

    def _rows(self) -> list[list[str]]:
        variants, first = self.variants, self.variants[0]
        metric = first.metric
        rows = [
            ["", "Keras", *(_name(variant.form) for variant in variants)],
            ["size, MiB", "", *(f"{variant.bytes / _MIB:.2f}" for variant in variants)],
            ["of float32", "", *(f"{variant.bytes / first.bytes:.3f}" for variant in variants)],
            ["agreement, %", "", *(f"{100 * variant.agreement.share:.2f}" for variant in variants)],
            ["largest difference", "", *(f"{variant.agreement.largest:.1e}" for variant in variants)],
            ["mean difference", "", *(f"{variant.agreement.mean:.1e}" for variant in variants)],
        ]
        if metric is not None:
            after = [variant.metric.after if variant.metric else float("nan") for variant in variants]
            rows.append([metric.name.replace("_", " "), *(f"{value:.2f}" for value in (metric.before, *after))])
        rows.append(
            [
                "texts cut off",
                f"{first.agreement.truncated_before:,}",
                *(f"{variant.agreement.truncated:,}" for variant in variants),
            ]
        )
        for threads in first.measured.milliseconds:
            label = f"ms, {threads} thread{'s' * (threads > 1)}"
            rows.append([label, "", *(f"{variant.measured.milliseconds[threads]:.3g}" for variant in variants)])
        rows += [
            ["peak memory, MiB", "", *(f"{variant.measured.peak_bytes / _MIB:.0f}" for variant in variants)],
            ["of it for the file", "", *(f"{variant.measured.added_bytes / _MIB:.0f}" for variant in variants)],
            ["conversion, s", "", *(f"{variant.seconds:.1f}" for variant in variants)],
            ["operators", "", *(f"{sum(variant.operators.built_in.values()):,}" for variant in variants)],
            ["custom operators", "", *(f"{sum(variant.operators.custom.values()):,}" for variant in variants)],
        ]
        return rows


def _name(form: str) -> str:
    return "float32" if form == "none" else form


def points(drop: float) -> str:
    """Returns a number of points in words."""
    return "1 point" if drop == 1 else f"{drop:.2f}".rstrip("0").rstrip(".") + " points"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
