"""Known sicknesses of a run, found in its lines of metrics: each is told once, with what to try.

The thresholds are here together. They are for what is certainly wrong: a run that merely could do better is left alone.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

Line = dict[str, Any]

EVEN_MARGIN = 0.1
"""Nats above an even guess among the vocabulary that a fresh model's loss stays within."""

PATIENCE_PAIRS = 100_000
"""Examples before a run is called stuck. The demo, tiny and fast, leaves the unigram plateau after 5,000 and the
next-sentence one after 30,000. BERT-base at batch 256 has seen as many in 400 steps: there the warm-up decides."""

PATIENCE_WARMUPS = 2
"""Warm-ups before a run is called stuck: at small learning rates nothing is learnt yet."""

PLATEAU_MARGIN = 0.1
"""Nats below the unigram model's loss that a run must have come."""

NEXT_SENTENCE_MARGIN = 0.01
"""Nats below the entropy of the labels that it must have come: at 0.683 some 57 % of the pairs are told right."""

WAIT_SHARE = 0.1
"""Share of the time spent waiting for input that is too much; 0.03 is what the pipeline is made for."""

STRETCH_SECONDS = 60.0
"""Seconds of training that a speed is judged by; shorter stretches catch other programs and filling queues."""

STRETCH_PAIRS = 2_000
"""Examples that a training loss is judged by: single steps are noisy."""

NEXT_SENTENCE_PAIRS = 20_000
"""Examples that a next-sentence loss in training is judged by: its mean is then known to 0.002."""

SKIPPED_SHARE = 0.05
SKIPPED_STEPS = 200
"""Share of skipped steps that is too much, and of how many. Loss scaling skips some at its start, then one in 2000."""

SLOWER = 0.98
"""Speed of more replicas, as a part of that of fewer, from which on they are called slower."""


class Sicknesses:
    """Finds the sicknesses of a run while its lines come in.

    Args:
        vocab_size: tokens that the model chooses from.
        warmup_steps: steps of the longest warm-up; within it no loss is judged.
    """

    def __init__(self, *, vocab_size: int, warmup_steps: int) -> None:
        self.vocab_size = vocab_size
        self.warmup_steps = warmup_steps
        self.lines: list[Line] = []
        self.pairs = 0
        self.replicas: set[int] = set()
        self._found: set[str] = set()

    def find(self, line: Line) -> list[str]:
        """Takes in the next line; returns a sentence for each sickness that now shows for the first time."""
        self.lines.append(line)
        self.pairs += line.get("examples", 0)
        self.replicas.add(line.get("replicas", 1))
        said = []
        for name, sickness in _SICKNESSES.items():
            if name not in self._found and (sentence := sickness(self)):
                self._found.add(name)
                said.append(sentence)
        return said

    @property
    def last(self) -> Line:
        """The line that came last."""
        return self.lines[-1]

    @property
    def must_have_learnt(self) -> bool:
        """Whether the run has gone on for so long that its losses must have come down."""
        return self.pairs >= PATIENCE_PAIRS and self.last["step"] > PATIENCE_WARMUPS * self.warmup_steps

    def recent(self, name: str, weight: Callable[[Line], float], *, enough: float, from_step: int = 0) -> float | None:
        """Returns a value's mean over the last lines of the phase.

        Args:
            name: the value.
            weight: of a line.
            enough: least sum of their weights; if all have less, there is no mean.
            from_step: lines up to and with this step do not count.
        """
        total = sum_of_weights = 0.0
        for line in reversed(self.lines):
            if line["phase"] != self.last["phase"] or line["step"] <= from_step:
                return None
            if line.get(name) is not None:
                total += line[name] * weight(line)
                sum_of_weights += weight(line)
                if sum_of_weights >= enough:
                    return total / sum_of_weights
        return None

    def tokens_per_second(self, replicas: int) -> float | None:
        """Returns the speed in the present phase of so many replicas; None if they have not run long enough."""
        lines = [line for line in self.lines if line["phase"] == self.last["phase"]]
        lines = [line for line in lines if line.get("replicas", 1) == replicas and line.get("tokens_per_second")]
        seconds = sum(map(_seconds, lines))
        return sum(line["tokens"] for line in lines) / seconds if seconds >= STRETCH_SECONDS else None


class Doctor:
    """Warns of each sickness when a line of metrics first shows it.

    Args:
        say: takes each sentence.
        clear: called before one, to clear the progress bar.
        sicknesses: of a new run.
        earlier: lines of the run so far, whose sicknesses have been told.
    """

    def __init__(
        self, say: Callable[[str], None], clear: Callable[[], None], sicknesses: Sicknesses, earlier: Iterable[Line]
    ) -> None:
        self.say = say
        self.clear = clear
        self.sicknesses = sicknesses
        for line in earlier:
            sicknesses.find(line)

    def __call__(self, line: Line) -> None:
        """Looks at the next line."""
        for sentence in self.sicknesses.find(line):
            self.clear()
            self.say(f"Warning: {sentence}")


