"""Whether a manifest says all that reading the data needs to know."""

from typing import Any

from .shards import SPLITS
from .word_boundaries import JIEBA, PIECES, SPACES


def manifest_fault(manifest: dict[str, Any]) -> str | None:
    """Returns what is missing or wrong in a manifest of prepared data, None if it is whole."""
    lengths = _at(manifest, "settings", "lengths")
    if not isinstance(lengths, list) or not lengths or not all(_is_count(length) and length for length in lengths):
        return f"settings.lengths={lengths!r}"
    if len(set(lengths)) < len(lengths):
        return f"settings.lengths={lengths!r}"
    if not _is_count(size := _at(manifest, "vocabulary", "size")):
        return f"vocabulary.size={size!r}"
    if (boundaries := _at(manifest, "settings", "word_boundaries")) not in (PIECES, SPACES, JIEBA):
        return f"settings.word_boundaries={boundaries!r}"
    if (kind := _at(manifest, "settings", "examples")) not in ("pairs", "chunks"):
        return f"settings.examples={kind!r}"
    if not isinstance(next_sentence := _at(manifest, "next_sentence"), bool):
        return f"next_sentence={next_sentence!r}"
    if next_sentence != (kind == "pairs"):
        return f"next_sentence={next_sentence!r} for settings.examples={kind!r}"
    for split in SPLITS:
        for length in map(str, lengths):
            examples = _at(manifest, "examples", split, length, "examples")
            if not _is_count(examples):
                return f"examples.{split}.{length}.examples={examples!r}"
            shards = _at(manifest, "examples", split, length, "shards")
            if not isinstance(shards, list) or not all(map(_is_count, shards)) or sum(shards) != examples:
                return f"examples.{split}.{length}.shards={shards!r} for {examples} examples"
            if not _is_count(packed_rows := _at(manifest, "examples", split, length, "packed_rows")):
                return f"examples.{split}.{length}.packed_rows={packed_rows!r}"
    return None


def _at(value: Any, *keys: str) -> Any:
    """Returns what lies under the keys, None if nothing does."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
