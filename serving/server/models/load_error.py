"""A version that cannot be served."""

from keras_bert_impl.errors import InputError


class LoadError(InputError):
    """A SavedModel cannot be loaded, or does not answer its own example requests.

    Args:
        message: the sentence for the user of the server, which may name files.
        reason: the same for clients, which learn no paths.
        code: one of TensorFlow's canonical codes by name.
    """

    def __init__(self, message: str, reason: str, code: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code
