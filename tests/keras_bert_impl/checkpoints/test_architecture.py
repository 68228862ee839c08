"""The tensors of every architecture, known without building it."""

import pytest
from harness import small_config

from keras_bert_impl.checkpoints.architecture import PARTS, part_of
from keras_bert_impl.checkpoints.checkpoint import architecture_of
from keras_bert_impl.checkpoints.places import places
from keras_bert_impl.models.architectures import ARCHITECTURES, model_class


@pytest.mark.parametrize("architecture", PARTS)
def test_stated_tensors_are_those_of_the_model(architecture):
    cls = ARCHITECTURES[architecture]
    options = {"labels": ["a", "b", "c"]} if "classifier" in PARTS[architecture] else {}
    built = {name: tuple(place.variable.shape) for name, place in places(cls(small_config(), **options)).items()}
    assert cls.tensor_shapes(small_config(), **options) == built
    assert {part_of(name) for name in built} == set(PARTS[architecture])


@pytest.mark.parametrize("architecture", PARTS)
def test_an_architecture_is_known_by_its_parts(architecture):
    cls = ARCHITECTURES[architecture]
    names = cls.tensor_shapes(small_config(), labels=["a", "b"])
    assert architecture_of(names) == architecture
    assert architecture_of(names, architecture) == architecture


def test_a_stated_architecture_holds_only_if_no_part_is_lost():
    names = ARCHITECTURES["BertForPreTraining"].tensor_shapes(small_config())
    assert architecture_of(names, "BertForMaskedLM") == "BertForPreTraining"
    headless = ARCHITECTURES["BertModel"].tensor_shapes(small_config(), pooler=False)
    assert architecture_of(headless, "BertForMaskedLM") == "BertForMaskedLM"
    assert architecture_of(headless, "SomethingElse") == "BertModel"


def test_a_pooler_that_a_task_makes_no_use_of_does_not_hide_the_task():
    for architecture in ("BertForQuestionAnswering", "BertForTokenClassification", "BertForMaskedLM"):
        names = [*ARCHITECTURES[architecture].tensor_shapes(small_config(), labels=["a", "b"]), "pooler.dense.bias"]
        assert architecture_of(names, architecture) == architecture
    assert architecture_of(["embeddings.x", "pooler.dense.bias", "qa_outputs.bias"]) == "BertForQuestionAnswering"


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ValueError, match=r"`architecture` must be one of BertModel, .*Received: architecture='Bart'"):
        model_class("Bart")
