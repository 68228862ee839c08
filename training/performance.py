"""Floating-point operations: how many a training step needs, and how many the devices can do.

Counted are those of matrix products, forward and backward, on real tokens and real predictions: what a step that
wastes nothing would compute. Padding, dropout, activations and the optimizer count as no work.
"""

import functools
import math
import time
from collections.abc import Callable, Mapping

import keras
import tensorflow as tf

from keras_bert_impl.config import BertConfig

from .configs import PretrainConfig
from .corpus.wording import counted

# A backward pass has two products for each of the forward pass: for the inputs and for the weights.
_FORWARD_AND_BACKWARD = 3

_SIZES = (1024, 2048, 4096, 8192)
_ENOUGH_SECONDS = 0.05
_PRODUCTS = 2
_TRIES = 7


def training_flops(
    model: BertConfig, *, tokens: float, pairs: float, predictions: float, next_sentence: bool = True
) -> float:
    """Returns the floating-point operations of the matrix products that training on some examples needs.

    Attention grows with the square of a pair's length, and is counted as if all pairs had the mean length: a little
    less than it is.

    Args:
        model: size of the model.
        tokens: real tokens.
        pairs: examples that the tokens are of.
        predictions: masked tokens to predict.
        next_sentence: whether there is a pooler and a next-sentence head.

    Returns:
        Multiplications and additions: `6 * (4 h^2 + 2 h i + 2 n h)` for each token in each layer of width h with the
        feed-forward width i, where n is the mean length of a pair. In the last layer it is `6 * (3 h^2 + 2 n h)`, and
        what comes after attention, `6 * (h^2 + 2 h i)`, is for predictions and pairs alone. For each prediction
        `6 * (h^2 + h v)` with the vocabulary size v; for each pair `6 * (h^2 + 2 h)`.

    Reference:
        [Chowdhery et al., 2022](https://arxiv.org/abs/2204.02311), appendix B.
    """
    hidden = model.hidden_size
    length = tokens / pairs if pairs else 0.0
    gathering = 3 * hidden**2 + 2 * length * hidden
    after_attention = hidden**2 + 2 * hidden * model.intermediate_size
    chosen = predictions + (pairs if next_sentence else 0)
    products = tokens * model.num_hidden_layers * gathering
    products += (tokens * (model.num_hidden_layers - 1) + chosen) * after_attention
    products += predictions * (hidden**2 + hidden * model.vocab_size)
    if next_sentence:
        products += pairs * (hidden**2 + 2 * hidden)
    return 2.0 * _FORWARD_AND_BACKWARD * products


def peak_flops(strategy: tf.distribute.Strategy, dtype: str, stated: float | None = None) -> float:
    """Returns the most floating-point operations a second of all replicas together.

    Args:
        strategy: what the replicas compute under.
        dtype: the run's dtype policy; products are measured in its compute dtype.
        stated: what one replica can do; None to measure it.
    """
    if stated is not None:
        return stated * strategy.num_replicas_in_sync
    return _measured(strategy, compute_dtype(dtype))


def flops_of(pretrainer: keras.Model) -> Callable[[Mapping[str, float]], float]:
    """Returns `training_flops` for a model, of the counts that `StepSums` has."""
    next_sentence = "nsp_logits" in pretrainer.output

    def flops(counts: Mapping[str, float]) -> float:
        return training_flops(
            pretrainer.config,
            tokens=counts["tokens"],
            pairs=counts["examples"],
            predictions=counts["mlm_weight"],
            next_sentence=next_sentence,
        )

    return flops


def describe_peak(peak: float, config: PretrainConfig) -> str:
    """Returns a sentence for a person about the peak."""
    source = "measured" if config.peak_flops is None else "as `peak_flops` says"
    return (
        f"Peak of {counted(config.replicas or 1, 'replica')}: {flops_in_words(peak)} a second in products of "
        f"{compute_dtype(config.dtype)} matrices, {source}; utilisation is the share of it that real tokens need."
    )


def flops_in_words(flops: float) -> str:
    """Returns floating-point operations as text, such as `'1.3 teraFLOP'`."""
    units = ("", "kilo", "mega", "giga", "tera", "peta", "exa")
    thousands = min(int(math.log10(max(flops, 1))) // 3, len(units) - 1)
    return f"{flops / 1000**thousands:.3g} {units[thousands]}FLOP"


def compute_dtype(policy: str) -> str:
    """Returns the dtype that a dtype policy computes in."""
    return policy.removeprefix("mixed_")


@functools.lru_cache(maxsize=4)
def _measured(strategy: tf.distribute.Strategy, dtype: str) -> float:
    """Times products of square matrices on all replicas at once, so that replicas that share cores share the peak."""
    for size in _SIZES:
        multiply = _products(strategy, size, dtype)
        multiply()
        seconds = min(_seconds(multiply) for _ in range(_TRIES))
        if seconds > _ENOUGH_SECONDS:
            break
    return strategy.num_replicas_in_sync * _PRODUCTS * 2.0 * size**3 / seconds


def _products(strategy: tf.distribute.Strategy, size: int, dtype: str) -> Callable[[], None]:
    def chain(value: tf.Tensor) -> tf.Tensor:
        matrix = product = tf.fill((size, size), tf.cast(value, dtype))
        for _ in range(_PRODUCTS):
            product = tf.matmul(matrix, product)
        return tf.reduce_max(product)

    compiled = tf.function(lambda value: strategy.run(chain, args=(value,)))
    # An argument: of a constant matrix the products would be computed once and for all.
    value = tf.constant(1 / size)

    def multiply() -> None:
        for largest in strategy.experimental_local_results(compiled(value)):
            largest.numpy()

    return multiply


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
