"""How tags of words mark spans: the schemes in use, recognised and converted to IOB2.

IOB1 and IOB2 (Ramshaw and Marcus, 1995; Tjong Kim Sang and Veenstra, 1999), with I alone (IO), and those that mark
ends and spans of one word too: BIOES, BMES, BILOU, BMEWO. In IOB2, which is written, each span begins with B.
"""

import dataclasses
from collections.abc import Iterable, Sequence

_INSIDE, _END, _SINGLE = "IM", "EL", "SUW"
_LETTERS = "B" + _INSIDE + _END + _SINGLE
_FAMILIES = ("BIOES", "BMES", "BMEWO", "BILOU")


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a set of sentences is tagged.

    Attributes:
        name: IOB2, IOB1, IO, BIOES, BMES, BMEWO, BILOU, or none: the tags mark no spans.
        faults: tags that do not keep to it: in IOB2 spans that start with I, in the others that begin or end
            with a letter which cannot.
    """

    name: str
    faults: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    """Words `start` to `end`, which is the first one behind it, with a label."""

    label: str
    start: int
    end: int


def split_tag(tag: str) -> tuple[str, str] | None:
    """Returns letter and label, `("B", "PER")` for `B-PER`; letter O for O; None for a tag that has no such form."""
    if tag == "O":
        return "O", ""
    if tag[:1] in _LETTERS and (tag[1:2] == "-" and len(tag) > 2):
        return tag[0], tag[2:]
    if len(tag) == 1 and tag in _LETTERS:  # The spans of word segmentation have no label.
        return tag, ""
    return None


def marks_spans(tags: Iterable[str]) -> bool:
    """Whether tags are those of spans, as `B-PER`: they all have the form, and one is more than O."""
    marks = set(tags) - {"O"}
    bare = {tag for tag in marks if len(tag) == 1}
    # Single letters may be anything; where one of them is a beginning they are those of spans.
    return bool(marks) and all(map(split_tag, marks)) and (not bare or "B" in bare)


def find_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Recognises the scheme over all sentences: the one that most of the tags keep to."""
    sentences = list(sentences)
    if not marks_spans(tag for tags in sentences for tag in tags):
        return Scheme("none")
    letters = {tag[0] for tags in sentences for tag in tags} - {"O"}
    if letters <= {"I"}:
        return Scheme("IO")
    if letters <= {"B", "I"}:
        starts = begins = 0
        for tags in sentences:
            before = ""
            for tag in tags:
                same = before not in ("", "O") and before[1:] == tag[1:]
                starts += tag[0] == "I" and not same
                begins += tag[0] == "B" and not same
                before = tag
        # In IOB1 a B stands only where a span of the same label touches the one before.
        return Scheme("IOB1", begins) if begins < starts else Scheme("IOB2", starts)
    name = next((family for family in _FAMILIES if letters - {"B", "I"} <= set(family)), "BIOES")
    return Scheme(name, sum(_faults(tags) for tags in sentences))


def _faults(tags: Sequence[str]) -> int:
    """Counts, where ends are marked, the spans that do not begin with B or a single, or do not end with their end."""
    count = 0
    open_label = None
    for tag in tags:
        letter, label = split_tag(tag) or ("O", "")
        goes_on = letter in _INSIDE + _END
        if open_label is not None and not (goes_on and label == open_label):
            count += 1  # not closed
        if goes_on and open_label != label:
            count += 1  # not opened
        open_label = label if letter == "B" or letter in _INSIDE else None
    return count + (open_label is not None)


def to_iob2(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """Converts the tags of a sentence.

    Args:
        tags: of one sentence.
        scheme: the name of their scheme; `"none"` leaves them as they are.
    """
    if scheme == "none":
        return tuple(tags)
    result = []
    open_label = None
    for tag in tags:
        letter, label = split_tag(tag) or ("O", "")
        if letter == "O":
            open_label = None
            result.append("O")
            continue
        goes_on = letter in _INSIDE + _END and label == open_label
        result.append(("I" if goes_on else "B") + tag[1:])
        open_label = None if letter in _END + _SINGLE else label
    return tuple(result)


def spans(tags: Sequence[str]) -> list[Span]:
    """Returns the spans that IOB2 tags mark, in order; one that starts with I, as a model may give, counts as begun."""
    found: list[Span] = []
    start, open_label = 0, None
    for position, tag in enumerate((*tags, "O")):
        letter, label = split_tag(tag) or ("O", "")
        if open_label is not None and (letter != "I" or label != open_label):
            found.append(Span(open_label, start, position))
            open_label = None
        if letter != "O" and open_label is None:
            start, open_label = position, label
    return found
