"""Chinese words, found by jieba; opened only when it is asked for."""

import functools
import importlib
import logging
import warnings
from typing import Any

from keras_bert_impl.extras import check_extra


def check_jieba() -> None:
    """Raises `InputError` if jieba is not installed; does not open it."""
    check_extra("`word_boundaries='jieba'`", "chinese", ["jieba"])


def chinese_words(text: str) -> list[str]:
    """Returns the words of a text, white space and punctuation among them; joined they are the text.

    The dictionary is opened at the first call of a process (a second and 70 MB) and has no user's words in it, so
    the result depends on the text and jieba's version alone.
    """
    return list(_cutter().cut(text))


@functools.cache
def _cutter() -> Any:
    check_jieba()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Old ways of writing and opening files, of which its users need not hear.
        jieba: Any = importlib.import_module("jieba")
    jieba.setLogLevel(logging.ERROR)
    cutter = jieba.Tokenizer()
    # What `initialize` does, but for its cache, a file under a well-known name in the common temporary directory:
    # it would be read by whoever comes next, whatever it holds by then.
    cutter.FREQ, cutter.total = cutter.gen_pfdict(cutter.get_dict_file())
    cutter.initialized = True
    return cutter
