"""What TFRecord files hold, in words and numbers; the manifest of prepared data is in `manifest`."""

from collections.abc import Iterator, Sequence
from typing import Any

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import PrepareConfig
from ..corpus.input_files import SourceFile
from ..corpus.wording import counted
from .manifest import NAMES, recorded_settings

RECORDS_FORMAT_NAME, RECORDS_FORMAT_VERSION = "keras_bert_impl TFRecord files", 1
# Of prepared data only.
_OF_SHARDS = ("shards", "packed_rows", "packed_fill", "expected_masks")
_KINDS = {"mask": "[MASK]", "random": "another token", "unchanged": "unchanged"}


def make_record_manifest(manifest: dict[str, Any], records: dict[str, Any]) -> dict[str, Any]:
    """Returns the manifest of TFRecord files that were written from prepared data.

    Args:
        manifest: that of the prepared data.
        records: facts of the records, per split and length, from `RecordCounts`.
    """
    examples = {
        split: {
            length: {name: fact for name, fact in facts.items() if name not in _OF_SHARDS} | records[split][length]
            for length, facts in of_split.items()
        }
        for split, of_split in manifest["examples"].items()
    }
    return {**manifest, "format": RECORDS_FORMAT_NAME, "format_version": RECORDS_FORMAT_VERSION, "examples": examples}


def make_reference_manifest(
    config: PrepareConfig, files: Sequence[SourceFile], facts: dict[str, Any], tokenizer: WordPieceTokenizer
) -> dict[str, Any]:
    """Returns the manifest of the original's instances.

    Args:
        config: the settings.
        files: the text.
        facts: per length, of the training records; nothing is held out.
        tokenizer: the vocabulary.
    """
    return {
        "format": RECORDS_FORMAT_NAME,
        "format_version": RECORDS_FORMAT_VERSION,
        "settings": recorded_settings(config),
        "vocabulary": {"size": tokenizer.vocab_size},
        "files": [{"path": file.path, "bytes": file.size, "sha256": file.sha256} for file in files],
        "next_sentence": True,
        "examples": {"train": facts, "held_out": {}},
        "notes": [],
    }


def record_lines(manifest: dict[str, Any]) -> Iterator[str]:
    """Yields what is said of the records."""
    for split, of_split in manifest["examples"].items():
        for length, facts in of_split.items():
            if facts["records"]:
                masks = facts["masks"]
                kinds = ", ".join(f"{masks[kind] / masks['predictions']:.1%} {name}" for kind, name in _KINDS.items())
                yield (
                    f"Length {length}, {NAMES[split]}: {counted(facts['records'], 'record')}, filled to "
                    f"{facts['mean_fill']:.0%}, second part random in {facts['random_next_share']:.0%}; "
                    f"{counted(masks['predictions'], 'token')} to predict: {kinds}."
                )