def sicknesses_of(lines: Iterable[Line], *, vocab_size: int, warmup_steps: int) -> list[tuple[int, str]]:
    """Returns (step, sentence) for each sickness that the lines of a whole run show."""
    sicknesses = Sicknesses(vocab_size=vocab_size, warmup_steps=warmup_steps)
    return [(line["step"], sentence) for line in lines for sentence in sicknesses.find(line)]


def replicas_slower(fewer: int, their_tokens: float, more: int, tokens: float) -> str | None:
    """Returns a sentence if more replicas make fewer tokens a second than fewer ones."""
    if tokens >= SLOWER * their_tokens:
        return None
    return (
        f"{more} replicas make {tokens:,.0f} tokens a second, fewer than the {their_tokens:,.0f} of {fewer}; "
        f"go on with `replicas` {fewer}, or give each more to do with a larger `batch_size`."
    )


def _harm(run: Sicknesses) -> str | None:
    source, loss = "held-out", run.last.get("held_out_mlm_loss")
    if loss is None:
        source, loss = "training", run.recent("mlm_loss", _pairs, enough=STRETCH_PAIRS, from_step=run.warmup_steps)
    even = math.log(run.vocab_size)
    if loss is None or loss <= even + EVEN_MARGIN or run.last["step"] <= run.warmup_steps:
        return None
    return (
        f"the {source} MLM loss is above {even:.3f}, that of guessing evenly among the {run.vocab_size} tokens, "
        f"so training does harm; start anew with a lower `learning_rate` (now {run.last['learning_rate']:.3g})."
    )


def _plateau(run: Sicknesses) -> str | None:
    loss, unigram = run.last.get("held_out_mlm_loss"), run.last.get("held_out_unigram_loss")
    if loss is None or unigram is None or not run.must_have_learnt:
        return None
    if loss <= unigram - PLATEAU_MARGIN or loss > math.log(run.vocab_size) + EVEN_MARGIN:
        return None
    return (
        f"after {run.pairs:,} examples the held-out MLM loss, {loss:.3f}, is still that of a unigram model, "
        f"{unigram:.3f}, so nothing is learnt from context; start anew with another `learning_rate` (a lower one if "
        f"the loss jumps, else a higher one; now {run.last['learning_rate']:.3g}) or a longer `warmup_steps`."
    )


def _next_sentence(run: Sicknesses) -> str | None:
    if not run.must_have_learnt:
        return None
    source, loss, entropy = "held-out", run.last.get("held_out_nsp_loss"), math.log(2)
    if share := run.last.get("held_out_nsp_majority_share"):
        entropy = label_entropy(share)
    if loss is None:
        source, loss = (
            "training",
            run.recent("nsp_loss", _pairs, enough=NEXT_SENTENCE_PAIRS, from_step=run.warmup_steps),
        )
    if loss is None or loss <= entropy - NEXT_SENTENCE_MARGIN:
        return None
    return (
        f"after {run.pairs:,} examples the {source} NSP loss, {loss:.3f}, is no better than knowing how common each "
        f"label is, {entropy:.3f}; look whether documents are parted by blank lines and longer than a few sentences, "
        "try another `learning_rate`, or train without next sentences (`prepare --examples chunks`)."
    )


def _input_bound(run: Sicknesses) -> str | None:
    share = run.recent("input_wait_share", _seconds, enough=STRETCH_SECONDS)
    if share is None or share <= WAIT_SHARE:
        return None
    return (
        f"{share:.0%} of the last minute went by waiting for input; leave cores free for reading, put the data on "
        "a local disk, or draw masks beforehand with `prepare --format tfrecord`."
    )


def _replicas_slower(run: Sicknesses) -> str | None:
    more = run.last.get("replicas", 1)
    fewer = max((count for count in run.replicas if count < more), default=None)
    if fewer is None:
        return None
    theirs, ours = run.tokens_per_second(fewer), run.tokens_per_second(more)
    return replicas_slower(fewer, theirs, more, ours) if theirs and ours else None


def _skipped(run: Sicknesses) -> str | None:
    now = run.last
    for line in reversed(run.lines):
        steps = now["step"] - line["step"]
        if steps >= SKIPPED_STEPS:
            skipped = now.get("skipped_steps", 0) - line.get("skipped_steps", 0)
            if skipped <= SKIPPED_SHARE * steps:
                return None
            return (
                f"{skipped} of the last {steps} steps were skipped, since their loss or gradient was infinite or not "
                "a number; try a lower `learning_rate`, or `dtype` mixed_bfloat16 or float32."
            )
    return None


def label_entropy(share: float) -> float:
    """Returns the loss, in nats, of knowing only that one of two labels has this share."""
    return -sum(p * math.log(p) for p in (share, 1 - share) if p > 0)


def _pairs(line: Line) -> float:
    return line.get("examples", 0)


def _seconds(line: Line) -> float:
    """How long the steps of a line took; 0 if that is not known."""
    rate = line.get("examples_per_second")
    return line.get("examples", 0) / rate if rate else 0.0


_SICKNESSES: dict[str, Callable[[Sicknesses], str | None]] = {
    "harm": _harm,
    "plateau": _plateau,
    "next_sentence": _next_sentence,
    "input_bound": _input_bound,
    "replicas_slower": _replicas_slower,
    "skipped": _skipped,
}
