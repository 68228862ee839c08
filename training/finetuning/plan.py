"""How many steps a fine-tuning has, when it is evaluated, and how fast it learns when."""

import dataclasses
import math

from keras_bert_impl.optimizers import BertAdamW
from keras_bert_impl.schedules import WarmupDecay

from ..configs import FinetuneConfig


@dataclasses.dataclass(frozen=True)
class Plan:
    """The steps of one model's training.

    Attributes:
        steps_per_epoch: batches that every row is in once.
        steps: all steps.
        evaluations: the steps after which the model is evaluated, rising; the last step among them.
    """

    steps_per_epoch: int
    steps: int
    evaluations: tuple[int, ...]

    def next_evaluation(self, step: int) -> int:
        """Returns the step of the first evaluation after a step that is not the last."""
        return next(evaluation for evaluation in self.evaluations if evaluation > step)

    def epoch(self, step: int) -> float:
        """Returns how many epochs are done after a step."""
        return step / self.steps_per_epoch


def make_plan(config: FinetuneConfig, rows: int) -> Plan:
    """Returns the plan for a number of rows."""
    per_epoch = math.ceil(rows / config.batch_size)
    # Not one step more where `epochs` times `per_epoch` is whole but for rounding.
    steps = max(1, math.ceil(config.epochs * per_epoch - 1e-6))
    if config.evaluations:
        evaluations = {math.ceil(steps * number / config.evaluations) for number in range(1, config.evaluations + 1)}
    else:
        evaluations = {*range(per_epoch, steps + 1, per_epoch), steps}
    return Plan(per_epoch, steps, tuple(sorted(evaluations)))


def make_schedule(config: FinetuneConfig, steps: int) -> WarmupDecay:
    """Returns the learning rate by step."""
    warmup = round(config.warmup_share * steps)
    return WarmupDecay(config.learning_rate, warmup, steps, shape=config.schedule, decay_from="warmup")


def make_optimizer(config: FinetuneConfig, schedule: WarmupDecay) -> BertAdamW:
    """Returns the optimizer that the settings describe."""
    return BertAdamW(
        schedule,
        weight_decay=config.weight_decay,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
        global_clipnorm=config.clip_norm or None,
        layer_decay=config.layer_decay,
    )
