import queue

import pytest
import tensorflow as tf
from machines import teams

from keras_bert_impl.errors import WorkerLostError
from keras_bert_impl.training import worker_loss
from keras_bert_impl.training.team import Team
from keras_bert_impl.training.worker_loss import plain_losses

HEARTBEAT = (
    "Collective ops is aborted by: Error reported from /job:worker/task:0: The following tasks are unhealthy "
    "(stopped sending heartbeats):\n/job:worker/replica:0/task:1\nThe tasks have crashed."
)


@pytest.fixture
def chief(monkeypatch):
    monkeypatch.setattr(worker_loss, "_TEAM_SECONDS", 0.3)
    ended = queue.Queue()
    monkeypatch.setattr(worker_loss, "_end_collectives", ended.put)
    both = teams(2)
    both[0].ended = ended
    both[0].second = both[1]
    yield both[0]
    for team in both:
        team.leave(WorkerLostError("the test is over"))


def fail(team, error):
    with plain_losses(team):
        raise error


def test_a_machine_that_no_longer_answers_is_named_by_tensorflow(chief):
    with pytest.raises(WorkerLostError, match=r"Worker 1 \(127.*\) was lost after step 0: it no longer answers; start"):
        fail(chief, tf.errors.UnavailableError(None, None, HEARTBEAT))


def test_a_process_that_has_ended_is_named_by_its_connection(chief):
    with plain_losses(chief):
        pass
    chief.second.leave(WorkerLostError("no last words"))
    assert chief.loss(10).number == 1
    with pytest.raises(WorkerLostError, match=r"Worker 1 .*because its process or its machine ended; start"):
        fail(chief, tf.errors.InternalError(None, None, "Collective ops is aborted by: Connection reset by peer"))


def test_a_loss_ends_the_steps_that_wait(chief):
    with plain_losses(chief):
        chief.second.leave(ValueError("no such file"))
        sentence = chief.ended.get(timeout=10)  # Called from another thread, some time after the loss is known.
        for peer in chief._peers.values():
            peer.close()
    assert "Worker 1" in sentence
    assert "ValueError no such file" in sentence
    assert chief.ended.empty()


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"),
        tf.errors.UnavailableError(None, None, "some other service"),
        KeyError("no error of TensorFlow"),
    ],
)
def test_other_errors_stay_what_they_are(chief, error):
    with pytest.raises(type(error)) as raised:
        fail(chief, error)
    assert raised.value is error


def test_alone_nothing_is_changed():
    with pytest.raises(tf.errors.UnavailableError):
        fail(Team(), tf.errors.UnavailableError(None, None, HEARTBEAT))
