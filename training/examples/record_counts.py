"""What rows with static masks hold, counted while they are written."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


@dataclasses.dataclass
class RecordCounts:
    """Counts of rows with masks.

    Attributes:
        length: tokens of a row, padding counted.
        mask_token_id: id of `[MASK]`.
        records: rows.
        tokens: tokens that are no padding.
        random_next: rows with label 1.
        masked: tokens to predict that became `[MASK]`.
        kept: tokens to predict that stayed.
        replaced: tokens to predict that became another token.
    """

    length: int
    mask_token_id: int
    records: int = 0
    tokens: int = 0
    random_next: int = 0
    masked: int = 0
    kept: int = 0
    replaced: int = 0

    def counted(self, batches: Iterable[dict[str, np.ndarray]]) -> Iterator[dict[str, np.ndarray]]:
        """Passes batches of rows on and counts them."""
        for rows in batches:
            row, slot = np.nonzero(rows["mask_weights"] > 0)
            labels = rows["mask_labels"][row, slot]
            shown = rows["token_ids"][row, rows["mask_positions"][row, slot]]
            masked, kept = int((shown == self.mask_token_id).sum()), int((shown == labels).sum())
            self.records += len(rows["token_ids"])
            self.tokens += int(rows["padding_mask"].sum())
            self.random_next += int(rows["next_sentence_labels"].sum())
            self.masked += masked
            self.kept += kept
            self.replaced += labels.size - masked - kept
            yield rows

    def facts(self) -> dict[str, Any]:
        """Returns the counts and shares, as JSON values."""
        return {
            "records": self.records,
            "mean_fill": self.tokens / (self.length * self.records) if self.records else None,
            "random_next_share": self.random_next / self.records if self.records else None,
            "masks": mask_facts(self.masked, self.replaced, self.kept),
        }


def mask_facts(masked: int, replaced: int, kept: int) -> dict[str, Any]:
    """Returns how many tokens are to be predicted, by what stands in their place."""
    return {"predictions": masked + replaced + kept, "mask": masked, "random": replaced, "unchanged": kept}
