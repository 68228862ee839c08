"""Running English out of docstrings: code, tables, markup and signatures removed, paragraphs unwrapped.

Docstrings come in reST, in Markdown and in the sections of NumPy and Google. What remains is what a reader
would read aloud; a paragraph that still looks like code afterwards is dropped.
"""

import inspect
import re
from collections.abc import Iterator

LEAST_WORDS = 5
PLAIN_SHARE = 0.72

_GONE = "\0"
_FENCE = re.compile(r"\s*(```|~~~)")
_SESSION = re.compile(r"\s*(>>>|In \[|\$ |% |#\s)")
_DIRECTIVE = re.compile(r"(\s*)\.\.(?:\s+(?P<name>[\w:-]+?)::\s*(?P<text>.*)|\s.*|)$")
_ADMONITIONS = {"note", "warning", "tip", "hint", "important", "caution", "attention", "danger", "admonition"}
_RULE = re.compile(r"\s*([=\-~^\"*#+`'_.])\1{2,}\s*$")
_TABLE = re.compile(r"\s*[|+]|\s*[=\-]{2,}(\s+[=\-]{2,})+\s*$|.*\s\|\s.*\s\|")
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
_ITEM_NAME = re.compile(
    r"[`'\"*]*[\w.*]+[`'\"*]*(?:, ?[`'\"*]*[\w.*]+[`'\"*]*)*(?:\s*\([^)]*\))?\s*(?::|--|–)\s+(?=\S)"
)
_MARKER = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)]|\(?[a-z][.)]|#\.)\s+(?=\S)")
_SIGNATURE = re.compile(r"[\w.]+\s*\([^)]*\)\s*(?:->.*|[.:]?)$|[\w., ]+\s=\s[\w.]+\(.*")

_MARKUP = re.compile(r"[`*$|<\\]|\[|\b_|_\b|://|\s[\s,.;:!?)]|\(\s*(?:see|e\.g\.|cf\.)?[\s,:;.]*\)", re.IGNORECASE)
_INLINE = [
    (re.compile(r"\[([^\]]*)\]\((?:[^()]|\([^)]*\))*\)"), r"\1"),
    (re.compile(r":[\w:+-]+:`~[\w.]*\.([^`<]+)`"), r"\1"),
    (re.compile(r":[\w:+-]+:`!?([^`]+?)\s*(?:<[^>]*>)?`"), r"\1"),
    (re.compile(r"`([^`<]+?)\s*<[^>]*>`_{0,2}"), r"\1"),
    (re.compile(r"\s*\[[\w#*,-]{1,12}\]_"), ""),
    (re.compile(r"<?\b(?:https?|ftp)://[^\s>)]+>?"), ""),
    (re.compile(r"</?[a-zA-Z][^<>]{0,60}>"), ""),
    (re.compile(r"\$[^$]{1,80}\$"), ""),
    (re.compile(r"`+([^`]*)`+_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,3}(?=\S)([^*]+?)(?<=\S)\*{1,3}(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)_([A-Za-z][\w ]*?)_(?!\w)"), r"\1"),
    (re.compile(r"\|(\w+)\|"), r"\1"),
    (re.compile(r"\(\s*(?:[Ss]ee|e\.g\.|cf\.)?[\s,:;.]*\)"), ""),
    (re.compile(r"\\(.)"), r"\1"),
    (re.compile(r"\s+([,.;:!?)])(?=\s|$)"), r"\1"),
    (re.compile(r"\s+"), " "),
]
_PLAIN_WORD = re.compile(r"[\"'(“‘]*(?:[A-Za-z]+(?:['’-][A-Za-z]+)*|\d+(?:[.,]\d+)?%?)['\"”’)]*[.,;:!?…]*['\"”’)]*$")
_FUNCTION_WORD = re.compile(
    r"\b(?:the|an?|of|to|is|are|be|in|and|for|this|that|if|it|with|as|by|or|on|from|not|will|can|when)\b", re.IGNORECASE
)
_TYPE_PREFIX = re.compile(
    r"(?:\(\w[\w.]*(?:(?:,| or) \w[\w.]*)*\)|(?:optional\.? )?(?:int|integer|float|string|bool|boolean)[.;])\s+(?=\w)",
    re.IGNORECASE,
)
_LEADING_IN = re.compile(
    r"(?:for example|examples?|e\.g\.|usage|example usage|note|as follows|here'?s? (?:is )?an example|see)\s*[:.]?$",
    re.IGNORECASE,
)


