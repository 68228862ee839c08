"""The paragraphs of a docstring, whatever its layout: reST, Markdown, the sections of NumPy or Google.

Code, tables, titles, reference lists and the names of parameters are taken out; wrapped lines are joined.
"""

import inspect
import re
from collections.abc import Iterator

# Stands in the place of what was taken out.
GONE = "\0"

_FENCE = re.compile(r"\s*(```|~~~)")
_SESSION = re.compile(r"\s*(>>>|In \[|\$ |% |#\s)")
_DIRECTIVE = re.compile(r"(\s*)\.\.(?:\s+(?P<name>[\w:-]+?)::\s*(?P<text>.*)|\s.*|)$")
_ADMONITIONS = {"note", "warning", "tip", "hint", "important", "caution", "attention", "danger", "admonition"}
_RULE = re.compile(r"\s*([=\-~^\"*#+`'_.])\1{2,}\s*$")
_TABLE = re.compile(r"[=\-]{2,}(?:\s+[=\-]{2,})+$|[^|]*\s\|\s[^|]*\s\|")
_DROPPED_SECTIONS = {"see also", "references", "methods", "attributes", "routine listings", "contents", "authors"}
_SECTION = re.compile(
    r"\s*(args?|arguments?|params|parameters|other parameters|returns?|yields?|raises|attributes|properties|inputs?|"
    r"outputs?|input shape|output shape|call arguments|examples?|usage|notes?|references?|see also|reference|todo|"
    r"example usage|standalone usage|usage with `?compile\(?\)?`? api|warnings?|methods)\s*:{1,2}\s*$",
    re.IGNORECASE,
)
_LINKS_SECTION = re.compile(r"\s*(references?|see also|reference|todo|methods)\s*:{1,2}\s*$", re.IGNORECASE)
_FIELD = re.compile(
    r"\s*:(?:param|parameter|arg|argument|key|keyword|returns?|raises?|yields?|except|i?var|cvar)\b[^:]*:\s*(?P<text>.*)$"
)
_TYPE_FIELD = re.compile(r"\s*:(?:type|rtype|vartype)\b")
_PARAMETER = re.compile(r"\s*[*\w][\w*.,\s{}'\"|\[\]()/-]*?\s:\s\S.*$")
_BARE_NAME = re.compile(r"[\w*, ]{1,30}$")
_ITEM_NAME = re.compile(
    r"[`'\"*]*[\w.*]+[`'\"*]*(?:, ?[`'\"*]*[\w.*]+[`'\"*]*)*(?:\s*\([^)]*\))?\s*(?::|--|–)\s+(?=\S)"
)
_MARKER = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)]|\(?[a-z][.)]|#\.)\s+(?=\S)")


def docstring_paragraphs(docstring: str) -> Iterator[str]:
    """Yields each paragraph as one line, its inline markup as it was, and `GONE` where something was taken out."""
    lines = inspect.cleandoc(docstring).expandtabs().split("\n")
    return _paragraphs(_without_sections(_without_blocks(lines)))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_blocks(lines: list[str]) -> Iterator[str]:
    """Drops fenced code, sessions, literal blocks and directives; each leaves a mark."""
    fenced, session = False, False
    skipped_above: int | None = None
    for line in lines:
        blank = not line.strip()
        if ("`" in line or "~" in line) and _FENCE.match(line):
            fenced ^= line.count("```") % 2 == 1 or "~~~" in line
            yield GONE
            continue
        if fenced:
            continue
        if skipped_above is not None:
            if blank or _indent(line) > skipped_above:
                continue
            skipped_above = None
            yield GONE
        if session and not blank:
            continue
        session = bool(_SESSION.match(line))
        directive = _DIRECTIVE.match(line) if ".." in line else None
        if session:
            yield GONE
        elif directive:
            if (directive["name"] or "").lower() in _ADMONITIONS:
                yield ""
                yield directive[1] + directive["text"]
            else:
                yield GONE
                skipped_above = _indent(line)
        elif line.rstrip().endswith("::") and not _SECTION.match(line):
            yield line.rstrip()[:-1]
            skipped_above = _indent(line)
        else:
            yield line


def _without_sections(source: Iterator[str]) -> Iterator[str]:
    """Drops titles, tables, reference lists and the names of parameters; begins a paragraph at each item."""
    lines = [*source, ""]
    rules = [bool(_RULE.match(line)) for line in lines]
    dropped_above: int | None = None
    for number, line in enumerate(lines[:-1]):
        following = lines[number + 1]
        if dropped_above is not None:
            if line.strip() and (rules[number + 1] or _indent(line) <= dropped_above):
                dropped_above = None
            else:
                continue
        text = line.strip()
        if not text:
            yield line
        elif rules[number + 1]:
            if text.lower().rstrip(":") in _DROPPED_SECTIONS:
                dropped_above = -1
            yield ""
        elif rules[number] or text[0] in "|+@" or _TABLE.match(text):
            yield GONE
        elif text[-1] == ":" and _SECTION.match(line):
            if _LINKS_SECTION.match(line):
                dropped_above = _indent(line)
            yield ""
        elif text[0] == ":" and _TYPE_FIELD.match(line):
            yield ""
        elif text[0] == ":" and (field := _FIELD.match(line)):
            yield ""
            yield field["text"]
        elif _indent(following) > _indent(line) and (_PARAMETER.match(text) or _BARE_NAME.match(text)):
            yield ""
        else:
            yield line


def _paragraphs(lines: Iterator[str]) -> Iterator[str]:
    """Joins wrapped lines; a list item, a named item and a change of indentation begin a new paragraph."""
    current: list[str] = []
    indent, hanging = 0, False
    for line in lines:
        text = line.strip()
        marker = _MARKER.match(text) or _ITEM_NAME.match(text)
        changed = _indent(line) != indent and not (hanging and _indent(line) > indent)
        if not text or text == GONE or marker or changed:
            if current:
                yield " ".join(current)
            current, indent, hanging = [], _indent(line), bool(marker)
        if text == GONE:
            yield GONE
            indent = -1
        if not text or text == GONE:
            continue
        if marker:
            text = text[marker.end() :]
            if named := _ITEM_NAME.match(text):
                text = text[named.end() :]
        elif hanging and len(current) == 1:
            indent, hanging = _indent(line), False
        current.append(text)
    if current:
        yield " ".join(current)
