"""One whole training step beside those of three peers and beside its own matrix products.

4 layers of 256, vocabulary 30522, 20 predictions, both heads, AdamW, clipping, dropout 0.1 everywhere; batch 16 at
length 128, a quarter of it padding.
"""

import os
import sys

import tensorflow as tf

from keras_bert_impl.models.bert_pretrainer import BertPretrainer
from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.training.exact_step import PretrainingTrainer
from keras_bert_impl.training.freed_memory import keep_freed_memory

from .row import Row, interleaved
from .step_batches import VOCABULARY, padded_batch, real_tokens
from .step_peers import HEADS, HIDDEN, LAYERS, HuggingFaceStep, keras_hub_step, model_garden_step

ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "9"))
LENGTHS_128 = [64, 68, 73, 77, 81, 85, 90, 94, 98, 102, 107, 111, 115, 119, 124, 128]
WHAT = "training step 4 x 256, both heads, a quarter padding"


def measure() -> list[Row]:
    keep_freed_memory()
    x, y = padded_batch(LENGTHS_128, 128, 20)
    peers = [
        ("its matrix products on real tokens alone", products(x, y), 1.3),
        ("Model Garden", model_garden_step(x, y, VOCABULARY), 0.8),
        ("KerasHub, masked LM alone", keras_hub_step(x, y, VOCABULARY), 0.6),
    ]
    hugging_face = HuggingFaceStep(x, y, VOCABULARY, threads=os.cpu_count())
    if hugging_face.why_not:
        print(f"Hugging Face is left out: {hugging_face.why_not}", file=sys.stderr)
    else:
        peers.append(("Hugging Face on PyTorch", hugging_face, 0.4))
    seconds = interleaved([our_step(x, y), *(step for _, step, _ in peers)], rounds=ROUNDS)
    if not hugging_face.why_not:
        hugging_face.end()
    return [
        Row(WHAT, "s", seconds[0], name, theirs, bound)
        for (name, _, bound), theirs in zip(peers, seconds[1:], strict=True)
    ]


def our_step(x, y, skip_padding=True):
    model = BertPretrainer.from_preset("mini")
    trainer = PretrainingTrainer(model, packed="pair_ids" in x, skip_padding=skip_padding)
    trainer.compile(BertAdamW(1e-4, global_clipnorm=1.0))
    trainer.optimizer.build(model.trainable_variables)
    data = tf.nest.map_structure(tf.constant, (x, y))
    # A batch of constants would be worked through when the step is compiled.
    step = tf.function(trainer.train_step)
    return lambda: step(data)["loss"].numpy()


def products(x, y):
    """All matrix products of the step on real tokens and real predictions, forward and both backward ones.

    The vocabulary's kernel is the token table, so it stands as `(vocabulary, hidden)` as in every model that ties them.
    """
    real = real_tokens(x)
    tokens, predictions = int(real.sum()), int(y["mask_weights"].sum())
    # Rows of one length that have as many products of positions as these have.
    length = round(float((real.sum(1) ** 2).mean()) ** 0.5)
    heads, size = len(real) * HEADS, HIDDEN // HEADS
    attention = [(tokens, HIDDEN, HIDDEN)] * 3 + [(heads, length, size, length), (heads, length, length, size)]
    shapes = attention * LAYERS + [(predictions, HIDDEN, HIDDEN)]
    # What follows attention: in the last block only where something is predicted, and at [CLS].
    for rows in [tokens] * (LAYERS - 1) + [predictions + len(real)]:
        shapes += [(rows, HIDDEN, HIDDEN), (rows, HIDDEN, 4 * HIDDEN), (rows, 4 * HIDDEN, HIDDEN)]
    operands = [
        tuple(tf.random.stateless_normal((*batch, *shape), (n, 1)) for shape in ((m, k), (k, n_), (m, n_)))
        for n, (*batch, m, k, n_) in enumerate(shapes)
    ]

    vectors, table, of_logits = (
        tf.random.stateless_normal(shape, (0, 2))
        for shape in ((predictions, HIDDEN), (VOCABULARY, HIDDEN), (predictions, VOCABULARY))
    )

    @tf.function
    def all_products(operands, vectors, table, of_logits):
        results = [
            tf.matmul(vectors, table, transpose_b=True),
            tf.matmul(of_logits, table),
            tf.matmul(of_logits, vectors, transpose_a=True),
        ]
        for a, b, c in operands:
            results += [tf.matmul(a, b), tf.matmul(c, b, transpose_b=True), tf.matmul(a, c, transpose_a=True)]
        return tf.add_n([tf.reshape(result, (-1,))[0] for result in results])

    return lambda: all_products(operands, vectors, table, of_logits).numpy()
