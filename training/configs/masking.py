"""Settings of what is masked together, the same in training, evaluation and static records."""

from typing import Any

from keras_bert_impl.errors import InputError

from .settings import check_range, check_word, setting

# What is masked together, the same in training and evaluation.
_MASKING: dict[str, tuple[Any, str]] = {
    "masking": ("token", "what is masked together: a 'token', a 'whole-word', or an 'n-gram' of words"),
    "max_ngram": (3, "most words of an n-gram; n of them are drawn with a probability in proportion to 1/n"),
}


def masking_field(name: str) -> Any:
    """Returns the field of a setting."""
    default, text = _MASKING[name]
    return setting(default, help=text)


MASKING_KINDS = ("token", "whole-word", "n-gram")


def check_masking(config: Any) -> None:
    """Checks the settings of masks of a class that has them all decided."""
    check_word(config, "masking", MASKING_KINDS)
    check_range(config, "max_ngram", 1, 10)
    if config.max_ngram != _MASKING["max_ngram"][0]:
        _check_max_ngram(config, config.masking)


def check_given_masks(config: Any, masking: str | None) -> None:
    """Checks settings of masks that may be left open; `masking` is what `max_ngram` has to go with."""
    if config.masked_share is not None:
        check_range(config, "masked_share", 0, 1, low_open=True)
    if config.masking is not None:
        check_word(config, "masking", MASKING_KINDS)
    if config.max_ngram is not None:
        check_range(config, "max_ngram", 1, 10)
        _check_max_ngram(config, masking)


def _check_max_ngram(config: Any, masking: str | None) -> None:
    if masking != "n-gram":
        raise InputError(
            f"`max_ngram` must go with `masking` n-gram. Received: max_ngram={config.max_ngram}, masking={masking!r}"
        )
