import itertools
import math

import pytest

from keras_bert_impl.training.sicknesses import (
    PATIENCE_PAIRS,
    Doctor,
    Sicknesses,
    label_entropy,
    replicas_slower,
    sicknesses_of,
)

EVEN = math.log(1000)


def line(step, **values):
    """A line of 100 steps of 16 examples each, which took ten seconds, of a run that is well."""
    return {
        "step": step,
        "phase": 1,
        "length": 128,
        "replicas": 1,
        "mlm_loss": 4.0,
        "nsp_loss": 0.5,
        "learning_rate": 0.25,
        "examples": 1600,
        "tokens": 160_000,
        "examples_per_second": 160.0,
        "tokens_per_second": 16_000.0,
        "input_wait_share": 0.01,
        "skipped_steps": 0,
    } | values


def evaluated(step, mlm_loss=5.0, nsp_loss=0.5, share=0.5, **values):
    held_out = {"mlm_loss": mlm_loss, "unigram_loss": 6.25, "nsp_loss": nsp_loss, "nsp_majority_share": share}
    return line(step, **{f"held_out_{name}": value for name, value in held_out.items()}, **values)


def found(lines, warmup_steps=0):
    return sicknesses_of(lines, vocab_size=1000, warmup_steps=warmup_steps)


def steps(count, **values):
    return [line(step, **values) for step in range(100, 100 * count + 1, 100)]


def late(**values):
    """An evaluation after patience has run out."""
    return [line(100, examples=PATIENCE_PAIRS), evaluated(200, **values)]


def test_a_run_that_is_well_has_no_sickness():
    lines = [evaluated(n, 9.0 / n**0.1) if n % 1000 == 0 else line(n) for n in range(100, 20_000, 100)]
    assert found(lines) == []


def test_a_held_out_loss_above_that_of_guessing_is_warned_of_once():
    lines = [evaluated(4, 9.0), evaluated(8, 121804.0)]
    assert found(lines) == [
        (
            4,
            "the held-out MLM loss is above 6.908, that of guessing evenly among the 1000 tokens, so training does "
            "harm; start anew with a lower `learning_rate` (now 0.25).",
        )
    ]


def test_a_training_loss_above_that_of_guessing_is_warned_of_when_it_lasts():
    lines = steps(3, mlm_loss=9.0)
    assert [step for step, sentence in found(lines) if "the training MLM loss is above 6.908" in sentence] == [200]
    assert found([line(1, mlm_loss=9.0, examples=16)]) == []


def test_a_fresh_model_and_the_warm_up_are_not_warned_of():
    assert found([evaluated(4, 9.0)], warmup_steps=4) == []
    assert found([evaluated(4, EVEN + 0.02)]) == []
    assert found(steps(3, mlm_loss=9.0), warmup_steps=300) == []


@pytest.mark.parametrize("loss", [6.2, 6.4, EVEN])
def test_a_run_that_stays_at_the_unigram_plateau_is_warned_of(loss):
    ((step, sentence),) = found(late(mlm_loss=loss))
    assert step == 200 and sentence.startswith(
        f"after 101,600 examples the held-out MLM loss, {loss:.3f}, is still that of a unigram model, 6.250, "
        "so nothing is learnt from context"
    )
    assert "another `learning_rate`" in sentence and "`warmup_steps`" in sentence


def test_the_plateau_is_no_sickness_early_or_in_a_warm_up_or_once_it_is_left():
    assert found([evaluated(200, 6.25)]) == []
    assert found(late(mlm_loss=6.25), warmup_steps=100) == []
    assert found(late(mlm_loss=6.1)) == []


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_a_next_sentence_loss_at_the_entropy_of_the_labels_is_warned_of(share):
    entropy = label_entropy(share)
    ((_, sentence),) = found(late(nsp_loss=entropy - 0.005, share=share))
    assert f"the held-out NSP loss, {entropy - 0.005:.3f}, is no better than knowing how common each label is" in (
        sentence
    )
    assert f", {entropy:.3f};" in sentence and "`prepare --examples chunks`" in sentence
    assert found(late(nsp_loss=entropy - 0.02, share=share)) == []


