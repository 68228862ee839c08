"""The door to preparation with Apache Beam, which is opened here and only when it is asked for."""

import importlib
import logging
from collections.abc import Callable
from typing import Any

from keras_bert_impl.errors import InputError

from .configs import PrepareConfig


def prepare_with_beam(
    config: PrepareConfig, options: str, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Writes what `prepare` writes, to the last byte, by a pipeline of Apache Beam (extra `beam`); whole or not at all.

    Inputs, excluded files and the output may be local paths that this machine and every worker see, or paths of Beam's
    file systems such as `gs://bucket/file`. Workers need Beam and the package, but no TensorFlow, and nothing else of
    this machine.

    Args:
        config: the settings. `workers` is not used: runners have options for that.
        options: of the runner, as for a shell, such as `"--runner=DirectRunner --direct_num_workers=2"`.
        say: receives each line of what is told on the way.

    Returns:
        The manifest: every setting and count.

    Raises:
        InputError: if Beam is not installed, or an option, an input, the vocabulary or the output cannot be used.
    """
    _open_beam(options)
    from .beam.preparation import prepare_data

    return prepare_data(config, options, say)


def _open_beam(options: str) -> None:
    # On the way in it warns of Google's libraries, which most runners do without.
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        importlib.import_module("apache_beam")
    except ImportError as error:
        raise InputError(
            "`beam` needs Apache Beam: pip install 'keras-bert-impl[beam]', in an environment of its own where others "
            f"need newer versions of what Beam needs. Received: {options!r} ({error})"
        ) from None
    finally:
        logging.disable(before)
