"""What a version is asked before it is served: its warm-up requests, and the examples of its description."""

from pathlib import Path

from keras_bert_impl.errors import InputError

from ..warm_up import FILE, read
from .examples import badly_described, example_requests, not_whole
from .loaded_version import LoadedVersion
from .request_error import RequestError
from .rest_protocol import read_inputs


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
