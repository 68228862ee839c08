"""Masks as the original draws them, with Python's generator; part of `reference_instances`."""

from random import Random

from keras_bert_impl.tokenization.wordpiece import CONTINUATION, WordPieceTokenizer


def words_to_mask(row: list[int], tokenizer: WordPieceTokenizer, *, whole_words: bool) -> list[list[int]]:
    """Returns the positions that may be masked, those that are masked together in one list.

    As in the original, a part that truncation left beginning in the middle of a word joins that piece to the
    word before it, also across a `[SEP]`; and the unknown token is a token like any other.
    """
    words: list[list[int]] = []
    for position, token_id in enumerate(row):
        if token_id in (tokenizer.cls_token_id, tokenizer.sep_token_id):
            continue
        if whole_words and words and tokenizer.vocabulary[token_id].startswith(CONTINUATION):
            words[-1].append(position)
        else:
            words.append([position])
    return words


def masked_row(
    row: list[int],
    words: list[list[int]],
    *,
    masked_share: float,
    max_predictions: int,
    tokenizer: WordPieceTokenizer,
    rng: Random,
) -> tuple[list[int], list[int]]:
    """Returns the row with tokens hidden, and the positions chosen, in order.

    A word that would overrun the number of predictions is passed over. Of the tokens chosen, each by itself,
    80 % become `[MASK]`, 10 % stay and 10 % become any token of the vocabulary.

    Args:
        row: token ids; not changed.
        words: from `words_to_mask`; shuffled.
        masked_share: share of the row's tokens, special ones counted, to predict.
        max_predictions: most tokens to predict.
        tokenizer: the vocabulary.
        rng: source of every choice.
    """
    rng.shuffle(words)
    wanted = min(max_predictions, max(1, round(len(row) * masked_share)))
    masked = list(row)
    positions: list[int] = []
    for word in words:
        if len(positions) == wanted:
            break
        if len(positions) + len(word) > wanted:
            continue
        for position in word:
            masked[position] = _hidden(row[position], tokenizer, rng)
            positions.append(position)
    return masked, sorted(positions)


def _hidden(token_id: int, tokenizer: WordPieceTokenizer, rng: Random) -> int:
    if rng.random() < 0.8:
        return tokenizer.mask_token_id
    if rng.random() < 0.5:
        return token_id
    return rng.randint(0, tokenizer.vocab_size - 1)
