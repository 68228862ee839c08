"""Which steps belong to which phase, and what is due after a step."""

import dataclasses

from keras_bert_impl.errors import InputError

from .configs import PretrainConfig


@dataclasses.dataclass(frozen=True)
class Phase:
    """A stretch of steps at one sequence length: those after `first_step` up to and with `last_step`.

    `batch_size` counts rows, which hold several examples each if they are packed.
    """

    number: int
    length: int
    batch_size: int
    first_step: int
    last_step: int
    packed: bool = False
    bucketed: bool = False


def plan_phases(config: PretrainConfig) -> list[Phase]:
    """Divides the steps into phases: as many as each says, or by their shares.

    By shares, each phase has at least one step, and the last takes the rest.

    Raises:
        InputError: if there are fewer steps than phases.
    """
    if config.total_steps < len(config.phases):
        raise InputError(
            f"`steps` must be at least the number of phases, {len(config.phases)}. Received: steps={config.total_steps}"
        )
    phases: list[Phase] = []
    share = 0.0
    last_step = 0
    for index, phase in enumerate(config.phases):
        first_step = last_step
        if phase.steps is None:
            share += phase.share or 0
            phases_left = len(config.phases) - index - 1
            last_step = min(max(round(share * config.total_steps), first_step + 1), config.total_steps - phases_left)
            last_step = last_step if phases_left else config.total_steps
        else:
            last_step += phase.steps
        batch_size = phase.batch_size or config.batch_size
        layout = {"packed": bool(phase.packed), "bucketed": phase.bucketed}
        phases.append(Phase(index + 1, phase.length, batch_size, first_step, last_step, **layout))
    return phases


@dataclasses.dataclass(frozen=True)
class Milestones:
    """After which steps something is due; at the end of a phase, everything is."""

    log_every: int
    evaluate_every: int
    save_every: int

    def due(self, previous: int, step: int, *, end: bool = False) -> set[str]:
        """Returns what of `"log"`, `"evaluate"`, `"save"` became due after `previous` and up to `step`.

        A step to evaluate or save after is logged too, so that a resumed run begins with empty sums.

        Args:
            previous: the step that was asked about before.
            step: steps done.
            end: whether it is the last one of its phase.
        """
        every = {"log": self.log_every, "evaluate": self.evaluate_every, "save": self.save_every}
        due = {name for name, steps in every.items() if end or step // steps > previous // steps}
        return due | {"log"} if due else due
