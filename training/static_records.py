"""Prepared examples as TFRecord files with static masks, the original's form of them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keras_bert_impl.progress import progress_bar

from .batches import EVALUATION_EPOCH
from .configs import PrepareConfig
from .examples.masking import max_predictions
from .examples.prepared_data import PreparedData
from .examples.record_counts import RecordCounts
from .examples.record_schema import Rows
from .examples.shards import SPLITS
from .examples.tfrecord_writing import static_rows, write_tfrecords
from .input_pipeline import mask_function
from .unfinished import Unfinished

# About 60 MB at length 128.
_RECORDS_PER_FILE = 100_000


def write_static_records(config: PrepareConfig, data: PreparedData, unfinished: Unfinished) -> dict[str, Any]:
    """Writes all examples with masks; returns facts per split and length, as `RecordCounts` gives them.

    Training examples come once in every epoch, in the order and with the masks that training on the prepared data
    with this seed would meet; held-out examples come once, with the masks of its evaluation.

    Args:
        config: the settings.
        data: the unmasked examples.
        unfinished: where the files go; what it has noted as finished and is still whole is not written again.
    """
    masks = config.static_masks
    facts: dict[str, Any] = {split: {} for split in SPLITS}
    for split in SPLITS:
        epochs = range(masks["epochs"]) if split == "train" else [EVALUATION_EPOCH]
        for length in config.lengths:
            part = f"records-{split}-{length}"
            if (found := unfinished.noted(part)) is None:
                counts = RecordCounts(length, data.tokenizer.mask_token_id)
                total = data.count(split, length) * len(epochs)
                paths = record_paths(unfinished.records / split / str(length), total)
                if total:
                    rows = _rows(config, data, split, length, epochs)
                    with progress_bar(total, "record", f"Writing length {length}, {split.replace('_', '-')}") as bar:
                        write_tfrecords(_advancing(counts.counted(rows), bar), paths)
                found = counts.facts()
                unfinished.note(part, found, paths)
            facts[split][str(length)] = found
    return facts


def record_paths(folder: Path, records: int) -> list[Path]:
    """Returns the files for a number of records, none of them much larger than the others."""
    return [folder / f"{number:05d}.tfrecord" for number in range(-(-records // _RECORDS_PER_FILE))]


def _rows(config: PrepareConfig, data: PreparedData, split: str, length: int, epochs: Iterable[int]) -> Iterator[Rows]:
    tokenizer, masks = data.tokenizer, config.static_masks
    mask = mask_function(
        tokenizer,
        max_predictions=masks["max_predictions"] or max_predictions(length, masks["masked_share"]),
        masked_share=masks["masked_share"],
        masking=masks["masking"],
        max_ngram=masks["max_ngram"],
        seed=config.seed,
    )
    return static_rows(data.examples(split, length), mask, seed=config.seed, epochs=epochs)


def _advancing(batches: Iterable[Rows], bar: Any) -> Iterator[Rows]:
    for rows in batches:
        yield rows
        bar.update(len(rows["token_ids"]))
