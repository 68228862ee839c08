"""What is not installed of the packages that an extra brings."""

import importlib.util
from collections.abc import Iterable

from keras_bert_impl.errors import InputError


def missing_packages(packages: Iterable[str]) -> list[str]:
    """Returns those of the packages that are not installed; imports none of them."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


def check_extra(what: str, extra: str, packages: Iterable[str]) -> None:
    """Checks that what needs an extra has it.

    Args:
        what: begins the sentence: what needs it.
        extra: name of the extra, as `setup.py` has it.
        packages: names under which the extra's packages are imported.

    Raises:
        InputError: if one of the packages is not installed.
    """
    if missing := missing_packages(packages):
        install = f"pip install 'keras-bert-impl[{extra}]'"
        raise InputError(f"{what} needs the extra `{extra}`: {install}. Missing: {' and '.join(missing)}")
