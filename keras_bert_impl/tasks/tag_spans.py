"""From a tag for each word to spans of words."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
_MARK = re.compile(r"([BIESLUMW])(?:-(.+))?", re.DOTALL)
_SAME_MARKS = {"L": "E", "U": "S", "M": "I", "W": "S"}  # BILOU and BMEWO


class TagSpan(NamedTuple):
    """Words `start` to `end` (not included) that have a label together."""

    label: str
    start: int
    end: int


def tag_form(tags: Iterable[str]) -> str:
    """Returns what the tags of a data set or a model say of a word.

    `"marks"`: where spans begin and go on, as in `B-PER`; `"types"`: the type of span that it is in, with `O` for
    none, so that neighbours of one type are one span; `"words"`: something of the word itself, such as its part of
    speech.
    """
    tags = set(tags)
    inside = tags - {OUTSIDE}
    bare = {tag for tag in inside if len(tag) == 1}
    # Single letters may be anything; where one of them is B they mark spans without a label.
    marked = {tag for tag in inside if _MARK.fullmatch(tag)} - (set() if "B" in bare else bare)
    # Some models have a further output or two, such as X for continuing pieces.
    if 2 * len(marked) > len(inside):
        return "marks"
    return "types" if OUTSIDE in tags or not inside else "words"


def with_marks(tags: Iterable[str], form: str) -> list[str]:
    """Returns tags of any form with the marks B, I, E and S, as seqeval reads them.

    Of `"marks"`, a tag that has none is `O`; of `"words"`, each is a span.
    """
    if form == "marks":
        return [_SAME_MARKS.get(tag[:1], tag[:1]) + tag[1:] if _MARK.fullmatch(tag) else OUTSIDE for tag in tags]
    mark = "I-" if form == "types" else "S-"
    return [tag if tag == OUTSIDE else mark + tag for tag in tags]


def tag_spans(tags: Sequence[str]) -> list[TagSpan]:
    """Returns the spans of tags with marks, by the rules of conlleval, which are those of seqeval by default.

    A span begins with B or S, after `O`, E or S, and where the type changes: also with I, if a model says so.
    """
    spans: list[TagSpan] = []
    before, label_before = OUTSIDE, ""
    for place, tag in enumerate(tags):
        mark, label = tag[:1], tag[2:] or "_"
        if tag != OUTSIDE:
            if mark in "BS" or before in "OES" or label != label_before:
                spans.append(TagSpan(label, place, place + 1))
            else:
                spans[-1] = spans[-1]._replace(end=place + 1)
        before, label_before = mark, label
    return spans
