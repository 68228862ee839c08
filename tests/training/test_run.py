import types

import pytest
from pretraining_runs import small_config

from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.phases import Phase
from keras_bert_impl.training.run import decided, examples_per_row


def data(packed_rows):
    """Data with 30 examples of every length."""
    return types.SimpleNamespace(
        lengths=(16, 128, 256, 512), count=lambda split, length: 30, packed_rows=lambda split, length: packed_rows
    )


@pytest.mark.parametrize(
    ("packed_rows", "packed"), [(10, [False, False, True, True]), (0, [False] * 4)], ids=["prepared", "records"]
)
def test_phases_are_packed_from_length_256_on_where_the_data_has_packed_rows(packed_rows, packed):
    phases = tuple(PhaseConfig(length=length, share=0.25) for length in (16, 128, 256, 512))
    config = decided(small_config("data", "run", phases=phases), 1, data(packed_rows))
    assert [phase.packed for phase in config.phases] == packed


def test_a_phase_is_packed_as_it_says():
    phases = tuple(PhaseConfig(length=length, share=0.5, packed=length == 128) for length in (128, 512))
    config = decided(small_config("data", "run", phases=phases), 1, data(10))
    assert [phase.packed for phase in config.phases] == [True, False]


def test_a_length_that_the_data_does_not_have_is_left_for_the_check_to_refuse():
    config = decided(small_config("data", "run", phases=(PhaseConfig(length=1024, share=1),)), 1, data(10))
    assert config.phases[0].packed is False


def test_rows_hold_one_example_or_if_packed_several():
    phases = [Phase(1, 512, 8, 0, 5, packed=packed) for packed in (False, True)]
    assert [examples_per_row(data(10), phase) for phase in phases] == [1, 3]
