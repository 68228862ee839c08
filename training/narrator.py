"""What a run tells at its evaluations."""

import math
from collections.abc import Callable

from .callbacks import Line

# A fresh model's loss lies this close to that of guessing evenly.
_MARGIN = 0.1


class Narrator:
    """Tells the losses of a line in words; warns once when they say that training does harm.

    Args:
        say: takes each sentence.
        clear: called before one, to clear the progress bar.
        vocab_size: tokens that the model chooses from.
        warmup_steps: steps up to which there is no warning.
    """

    def __init__(
        self, say: Callable[[str], None], *, clear: Callable[[], None], vocab_size: int, warmup_steps: int
    ) -> None:
        self.say = say
        self.clear = clear
        self.vocab_size = vocab_size
        self.warmup_steps = warmup_steps
        self._warned = False

    def __call__(self, line: Line) -> None:
        """Tells one line of metrics."""
        self.clear()
        self.say(f"Step {line['step']}, length {line['length']}: {_losses(line)}")
        source, loss = ("training", line["mlm_loss"])
        if "held_out_mlm_loss" in line:
            source, loss = "held-out", line["held_out_mlm_loss"]
        even = math.log(self.vocab_size)
        if loss > even + _MARGIN and line["step"] > self.warmup_steps and not self._warned:
            self._warned = True
            self.say(
                f"Warning: the {source} MLM loss is above {even:.3f}, that of guessing evenly among the "
                f"{self.vocab_size} tokens, so training does harm; start anew with a lower `learning_rate` "
                f"(now {line['learning_rate']:.3g})."
            )


def _losses(line: Line) -> str:
    training = f"MLM loss {line['mlm_loss']:.3f} in training"
    if "held_out_mlm_loss" not in line:
        return f"{training}, accuracy {line['mlm_accuracy']:.1%}"
    told = (
        f"{training}, {line['held_out_mlm_loss']:.3f} held out (unigram {line['held_out_unigram_loss']:.3f}), "
        f"accuracy {line['held_out_mlm_accuracy']:.1%}"
    )
    if "held_out_nsp_accuracy" in line:
        told += (
            f"; NSP accuracy {line['held_out_nsp_accuracy']:.1%} "
            f"(always the commoner label: {line['held_out_nsp_majority_share']:.1%})"
        )
    return told
