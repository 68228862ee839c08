"""The refusal of a request, in the words and by the code that TensorFlow Serving has for it."""


class RequestError(Exception):
    """A request that cannot be answered.

    Attributes:
        code: one of TensorFlow's canonical codes by name: `"INVALID_ARGUMENT"`, `"NOT_FOUND"`, ….
    """

    def __init__(self, message: str, code: str = "INVALID_ARGUMENT") -> None:
        super().__init__(message)
        self.code = code
