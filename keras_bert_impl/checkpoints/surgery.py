"""Changing the size of a trained model: more tokens, other positions, fewer blocks. All else stays as it is.

The functions take anything that `open_checkpoint` opens and return an open checkpoint, so that they can follow one
another before anything is built:

```python
checkpoint, tokenizer = extend_vocabulary("model", tokenizer, ["stent", "stenosis"])
model = BertPretrainer.from_pretrained(resize_positions(checkpoint, 1024))
```
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from keras_bert_impl.checkpoints.checkpoint import Checkpoint, StoredTensor
from keras_bert_impl.checkpoints.formats import open_checkpoint
from keras_bert_impl.errors import InputError
from keras_bert_impl.tokenization.wordpiece import CONTINUATION, WordPieceTokenizer

NEW_TOKEN_RULES = ("pieces", "mean", "random")
NEW_POSITION_RULES = ("repeat", "interpolate", "random")

_TOKENS = "embeddings.word_embeddings.weight"
_POSITIONS = "embeddings.position_embeddings.weight"
_OUTPUT_BIAS = "cls.predictions.bias"
_BLOCK = "encoder.layer."


def extend_vocabulary(
    source: Any,
    tokenizer: WordPieceTokenizer,
    tokens: Sequence[str],
    *,
    rule: str = "pieces",
    seed: int = 0,
) -> tuple[Checkpoint, WordPieceTokenizer]:
    """Adds tokens at the end of the vocabulary, with a row of the token table and an output bias for each.

    Rows and biases of the old tokens do not change, nor does any other weight.

    Args:
        source: what to extend: a checkpoint, a path or a model.
        tokenizer: its tokenizer.
        tokens: the new tokens, not in the vocabulary yet.
        rule: where new rows come from. `"pieces"`: the mean of the rows of the pieces that the token was split into
            until now. `"mean"`: the mean of all old rows. `"random"`: a normal of the model's `initializer_range`,
            cut off at two deviations. The new output biases are the means of the old ones in the same way, and 0
            under `"random"`.
        seed: of the random rows.

    Returns:
        The checkpoint and the tokenizer of the larger vocabulary. Rows of the table beyond the old vocabulary, which
        some models have as a reserve, are used first.

    Raises:
        InputError: if a token is given twice, is known already or could never be found in a text, such as `"Stent"`
            by a tokenizer that lower-cases, or the rule is unknown.
    """
    _check_rule(rule, NEW_TOKEN_RULES, seed)
    checkpoint = open_checkpoint(source)
    tokens = _checked_tokens(tokens, tokenizer)
    rows = checkpoint.config.vocab_size
    known = tokenizer.vocab_size
    if known > rows:
        raise InputError(
            f"`tokenizer` must not have more tokens than the model has rows. Received: {known} tokens, {rows} rows"
        )
    larger = WordPieceTokenizer([*tokenizer.vocabulary, *tokens], **tokenizer.options)
    _check_found(larger, tokens)
    pieces = [_pieces(tokenizer, token) for token in tokens]
    size = max(rows, known + len(tokens))
    rng = np.random.default_rng([seed, known])

    def extend(old: np.ndarray, is_table: bool) -> np.ndarray:
        new = np.zeros((size, *old.shape[1:]), old.dtype)
        new[:rows] = old
        if rule == "pieces":
            new[known : known + len(tokens)] = [old[ids].mean(axis=0) for ids in pieces]
        elif rule == "mean":
            new[known : known + len(tokens)] = old[:known].mean(axis=0)
        elif is_table:
            shape = (len(tokens), *old.shape[1:])
            new[known : known + len(tokens)] = _truncated_normal(rng, shape) * checkpoint.config.initializer_range
        return new

    changed = {_TOKENS: lambda old: extend(old, True), _OUTPUT_BIAS: lambda old: extend(old, False)}
    config = dataclasses.replace(checkpoint.config, vocab_size=size)
    return dataclasses.replace(_with_rows(checkpoint, changed, size), config=config), larger


def resize_positions(source: Any, max_position_embeddings: int, *, rule: str = "repeat", seed: int = 0) -> Checkpoint:
    """Gives the model another longest sequence.

    A shorter one keeps the first positions. A longer one needs new rows, and training to make use of them.

    Args:
        source: what to resize: a checkpoint, a path or a model.
        max_position_embeddings: positions it is to have.
        rule: where the rows of a longer one come from. `"repeat"`: the old ones over again, so that the old rows stay
            and distances within a stretch look familiar. `"interpolate"`: the old ones stretched linearly over the
            new length, so that all rows but the first change. `"random"`: the old ones, then a normal of the model's
            `initializer_range`, cut off at two deviations.
        seed: of the random rows.

    Raises:
        InputError: if the number or the rule cannot be used.

    Reference:
        Repeating: [Beltagy et al., 2020](https://arxiv.org/abs/2004.05150), section 5.
    """
    _check_rule(rule, NEW_POSITION_RULES, seed)
    checkpoint = open_checkpoint(source)
    config = dataclasses.replace(checkpoint.config, max_position_embeddings=max_position_embeddings)
    size = max_position_embeddings

    def resize(old: np.ndarray) -> np.ndarray:
        rows = len(old)
        if size <= rows:
            return old[:size]
        if rule == "repeat":
            return old[np.arange(size) % rows]
        if rule == "random":
            rng = np.random.default_rng([seed, rows])
            new = _truncated_normal(rng, (size - rows, *old.shape[1:])) * checkpoint.config.initializer_range
            return np.concatenate([old, new.astype(old.dtype)])
        place = np.linspace(0, rows - 1, size)
        below = np.minimum(place.astype(int), rows - 1)
        above = np.minimum(below + 1, rows - 1)
        share = (place - below)[:, None]
        return (old[below] * (1 - share) + old[above] * share).astype(old.dtype)

    return dataclasses.replace(_with_rows(checkpoint, {_POSITIONS: resize}, size), config=config)


def keep_blocks(source: Any, blocks: int | Sequence[int]) -> Checkpoint:
    """Leaves transformer blocks out.

    Args:
        source: what to shorten: a checkpoint, a path or a model.
        blocks: the numbers of the blocks to keep, in their new order, counted from 0; or how many of the first.

    Raises:
        InputError: if a block is given that the model has not, or twice, or none is left.

    Reference:
        Keeping the first: [Sajjad et al., 2020](https://arxiv.org/abs/2004.03844), section 3.
    """
    checkpoint = open_checkpoint(source)
    count = checkpoint.config.num_hidden_layers
    if type(blocks) is int:
        kept = list(range(blocks)) if blocks <= count else []
    else:
        kept = list(blocks) if isinstance(blocks, Sequence) else []
    in_range = all(type(block) is int and 0 <= block < count for block in kept)
    if not kept or not in_range or len(set(kept)) < len(kept):
        raise InputError(
            f"`blocks` must be different numbers from 0 to {count - 1}, or how many of the first {count} to keep. "
            f"Received: blocks={blocks!r}"
        )
    tensors = {key: tensor for key, tensor in checkpoint.tensors.items() if not key.startswith(_BLOCK)}
    left = []
    new_number = {old: new for new, old in enumerate(kept)}
    for key, tensor in checkpoint.tensors.items():
        if key.startswith(_BLOCK):
            number, rest = key.removeprefix(_BLOCK).split(".", 1)
            if int(number) in new_number:
                tensors[f"{_BLOCK}{new_number[int(number)]}.{rest}"] = tensor
            else:
                left.append((tensor.name, "of a block that is left out"))
    return dataclasses.replace(
        checkpoint,
        tensors=tensors,
        config=dataclasses.replace(checkpoint.config, num_hidden_layers=len(kept)),
        passed_over=(*checkpoint.passed_over, *left),
    )


def _with_rows(checkpoint: Checkpoint, changes: dict[str, Callable[[np.ndarray], np.ndarray]], size: int) -> Checkpoint:
    """Returns the checkpoint with a function applied to whole tensors, which gives them `size` rows."""
    tensors = dict(checkpoint.tensors)
    for key, change in changes.items():
        if key in tensors:
            old = tensors[key]
            tensors[key] = dataclasses.replace(old, shape=(size, *old.shape[1:]), read=_Changed(old, change))
    return checkpoint.with_tensors(tensors)


@dataclasses.dataclass(frozen=True)
class _Changed:
    tensor: StoredTensor
    change: Callable[[np.ndarray], np.ndarray]

    def __call__(self) -> Any:
        values = np.reshape(np.asarray(self.tensor.read()), self.tensor.shape)
        return self.change(values.astype("float32"))


def _truncated_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    values = rng.standard_normal(shape)
    while (outside := np.abs(values) > 2).any():
        values[outside] = rng.standard_normal(int(outside.sum()))
    return values


def _pieces(tokenizer: WordPieceTokenizer, token: str) -> list[int]:
    """Returns the ids that a token was written with until now; its unknown parts count as such."""
    word = token.removeprefix(CONTINUATION) or token
    ids = tokenizer.encode_ids(word)
    return ids or [tokenizer.unk_token_id]


def _words(tokenizer: WordPieceTokenizer, text: str) -> list[str]:
    normalizer = tokenizer.normalizer
    return [word.text for stretch in normalizer.stretches(text) for word in normalizer.words(stretch)]


def _checked_tokens(tokens: Sequence[str], tokenizer: WordPieceTokenizer) -> list[str]:
    names = list(tokens) if not isinstance(tokens, str) else []
    if not names or not all(isinstance(token, str) and token.strip() for token in names):
        raise InputError(f"`tokens` must be a list of one or more words. Received: tokens={tokens!r}")
    known = set(tokenizer.vocabulary)
    for i, token in enumerate(names):
        if token in known or token in names[:i]:
            where = "is in the vocabulary already" if token in known else "is given twice"
            raise InputError(f"`tokens` must be new and different. Received: {token!r}, which {where}")
    return names


def _check_found(tokenizer: WordPieceTokenizer, tokens: Sequence[str]) -> None:
    for token in tokens:
        # A piece inside a word is looked for behind a letter that is one of the tokens.
        word = token.removeprefix(CONTINUATION)
        found = tokenizer.tokenize(token)
        if word != token:
            found = _words(tokenizer, f"a{word}")
            found = [token] if found == [f"a{word}"] else found
        if found != [token]:
            raise InputError(
                f"`tokens` must be words as the tokenizer sees them. Received: {token!r}, which it sees as {found}"
            )


def _check_rule(rule: str, rules: Sequence[str], seed: int) -> None:
    if type(seed) is not int or seed < 0:
        raise InputError(f"`seed` must be a whole number of at least 0. Received: seed={seed!r}")
    if rule not in rules:
        raise InputError(f"`rule` must be one of {', '.join(rules)}. Received: rule={rule!r}")
