"""Which columns of a table are the text, its pair, the label and the row's own name."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_impl.errors import InputError

# In lower case, as names of columns are compared with them. Those of GLUE and what is met often elsewhere.
PAIRS = (
    ("sentence1", "sentence2"),
    ("#1 string", "#2 string"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("text", "text_pair"),
)
TEXTS = ("sentence", "text", "text_a", "review", "content", "comment", "tweet")
LABELS = (
    "label",
    "labels",
    "quality",
    "score",
    "gold_label",
    "sentiment",
    "class",
    "target",
    "category",
    "is_duplicate",
)
IDS = ("id", "idx", "index", "guid")
QUESTIONS = ("question", "query")
CONTEXTS = ("context", "passage", "paragraph")
ANSWERS = ("answers", "answer", "answer_text")
ANSWER_STARTS = ("answer_start", "start")
IMPOSSIBLE = ("is_impossible",)
WORDS = ("tokens", "words", "token", "word")
TAGS = ("tags", "ner_tags", "tag", "ner", "labels", "label", "pos_tags", "pos", "chunk_tags")
"""What makes a first row one of names."""
USUAL_NAMES = frozenset((*(name for pair in PAIRS for name in pair), *TEXTS, *LABELS, *IDS, *QUESTIONS, *CONTEXTS))
_SHOWN = 24
_SAMPLE = 28
_OF_PAIRS = ", since the model takes pairs of texts"


@dataclasses.dataclass(frozen=True)
class TextColumns:
    """The columns of texts, by name; None for one that is not there or not asked for."""

    text: str
    pair: str | None = None
    label: str | None = None
    id: str | None = None

    def __str__(self) -> str:
        parts = [f"{what} {name!r}" for what, name in dataclasses.asdict(self).items() if name is not None]
        return "columns: " + ", ".join(parts)


class ColumnFinder:
    """Finds columns of one table by the settings and the usual names.

    Args:
        names: the columns' names in order; the numbers from 1 where the table has no names.
        config: the settings of columns.
        argument: what error messages call the files.
        source: what they call this one.
        by_number: whether a setting may be a number.
        first: a row, shown in messages where there are no names.
    """

    def __init__(
        self,
        names: Sequence[str],
        config: Any,
        *,
        argument: str,
        source: str,
        by_number: bool = True,
        first: Mapping[str, Any] | None = None,
    ) -> None:
        self.names, self.config, self.argument, self.source = list(names), config, argument, source
        self.by_number, self.first = by_number, first
        self.lower: dict[str, list[str]] = {}
        for name in self.names:
            self.lower.setdefault(name.strip().casefold(), []).append(name)

    def text_columns(self, *, pair: bool | None, labelled: bool) -> TextColumns:
        """Returns the columns of texts.

        Args:
            pair: whether a second text is wanted; None: if there is a usual one.
            labelled: whether a label is.

        Raises:
            InputError: if one that is needed is not there, or several may be it.
        """
        text, second = self._texts(pair)
        label = self.one("label_column", LABELS) if labelled else None
        if label is not None and label in (text, second):
            raise self.fault("label_column", f"must be another column than the text. Received: {label!r}")
        return TextColumns(text, second, label, self.id_column())

    def _texts(self, pair: bool | None) -> tuple[str, str | None]:
        given, given_pair = self.config.text_column, self.config.text_pair_column
        wanted = "without" if pair is False or given_pair == "" else "with" if pair else "either"
        if given is not None:
            text = self.named("text_column", given)
            second = self._second(text, given_pair) if wanted != "without" else None
        elif given_pair:
            second = self.named("text_pair_column", given_pair)
            firsts = [first for first, other in self._pairs() if other == second]
            text = firsts[0] if len(firsts) == 1 else self.one("text_column", TEXTS)
        else:
            self._check_number_of_texts(pair)
            text, second = self._usual_texts(wanted)
        if pair and second is None:
            raise self.fault("text_pair_column", f"must name the column of the second text{_OF_PAIRS}. Received: none")
        if text == second:
            raise self.fault("text_pair_column", f"must be another column than the text. Received: {second!r}")
        return text, second

    def _check_number_of_texts(self, pair: bool | None) -> None:
        """Refuses usual names of single texts where pairs are wanted, and the other way round."""
        pairs, singles = self._pairs(), self.usual(TEXTS)
        if pair and singles and not pairs:
            raise self.fault("text_pair_column", f"must name the column of the second text{_OF_PAIRS}. Received: none")
        if pair is False and len(pairs) == 1 and not singles:
            raise self.fault(
                "text_column",
                "must name the column of the text, since the model takes single texts. Received: a pair, "
                f"{pairs[0][0]!r} with {pairs[0][1]!r}",
            )

    def _pairs(self) -> list[tuple[str, str]]:
        return [(self.lower[a][0], self.lower[b][0]) for a, b in PAIRS if a in self.lower and b in self.lower]

    def _second(self, text: str, given: str | None) -> str | None:
        if given:
            return self.named("text_pair_column", given)
        return next((second for first, second in self._pairs() if first == text), None)

    def _usual_texts(self, wanted: str) -> tuple[str, str | None]:
        pairs: list[tuple[str, str | None]] = [*self._pairs()] if wanted != "without" else []
        in_pairs = {name for pair in pairs for name in pair}
        singles = [name for name in self.usual(TEXTS) if name not in in_pairs] if wanted != "with" else []
        found = [*pairs, *((name, None) for name in singles)]
        if len(found) != 1:
            several = " or ".join(" with ".join(map(repr, filter(None, columns))) for columns in found)
            raise self.fault("text_column", f"must name the column of the text. Received: {several or 'none'}")
        return found[0]

    def id_column(self) -> str | None:
        """Returns the column of the rows' own names, or None."""
        given = self.config.id_column
        if given is not None:
            return self.named("id_column", given) if given else None
        return next(iter(self.usual(IDS)), None)

    def usual(self, known: Sequence[str]) -> list[str]:
        """Returns the columns that have one of these names, in the order of the names."""
        return [name for usual in known for name in self.lower.get(usual, [])]

    def one(self, setting: str, known: Sequence[str]) -> str:
        """Returns the column that a setting names, or the only one of a usual name."""
        given = getattr(self.config, setting)
        if given is not None:
            return self.named(setting, given)
        found = self.usual(known)
        if len(found) != 1:
            what = {"label_column": "label", "text_column": "text", "text_pair_column": "second text"}[setting]
            received = " or ".join(map(repr, found)) or "none"
            raise self.fault(setting, f"must name the column of the {what}. Received: {received}")
        return found[0]

    def named(self, setting: str, given: str) -> str:
        """Returns the column that has a name or a number."""
        if given in self.names:
            return given
        if self.by_number and given.isdecimal() and 1 <= int(given) <= len(self.names):
            return self.names[int(given) - 1]
        raise self.fault(setting, f"must name a column. Received: {given!r}")

    def fault(self, setting: str, message: str) -> InputError:
        """Returns an error that shows which columns there are."""
        shown = []
        for name in self.names[:_SHOWN]:
            value = (self.first or {}).get(name)
            shown.append(f"{name} ({_sample(value)})" if value is not None else repr(name))
        more = ", …" if len(self.names) > _SHOWN else ""
        kind = "columns without names" if self.first is not None else "columns"
        return InputError(f"`{setting}` {message}; {self.source} has the {kind} {', '.join(shown)}{more}")


def _sample(value: Any) -> str:
    """Returns the beginning of a value, within its quotation marks."""
    text = str(value)
    return repr(value) if len(text) <= _SAMPLE else repr(text[:_SAMPLE] + "…")
