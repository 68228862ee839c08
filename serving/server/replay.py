"""What a version is asked before it is served: its warm-up requests, and the examples of its description."""

from pathlib import Path

from keras_bert_impl.errors import InputError

from ..warm_up import FILE, read
from .models.example_requests import badly_described, example_requests, not_whole
from .models.loaded_version import LoadedVersion
from .models.servable import Servable
from .request_error import RequestError
from .rest.tensors import read_inputs


def load_and_replay(name: str, directory: Path) -> Servable:
    """Loads a version directory, and returns it when it has answered.

    Args:
        name: the model's.
        directory: where the version lies.

    Raises:
        LoadError: if it cannot be loaded, or does not answer.
    """
    servable = Servable(directory, name)
    try:
        replay(servable, directory)
    except BaseException:
        servable.close()
        raise
    return servable


def replay(servable: LoadedVersion, directory: Path) -> None:
    """Runs the warm-up requests, and the examples of signatures that have none.

    The first run of a graph is slow, since TensorFlow optimises it then.

    Args:
        servable: the version.
        directory: where it lies.

    Raises:
        LoadError: if it does not answer them, or they cannot be read.
    """
    warm = set()
    try:
        for request in read(directory):
            servable.run(request.signature, request.inputs, request.outputs or None)
            warm.add(request.signature)
    except (InputError, KeyError, RequestError) as error:
        raise not_whole(directory / FILE, "whose requests it does not answer") from error
    try:
        for name, example in example_requests(directory).items():
            if name not in warm:
                servable.run(name, read_inputs(example, servable.signatures[name].inputs)[0])
    except (KeyError, RequestError) as error:
        raise badly_described(directory) from error
