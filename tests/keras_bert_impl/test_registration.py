"""Every class that a saved model may name is found by its name, and no two share one."""

import importlib
import inspect
import pkgutil

import keras

import keras_bert_impl

ROOMS = ("layers", "models", "losses", "metrics", "schedules", "optimizers")


def serialisable_classes():
    """Every class of the library that Keras would write into a file."""
    found = set()
    for room in ROOMS:
        package = importlib.import_module(f"keras_bert_impl.{room}")
        names = [package.__name__]
        names += [
            f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(getattr(package, "__path__", []))
        ]
        for name in names:
            for _, value in inspect.getmembers(importlib.import_module(name), inspect.isclass):
                if value.__module__.startswith("keras_bert_impl") and hasattr(value, "get_config"):
                    found.add(value)
    # What the models have in common is no model by itself, and never named in a file.
    abstract = {
        keras_bert_impl.models.pretrained_model.PretrainedModel,
        keras_bert_impl.models.labelled_model.LabelledModel,
        keras_bert_impl.optimizers.bert_optimizer.BertOptimizer,
    }
    return found - abstract


def test_every_class_is_registered_under_its_own_name():
    for cls in serialisable_classes():
        name = f"keras_bert_impl>{cls.__name__}"
        assert keras.saving.get_registered_name(cls) == name
        assert keras.saving.get_registered_object(name) is cls


def test_names_are_unique():
    names = [cls.__name__ for cls in serialisable_classes()]
    assert len(names) > 10
    assert len(set(names)) == len(names)
