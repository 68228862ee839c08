"""Real tokens per second in training: at length 128 and at 512, and short texts at 512 packed and not.

4 layers of 256, vocabulary 30522, both heads, AdamW, clipping, dropout 0.1 everywhere; 2048 positions in a batch.
"""

from keras_bert_impl.training.freed_memory import keep_freed_memory

from .pretrain_step import ROUNDS, our_step
from .row import Row, interleaved
from .step_batches import packed_batch, padded_batch, real_tokens


def measure() -> list[Row]:
    keep_freed_memory()
    # 16 texts of 64 to 184 tokens, so ordered that four after another fill 496 of 512.
    short = [64 + 8 * n for k in range(4) for n in (k, 7 - k, 8 + k, 15 - k)]
    batches = {
        "128": padded_batch([128] * 16, 128, 20),
        "512": padded_batch([512] * 4, 512, 77),
        "short, packed": packed_batch(short, 4, 512, 77),
        "short, padded": padded_batch(short[:4], 512, 77),
        "short, skipped": padded_batch(short[:4], 512, 77),
    }
    steps = [our_step(*batch, skip_padding=name != "short, padded") for name, batch in batches.items()]
    rates = {
        name: int(real_tokens(x).sum()) / seconds
        for (name, (x, _)), seconds in zip(batches.items(), interleaved(steps, rounds=ROUNDS), strict=True)
    }
    packed, unit = rates["short, packed"], "real tokens/s"
    return [
        Row("a step at length 128", unit, rates["128"], "at length 512", rates["512"], 1.0, more_is_better=True),
        Row("short texts packed at 512", unit, packed, "not packed", rates["short, padded"], 1.8, more_is_better=True),
        Row("short texts packed at 512", unit, packed, "not packed, padding skipped", rates["short, skipped"]),
    ]
