"""What TFRecord files hold, in words and numbers; the manifest of prepared data is in `manifest`."""

from collections.abc import Iterator, Sequence
from typing import Any

from keras_bert_impl.tokenization.wordpiece import WordPieceTokenizer

from ..configs import PrepareConfig
from ..corpus.input_files import SourceFile
from ..corpus.wording import counted, percent
from .manifest import NAMES, in_passes, recorded_settings
from .masking import max_predictions

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
            length: {name: fact for name, fact in facts.items() if name not in _OF_SHARDS}
            | _with_most_predictions(records[split][length], length, manifest["settings"])
            for length, facts in of_split.items()
        }
        for split, of_split in manifest["examples"].items()
    }
    return {**manifest, "format": RECORDS_FORMAT_NAME, "format_version": RECORDS_FORMAT_VERSION, "examples": examples}


def make_reference_manifest(
    config: PrepareConfig,
    files: Sequence[SourceFile],
    documents: int,
    facts: dict[str, Any],
    tokenizer: WordPieceTokenizer,
) -> dict[str, Any]:
    """Returns the manifest of the original's instances.

    Args:
        config: the settings.
        files: the text.
        documents: number of documents with a token.
        facts: per length, of the training records; nothing is held out.
        tokenizer: the vocabulary.
    """
    settings = recorded_settings(config)
    facts = {length: _with_most_predictions(of_length, length, settings) for length, of_length in facts.items()}
    return {
        "format": RECORDS_FORMAT_NAME,
        "format_version": RECORDS_FORMAT_VERSION,
        "settings": settings,
        "vocabulary": {"size": tokenizer.vocab_size, "lowercase": tokenizer.lowercase},
        "files": [{"path": file.path, "bytes": file.size, "sha256": file.sha256} for file in files],
        "documents": {"train": documents, "held_out": 0},
        "next_sentence": True,
        "examples": {"train": facts, "held_out": {}},
        "notes": [],
    }


def _with_most_predictions(facts: dict[str, Any], length: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Adds the most predictions of a row, which the settings leave open unless they were given."""
    most = settings["max_predictions"] or max_predictions(int(length), settings["masked_share"])
    return {**facts, "masks": {"max_predictions": most, **facts["masks"]}}


def reference_line(manifest: dict[str, Any]) -> str:
    """Returns what is said of the original's instances beside `record_lines`."""
    made = ", ".join(
        f"{counted(facts['records'], 'instance')} of length {length}"
        for length, facts in manifest["examples"]["train"].items()
    )
    times = counted(manifest["settings"]["epochs"], "time")
    documents = counted(manifest["documents"]["train"], "document")
    return f"{documents}, gone through {times}: {made}; nothing is held out."


def record_lines(manifest: dict[str, Any]) -> Iterator[str]:
    """Yields what is said of the records."""
    for split, of_split in manifest["examples"].items():
        for length, facts in of_split.items():
            if facts["records"]:
                masks = facts["masks"]
                kinds = ", ".join(
                    f"{percent(masks[kind] / max(1, masks['predictions']), 1)} {name}" for kind, name in _KINDS.items()
                )
                yield (
                    f"Length {length}, {NAMES[split]}{in_passes(manifest)}: {counted(facts['records'], 'record')}, "
                    f"filled to {percent(facts['mean_fill'])}, second part random in "
                    f"{percent(facts['random_next_share'])}; "
                    f"{counted(masks['predictions'], 'token')} to predict: {kinds}."
                )
