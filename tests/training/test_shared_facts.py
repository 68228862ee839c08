import json

from pretraining_runs import small_config

from keras_bert_impl.presets import get_preset
from keras_bert_impl.training.shared_facts import shared_facts

MODEL = get_preset("tiny", vocab_size=100)


def facts(**changes):
    return shared_facts(small_config("data", "run", **changes), MODEL, "digest")


def test_facts_survive_the_way_to_another_machine():
    assert json.loads(json.dumps(facts())) == facts()


def test_what_decides_the_learning_is_among_the_facts():
    assert facts(learning_rate=1e-3) != facts()
    assert facts(evaluate_every=5) != facts()
    found = facts()
    assert found["the data's digest"] == "digest"
    assert found["the model's vocab_size"] == 100
    assert {"the version of tensorflow", "phases", "seed", "replicas"} <= found.keys()


def test_where_things_lie_may_differ():
    here, there = small_config("data", "run"), small_config("/elsewhere/data", "/elsewhere/run")
    assert shared_facts(here, MODEL, "digest") == shared_facts(there, MODEL, "digest")
