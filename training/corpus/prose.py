"""Running English out of docstrings: what a reader would read aloud, without markup.

A paragraph that still looks like code afterwards is dropped.
"""

import re

from .docstring_layout import docstring_paragraphs

LEAST_WORDS = 5
PLAIN_SHARE = 0.72

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
    texts = list(docstring_paragraphs(docstring))
    found = [_as_prose(text) for text in texts]
    kept = []
    for number, paragraph in enumerate(found):
        if paragraph and texts[number].endswith(":") and not any(found[number + 1 : number + 2]):
            paragraph = _without_last_sentence(paragraph)  # It led up to something that is gone.
        if paragraph:
            kept.append(paragraph)
    return kept


def _without_last_sentence(paragraph: str) -> str:
    return paragraph[: max(paragraph.rfind(end, 0, -1) for end in (". ", "! ", "? ")) + 1]


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