def prose_paragraphs(docstring: str) -> list[str]:
    """Returns the paragraphs of a docstring as running text, each one line."""
    lines = inspect.cleandoc(docstring).expandtabs().split("\n")
    texts = list(_paragraphs(_without_sections(_without_blocks(lines))))
    found = [_as_prose(text) for text in texts]
    for number, text in enumerate(texts):
        if text.endswith(":") and found[number] and not any(found[number + 1 : number + 2]):
            found[number] = _without_last_sentence(found[number])  # It led up to something that is gone.
    return [paragraph for paragraph in found if paragraph]


def _without_last_sentence(paragraph: str) -> str:
    return paragraph[: max(paragraph.rfind(end, 0, -1) for end in (". ", "! ", "? ")) + 1]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_blocks(lines: list[str]) -> Iterator[str]:
    """Drops fenced code, sessions, literal blocks and directives; each leaves a mark."""
    fenced, session = False, False
    skipped_above: int | None = None
    for line in lines:
        blank = not line.strip()
        if _FENCE.match(line):
            fenced ^= line.count("```") % 2 == 1 or "~~~" in line
            yield _GONE
            continue
        if fenced:
            continue
        if skipped_above is not None:
            if blank or _indent(line) > skipped_above:
                continue
            skipped_above = None
            yield _GONE
        if session and not blank:
            continue
        session = bool(_SESSION.match(line))
        directive = _DIRECTIVE.match(line)
        if session:
            yield _GONE
        elif directive:
            if (directive["name"] or "").lower() in _ADMONITIONS:
                yield ""
                yield directive[1] + directive["text"]
            else:
                yield _GONE
                skipped_above = _indent(line)
        elif line.rstrip().endswith("::") and not _SECTION.match(line):
            yield line.rstrip()[:-1]
            skipped_above = _indent(line)
        else:
            yield line


def _without_sections(source: Iterator[str]) -> Iterator[str]:
    """Drops titles, tables, reference lists and the names of parameters; begins a paragraph at each item."""
    lines = list(source)
    dropped_above: int | None = None
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if dropped_above is not None:
            if line.strip() and (_RULE.match(following) or _indent(line) <= dropped_above):
                dropped_above = None
            else:
                continue
        if line.strip() and _RULE.match(following):
            if line.strip().lower().rstrip(":") in _DROPPED_SECTIONS:
                dropped_above = -1
            yield ""
        elif _RULE.match(line) or _TABLE.match(line) or line.lstrip().startswith("@"):
            yield _GONE
        elif _SECTION.match(line):
            if _LINKS_SECTION.match(line):
                dropped_above = _indent(line)
            yield ""
        elif _TYPE_FIELD.match(line):
            yield ""
        elif field := _FIELD.match(line):
            yield ""
            yield field["text"]
        elif _indent(following) > _indent(line) and (_PARAMETER.match(line) or re.match(r"\s*[\w*, ]{1,30}$", line)):
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
        if not text or text == _GONE or marker or changed:
            if current:
                yield " ".join(current)
            current, indent, hanging = [], _indent(line), bool(marker)
        if text == _GONE:
            yield _GONE
            indent = -1
        if not text or text == _GONE:
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


def _as_prose(text: str) -> str | None:
    """Returns the paragraph without inline markup, or None where it is not prose."""
    if _SIGNATURE.match(text):
        return None
    if _MARKUP.search(text):
        for pattern, replacement in _INLINE:
            text = pattern.sub(replacement, text)
    text = text.strip(" -*#|")
    if of_type := _TYPE_PREFIX.match(text):
        text = text[of_type.end() :]
    words = text.split(" ")
    if len(words) < LEAST_WORDS or _LEADING_IN.match(text):
        return None
    plain = sum(bool(_PLAIN_WORD.match(word)) for word in words)
    if plain < PLAIN_SHARE * len(words) or len(_FUNCTION_WORD.findall(text)) < max(1, len(words) // 12):
        return None
    if text[-1] in ":,;-":
        text = text[:-1].rstrip() + "."
    elif text[-1] not in ".!?)\"'”":
        text += "."
    return text[0].upper() + text[1:] if _PLAIN_WORD.match(words[0]) else text
