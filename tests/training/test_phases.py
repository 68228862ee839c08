import itertools

import pytest
from pretraining_runs import small_config

from keras_bert_impl.errors import InputError
from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.phases import Milestones, Phase, plan_phases


def planned(steps, *shares):
    phases = tuple(PhaseConfig(length=16 * (n + 1), share=share) for n, share in enumerate(shares))
    return [(p.first_step, p.last_step) for p in plan_phases(small_config("data", "run", steps=steps, phases=phases))]


def test_steps_are_divided_by_the_shares():
    assert planned(1000, 0.9, 0.1) == [(0, 900), (900, 1000)]


@pytest.mark.parametrize("steps", [3, 4, 7, 11, 101])
def test_every_phase_has_steps_and_the_last_takes_the_rest(steps):
    phases = planned(steps, 0.98, 0.01, 0.01)
    assert phases[0][0] == 0 and phases[-1][1] == steps
    assert all(first < last for first, last in phases)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(phases))


def test_phases_have_the_steps_they_say():
    phases = tuple(PhaseConfig(length=length, steps=steps) for length, steps in ((16, 5), (32, 1), (16, 7)))
    planned = plan_phases(small_config("data", "run", steps=None, phases=phases))
    assert [(phase.first_step, phase.last_step) for phase in planned] == [(0, 5), (5, 6), (6, 13)]


def test_a_phase_has_its_own_batch_size_or_the_run_s():
    assert plan_phases(small_config("data", "run")) == [Phase(1, 16, 8, 0, 9), Phase(2, 32, 4, 9, 12)]


def test_a_phase_is_packed_where_its_settings_say_so():
    phases = tuple(PhaseConfig(length=128, share=1 / 3, packed=packed) for packed in (True, False, None))
    assert [phase.packed for phase in plan_phases(small_config("data", "run", phases=phases))] == [True, False, False]


def test_fewer_steps_than_phases_are_refused():
    with pytest.raises(InputError, match=r"`steps` must be at least the number of phases, 2\. Received: steps=1"):
        planned(1, 0.9, 0.1)


def test_milestones_are_due_when_they_are_reached_or_passed():
    milestones = Milestones(log_every=2, evaluate_every=10, save_every=5)
    assert milestones.due(0, 1) == set()
    assert milestones.due(1, 2) == {"log"}
    assert milestones.due(4, 5) == {"log", "save"}
    assert milestones.due(8, 11) == {"log", "save", "evaluate"}


def test_everything_is_due_at_the_end_of_a_phase():
    assert Milestones(log_every=50, evaluate_every=50, save_every=50).due(6, 7, end=True) == {"log", "save", "evaluate"}
