"""Keeps the screen to our own words: no log lines of TensorFlow, XLA, oneDNN, CUDA, absl or Beam, no warnings."""

import contextlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from types import ModuleType

from keras_bert_impl.errors import InputError


def silence_logs() -> None:
    """Sets what must stand before TensorFlow is imported, for this process and those it starts."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("GLOG_minloglevel", "3")
    os.environ["PYTHONWARNINGS"] = "ignore"
    warnings.simplefilter("ignore")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    logging.getLogger("absl").setLevel(logging.ERROR)
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)  # What goes wrong is raised as well.


def import_tensorflow(verbose: bool = False, *, onednn: bool = True) -> ModuleType:
    """Imports TensorFlow; its lines about devices are held back unless `verbose`.

    Args:
        verbose: whether they are shown.
        onednn: whether it has oneDNN's kernels, unless the environment says otherwise. They take a quarter less for a
            training step, but keep something for each of the last thousand shapes in each thread, tens of kilobytes.
    """
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise InputError(f"`KERAS_BACKEND` must be tensorflow for this command. Received: {backend!r}")
    # What TensorFlow does by itself depends on the processor.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", str(int(onednn)))
    with contextlib.nullcontext() if verbose else held_back_error_stream():
        import tensorflow as tf

        tf.config.list_physical_devices()
    if not verbose:
        tf.get_logger().setLevel("ERROR")
        tf.autograph.set_verbosity(0)
        # TensorFlow and Keras set filters of their own while they are imported.
        warnings.simplefilter("ignore")
    return tf


@contextlib.contextmanager
def held_back_error_stream() -> Iterator[None]:
    """Holds back what any library, C++ ones too, writes to the error stream; shows it if the block fails.

    Not for an `InputError`, whose sentence says all that there is to say.
    """
    sys.stderr.flush()
    stream = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except InputError:
            raise
        except BaseException:
            held.seek(0)
            os.write(stream, held.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stream, 2)
            os.close(stream)
