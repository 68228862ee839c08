import json

import pytest
from pretraining_runs import small_config

from keras_bert_impl.training.configs import PhaseConfig
from keras_bert_impl.training.dry_run import _compare, duration_in_words
from keras_bert_impl.training.pretrain import pretrain


@pytest.fixture(scope="module")
def tried(prepared, tmp_path_factory):
    """A dry run of both phases: what it said, what it returned, and where it would have written."""
    folder, said = tmp_path_factory.mktemp("dry"), []
    return said, pretrain(small_config(prepared, folder / "run", dry_run=True), say=said.append), folder


@pytest.mark.slow
def test_nothing_is_written(tried):
    said, _, folder = tried
    assert list(folder.iterdir()) == []
    assert said[-1].endswith("are free. Nothing was written.")


@pytest.mark.slow
def test_parameters_memory_and_layout_are_told(tried):
    said, facts, _ = tried
    assert f": {facts['parameters']:,} parameters, on 1 replica." in said[0]
    assert facts["weights_bytes"] == 4 * facts["parameters"]
    # Two running means of every weight, and a few numbers.
    assert 0 <= facts["optimizer_bytes"] - 2 * facts["weights_bytes"] <= 64
    layout = "one device, no strategy (CPU:0), float32, XLA off, padding left out, micro-batches on each replica: 1"
    assert f"Layout: {layout}." in said
    assert any(line.startswith("Memory on each replica: weights ") for line in said)
    assert facts["checkpoint_bytes"] == 3 * facts["weights_bytes"] and facts["free_bytes"] > 0


@pytest.mark.slow
def test_a_step_of_each_phase_is_told_with_its_real_tokens_and_its_time(tried):
    said, facts, _ = tried
    first, second = facts["phases"]
    assert (first["number"], first["length"], first["rows"], first["examples"]) == (1, 16, 8, 8.0)
    assert (second["number"], second["length"], second["rows"], second["examples"]) == (2, 32, 4, 4.0)
    for phase in facts["phases"]:
        assert phase["rows"] * 6 < phase["tokens"] <= phase["rows"] * phase["length"]
        assert 0.1 < phase["predictions"] / phase["tokens"] < 0.25
        assert 0 < phase["seconds_per_step"] < phase["compile_seconds"]
        assert 0 < phase["model_flops_utilisation"] < 1 and phase["peak_bytes"] > 1e8
    assert any(line.startswith("Phase 1, a step: 8 rows of 16 with 8.0 examples, ") for line in said)


@pytest.mark.slow
def test_the_time_of_the_run_is_that_of_its_steps(tried):
    said, facts, _ = tried
    first, second = (phase["seconds_per_step"] for phase in facts["phases"])
    assert facts["expected_seconds"] == pytest.approx(9 * first + 3 * second)
    assert any(line.startswith("All 12 steps would take ") for line in said)


@pytest.mark.slow
def test_replicas_are_compared_with_one(prepared, tmp_path):
    said = []
    phases = (PhaseConfig(length=16, share=1),)
    config = small_config(prepared, tmp_path / "run", dry_run=True, replicas=2, steps_per_execution=4, phases=phases)
    facts = pretrain(config, say=said.append)
    assert "2 replicas share the cores of one CPU, so together they are seldom faster than one." in said
    assert any(line.startswith("Layout: MirroredStrategy (CPU:0, CPU:1), ") for line in said)
    assert facts["phases"][0]["examples"] == 8.0
    alone = facts["tokens_per_second_of_one_replica"]
    sentences = [line for line in said if f"{alone:,.0f}" in line and "2" in line]
    assert sentences and sentences[0].startswith(("Warning: 2 replicas make ", "One replica alone makes "))


@pytest.mark.slow
def test_a_dry_run_beside_a_run_leaves_it_as_it_is(prepared, tmp_path):
    config = small_config(prepared, tmp_path / "run", phases=(PhaseConfig(length=16, share=1),), steps=2)
    pretrain(config)
    before = {path: path.read_bytes() for path in sorted((tmp_path / "run").rglob("*")) if path.is_file()}
    again = json.loads(json.dumps(config.to_dict())) | {"dry_run": True}
    assert "phases" in pretrain(type(config).from_dict(again))
    assert {path: path.read_bytes() for path in sorted((tmp_path / "run").rglob("*")) if path.is_file()} == before


def test_more_replicas_that_are_slower_are_warned_of():
    assert _compare(2, 1900.0, 1000.0) == "One replica alone makes 1,000 tokens/s, 2 make 1.90 times as many."
    assert _compare(2, 900.0, 1000.0).startswith("Warning: 2 replicas make 900 tokens a second, fewer than the 1,000")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.515, "0.515 seconds"), (119, "119 seconds"), (600, "10 minutes"), (9000, "2.5 hours"), (864_000, "10 days")],
)
def test_durations_have_words(seconds, words):
    assert duration_in_words(seconds) == words
