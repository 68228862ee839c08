import re
import threading
import time

import pytest
from machines import at_once, teams

from keras_bert_impl.errors import InputError, StoppedBySignal, WorkerLostError
from keras_bert_impl.training.team import Loss, Team, assembled


@pytest.fixture
def three():
    made = teams(3)
    yield made
    for team in made:
        team.leave(WorkerLostError("the test is over"))


def test_alone_a_machine_is_its_own_chief():
    with assembled(None, {}) as team:
        assert team.is_chief
        assert team.from_chief({"a": 1}) == {"a": 1}
        assert team.agreed_stop(3, None) is None
        assert team.agreed_stop(4, 15) == 15
        said = []
        team.voice(said.append)("line")
        assert said == ["line"]


def test_all_get_what_the_chief_says_in_its_order(three):
    chief, *others = three
    assert [chief.from_chief(value) for value in ([1], None, "x")] == [[1], None, "x"]
    for team in others:
        assert [team.from_chief("own") for _ in range(3)] == [[1], None, "x"]


def test_only_the_chief_narrates(three):
    said = []
    for team in three:
        team.voice(said.append)(f"narration of {team.number}")
    name = three[0].cluster.name
    assert said == [
        f"This is {name(0)} of 3 machines that train together; it writes the run directory.",
        "narration of 0",
        f"This is {name(1)} of 3 machines that train together; it follows {name(0)}.",
        f"This is {name(2)} of 3 machines that train together; it follows {name(0)}.",
    ]


@pytest.mark.parametrize("asked", [0, 2])
def test_a_signal_on_one_stops_all_after_the_same_step(three, asked):
    # As with collectives, no machine finishes a step that another one has not begun.
    together = threading.Barrier(3)

    def train(team):
        for step in range(1, 60):
            together.wait(5)
            if stop := team.agreed_stop(step, 15 if team.number == asked and step >= 5 else None):
                return step, stop
        return None

    def with_barrier(team):
        try:
            return train(team)
        except threading.BrokenBarrierError:
            return "waits for a step that another machine does not make"

    stops = at_once(*(lambda team=team: with_barrier(team) for team in three))
    assert len(set(stops)) == 1, stops
    step, number = stops[0]
    assert number == 15
    assert step >= 5


def test_machines_that_run_ahead_of_their_devices_stop_together(three):
    def train(team):
        for step in range(1, 400):
            time.sleep(0.001 * team.number)
            if team.agreed_stop(step, 2 if team.number == 1 and step == 20 else None):
                return step
        return None

    stops = at_once(*(lambda team=team: train(team) for team in three))
    assert len(set(stops)) == 1, stops
    assert stops[0] > 20


def test_one_that_ends_is_known_to_all_by_its_number(three):
    heard = []
    for team in three[:2]:
        team.on_loss = heard.append
        team.saved_step = 9
        team.agreed_stop(12, None)
    for peer in three[2]._peers.values():
        peer.close()
    assert three[0].loss(10) == three[1].loss(10) == Loss(2)
    text = (
        r"Worker 2 \(127.*\) was lost after step 13, because its process or its machine ended; start the same command "
        r"on every machine again, and the run goes on from the checkpoint of step 9\."
    )
    for team in three[:2]:
        with pytest.raises(WorkerLostError, match=text):
            team.agreed_stop(13, None)


def test_without_a_checkpoint_the_run_begins_anew(three):
    assert three[0].describe(Loss(1)).endswith("and the run begins anew.")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            InputError("`data` must be whole. Received: a damaged file."),
            "`data` must be whole. Received: a damaged file",
        ),
        (KeyboardInterrupt(), "it was interrupted"),
        (KeyError("length"), "KeyError 'length'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_last_words_of_one_reach_all(three, error, words):
    three[1].leave(error)
    for team in (three[0], three[2]):
        assert team.loss(10).number == 1
        with pytest.raises(WorkerLostError, match=rf"Worker 1 .* was lost after step 0: {re.escape(words)}; start the"):
            team.check()


def test_the_others_part_only_when_the_chief_is_done(three):
    order = []

    def part(team):
        if team.is_chief:
            time.sleep(0.1)
            order.append(team.number)
        team.leave(StoppedBySignal(15, "stopped"))
        order.append(team.number)

    assert at_once(*(lambda team=team: part(team) for team in three)) == [None] * 3
    assert order[0] == 0
    assert sorted(order) == [0, 0, 1, 2]
    assert all(team.loss(0) is None for team in three)


def test_a_chief_that_fails_at_the_end_is_a_loss_to_the_others(three):
    chief, *others = three
    failing = [lambda: chief.leave(OSError("No space left on device"))]
    _, *lost = at_once(*failing, *(lambda team=team: team.leave() for team in others))
    for error in lost:
        with pytest.raises(WorkerLostError, match=r"Worker 0 .*: OSError No space left on device; "):
            raise error


def test_a_team_needs_no_peers():
    assert Team().machines == 1
