"""The error of a TFLite file that has lost more than it may."""

from pathlib import Path

from keras_bert_impl.errors import InputError

from .report import Report, points


class LostAccuracyError(InputError):
    """The file answers otherwise than the Keras model, or worse, by more than is allowed.

    The message has the table of the report.

    Attributes:
        report: what was seen.
        kept: the directory in which the file and the report lie.
    """

    def __init__(self, report: Report, kept: Path) -> None:
        self.report, self.kept = report, kept
        form = report.variants[-1].form
        super().__init__(
            f"`quantize` must not cost more than `max_drop`, {points(report.max_drop)}, unless `allow_drop` is given. "
            f"Received: quantize={form!r}, which loses {' and '.join(report.losses)}; nothing was put in place, and "
            f"the refused file is kept in {str(kept)!r}. Compared on {report.compared_on}:\n"
            + "\n".join(report.table())
        )