def test_without_held_out_documents_the_next_sentence_loss_in_training_is_judged():
    first = line(1, examples=PATIENCE_PAIRS)
    chance = [line(step, nsp_loss=math.log(2)) for step in range(100, 1501, 100)]
    ((step, sentence),) = found([first, *chance])
    # 20,000 examples are thirteen lines of 1600.
    assert "the training NSP loss, 0.693" in sentence and step == 1300
    assert found([first, *(line(each["step"], nsp_loss=0.66) for each in chance)]) == []


def test_chunks_have_no_next_sentence_sickness():
    lines = [{name: value for name, value in each.items() if "nsp" not in name} for each in late()]
    assert found(lines) == []


def test_a_minute_of_waiting_for_input_is_warned_of():
    ((step, sentence),) = found(steps(8, input_wait_share=0.25))
    assert step == 600 and sentence.startswith("25% of the last minute went by waiting for input;")


def test_short_waits_and_unknown_speeds_are_no_sickness():
    waits = itertools.cycle([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert found([line(100 * n, input_wait_share=next(waits)) for n in range(1, 30)]) == []
    unknown = {"input_wait_share": None, "examples_per_second": None, "tokens_per_second": None}
    assert found(steps(9, **unknown)) == []


def test_replicas_that_are_slower_than_fewer_in_an_earlier_stretch_are_warned_of():
    slower = [
        line(step, replicas=2, examples_per_second=80.0, tokens_per_second=8000.0) for step in range(700, 1500, 100)
    ]
    ((step, sentence),) = found([*steps(6), *slower])
    assert step == 900 and sentence == (
        "2 replicas make 8,000 tokens a second, fewer than the 16,000 of 1; go on with `replicas` 1, or give each more "
        "to do with a larger `batch_size`."
    )
    faster = [line(each["step"], replicas=2, examples_per_second=300.0) for each in slower]
    assert found([*steps(6), *faster]) == []


def test_speeds_of_other_phases_are_not_compared():
    slower = [line(step, phase=2, replicas=2, examples_per_second=80.0) for step in range(700, 1500, 100)]
    assert found([*steps(6), *slower]) == []


def test_replicas_as_fast_as_fewer_within_two_in_a_hundred_are_not_called_slower():
    assert replicas_slower(1, 1000.0, 2, 985.0) is None
    assert "4 replicas make 970 tokens a second, fewer than the 1,000 of 2" in replicas_slower(2, 1000.0, 4, 970.0)


def test_many_skipped_steps_are_warned_of():
    lines = [line(step, skipped_steps=step // 10) for step in range(100, 500, 100)]
    ((step, sentence),) = found(lines)
    assert step == 300 and sentence.startswith("20 of the last 200 steps were skipped, since their loss")
    assert "lower `learning_rate`" in sentence and "mixed_bfloat16" in sentence


def test_the_search_for_a_loss_scale_is_no_sickness():
    assert found([line(step, skipped_steps=7 + step // 2000) for step in range(100, 9000, 100)]) == []


def test_what_was_told_before_a_resume_is_not_told_again():
    said, cleared = [], []
    earlier = [evaluated(4, 9.0)]
    fresh = Sicknesses(vocab_size=1000, warmup_steps=0)
    doctor = Doctor(said.append, lambda: cleared.append(True), fresh, earlier)
    doctor(evaluated(8, 9.0))
    assert said == []
    doctor(line(300, skipped_steps=100))
    assert len(said) == len(cleared) == 1 and said[0].startswith("Warning: 100 of the last 292 steps")


def test_lines_of_an_older_run_are_passed_over():
    old = {"step": 1, "phase": 1, "length": 16, "loss": 1.0, "mlm_loss": 0.5, "learning_rate": 1.0}
    assert found([old, old | {"step": 900}]) == []
