"""From TensorFlow's errors when another machine is gone to a sentence on which one it was."""

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.eager import context

from keras_bert_impl.errors import WorkerLostError

from .team import Loss, Team

# Both notice it by themselves, and not at the same moment.
_TEAM_SECONDS = 5.0
_TASK = re.compile(r"/job:worker/(?:replica:0/)?task:(\d+)")


@contextlib.contextmanager
def plain_losses(team: Team) -> Iterator[None]:
    """Lets the loss of a machine end what the block waits for, with a `WorkerLostError`.

    A process that ends is noticed at once, by its connection; a machine that vanishes or hangs, by the heartbeats of
    TensorFlow's coordination service after ten seconds.
    """
    if team.cluster is None:
        yield
        return
    team.on_loss = _end_collectives
    try:
        yield
    except tf.errors.OpError as error:
        if not _is_of_collectives(error):
            raise
        loss = team.loss(_TEAM_SECONDS)
        if loss is None and (others := _tasks(error) - {team.number}):
            loss = Loss(min(others), "it no longer answers")
        if loss is None:
            raise
        raise WorkerLostError(team.describe(loss)) from error


def _end_collectives(sentence: str) -> None:
    """Makes the steps that wait for a machine fail, as TensorFlow's own health check does."""
    context.context().abort_collective_ops(tf.errors.UNAVAILABLE, sentence)


def _is_of_collectives(error: tf.errors.OpError) -> bool:
    return isinstance(error, tf.errors.UnavailableError | tf.errors.CancelledError) or "ollective" in error.message


def _tasks(error: tf.errors.OpError) -> set[int]:
    return {int(number) for number in _TASK.findall(error.message)}
