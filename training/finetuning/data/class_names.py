"""Names of the classes that numbers stand for, as Hugging Face data sets keep them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from keras_bert_impl.errors import InputError

ClassNames = Sequence[str]


def names_in_parquet(metadata: Mapping[bytes, bytes] | None) -> dict[str, ClassNames]:
    """Returns the names by column that `datasets` has written into the schema of a Parquet file; none elsewhere."""
    try:
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {column: names for column, feature in features.items() if (names := _in_dict(feature)) is not None}
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}


def _in_dict(feature: Any) -> ClassNames | None:
    if isinstance(feature, list):  # A list of classes is written as a list with one feature, or as a `Sequence`.
        return _in_dict(feature[0]) if len(feature) == 1 else None
    if not isinstance(feature, dict):
        return None
    if feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        return list(map(str, names)) if isinstance(names, list) else None
    return _in_dict(feature.get("feature"))


def names_in_features(features: Any) -> dict[str, ClassNames]:
    """Returns the names by column of the `features` of a `datasets.Dataset`, known by their attributes alone."""
    found: dict[str, ClassNames] = {}
    if isinstance(features, Mapping):
        for column, feature in features.items():
            inner = feature[0] if isinstance(feature, list) and len(feature) == 1 else feature
            inner = inner if getattr(inner, "names", None) else getattr(inner, "feature", inner)
            if isinstance(names := getattr(inner, "names", None), list | tuple):
                found[column] = list(map(str, names))
    return found


def class_name(value: Any, names: ClassNames | None, argument: str, place: str) -> Any:
    """Returns the name that a number stands for, or the value where there are no names, or it is one itself.

    Raises:
        InputError: if a number has no name.
    """
    if names is None or isinstance(value, bool) or not isinstance(value, int):
        return value
    if value == -1:  # How data sets write that the class is not known.
        return None
    if not 0 <= value < len(names):
        raise InputError(
            f"`{argument}` must have numbers of its {len(names)} classes as labels. Received: {value} in {place}"
        )
    return names[value]
