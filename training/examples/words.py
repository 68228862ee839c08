"""Which tokens of a row are one word: what whole-word masking hides together."""

from collections.abc import Sequence

import numpy as np

from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import CONTINUATION, WordPieceTokenizer

# A bit beside the token id, so that whatever cuts and moves tokens takes along what is said of them.
CONTINUES = 1 << 30


def unmarked(marked_ids: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns int64 token ids without their marks, and which of them were marked by `CONTINUES`."""
    marked = np.asarray(marked_ids, np.int64)
    return marked & (CONTINUES - 1), marked >= CONTINUES


def continuing_tokens(tokenizer: WordPieceTokenizer) -> np.ndarray:
    """Returns which tokens continue the word of the token before them (`##`), bool (vocab_size,)."""
    return np.array([token.startswith(CONTINUATION) for token in tokenizer.vocabulary])


def continues_word(rows: dict[str, np.ndarray], ordinary: np.ndarray, continuing: np.ndarray | None) -> np.ndarray:
    """Returns which tokens of rows continue a word, bool (rows, length).

    Where the rows hold `continues_word` (from `prepare --word-boundaries`) that says so, otherwise the vocabulary
    does. No word reaches over a special token, the unknown one among them: what comes after it begins a word, also
    a piece that truncation left at the beginning of a part.

    Args:
        rows: from `ExampleSet.rows`.
        ordinary: bool (rows, length), false for special tokens and padding.
        continuing: from `continuing_tokens`; not needed where the rows say it.
    """
    if "continues_word" in rows:
        stored = rows["continues_word"]
    elif continuing is None:
        raise InputError("`continuing_tokens` must be given where the rows have no `continues_word`. Received: None")
    else:
        stored = continuing[rows["token_ids"]]
    continues = stored & ordinary
    continues[:, 0] = False
    continues[:, 1:] &= ordinary[:, :-1]
    return continues
