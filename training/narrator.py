"""What a run tells at its evaluations."""

from collections.abc import Callable

from .callbacks import Line


class Narrator:
    """Tells the losses of a line in words.

    Args:
        say: takes each sentence.
        clear: called before one, to clear the progress bar.
    """

    def __init__(self, say: Callable[[str], None], *, clear: Callable[[], None]) -> None:
        self.say = say
        self.clear = clear

    def __call__(self, line: Line) -> None:
        """Tells one line of metrics."""
        self.clear()
        self.say(f"Step {line['step']}, length {line['length']}: {_losses(line)}")


def _losses(line: Line) -> str:
    training, accuracy = "no step taken since the line before", ""
    if line.get("mlm_loss") is not None:
        training, accuracy = f"MLM loss {line['mlm_loss']:.3f} in training", f", accuracy {line['mlm_accuracy']:.1%}"
    if "held_out_mlm_loss" not in line:
        return training + accuracy
    if line["held_out_mlm_loss"] is None:
        return f"{training}{accuracy}; the held-out MLM loss is no finite number, so this model is not kept as the best"
    told = (
        f"{training}, {line['held_out_mlm_loss']:.3f} held out (unigram {line['held_out_unigram_loss']:.3f}), "
        f"accuracy {line['held_out_mlm_accuracy']:.1%}"
    )
    if line.get("held_out_nsp_accuracy") is not None:
        told += (
            f"; NSP accuracy {line['held_out_nsp_accuracy']:.1%} "
            f"(always the commoner label: {line['held_out_nsp_majority_share']:.1%})"
        )
    return told
