"""What a client is told when a server does not answer as asked: classes for TensorFlow's canonical codes."""


class ServingError(Exception):
    """The server refused a request or failed at it, or could not be reached.

    Attributes:
        code: one of TensorFlow's canonical codes by name: `"INVALID_ARGUMENT"`, `"UNAVAILABLE"`, ….
        status: HTTP status of the answer; None over gRPC, or if there was no answer.
    """

    code = "UNKNOWN"

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).code
        self.status = status

    @property
    def worth_retrying(self) -> bool:
        """Whether the same request may be answered a moment later."""
        # Without that status, RESOURCE_EXHAUSTED says that a message is too large, and it will not be smaller then.
        return self.code == "UNAVAILABLE" or self.status == 429


class Cancelled(ServingError):
    """The request was given up on the way."""

    code = "CANCELLED"


class InvalidArgument(ServingError):
    """The server cannot read the request, or the model refuses its values."""

    code = "INVALID_ARGUMENT"


class DeadlineExceeded(ServingError):
    """There was no whole answer in time."""

    code = "DEADLINE_EXCEEDED"


class NotFound(ServingError):
    """The server has no such model or version."""

    code = "NOT_FOUND"


class PermissionDenied(ServingError):
    """What stands before the server does not let the client through."""

    code = "PERMISSION_DENIED"


class Unauthenticated(ServingError):
    """What stands before the server wants to know who asks, or its certificate cannot be trusted."""

    code = "UNAUTHENTICATED"


class ResourceExhausted(ServingError):
    """The server is too busy, or a message is too large."""

    code = "RESOURCE_EXHAUSTED"


class FailedPrecondition(ServingError):
    """The model cannot be asked so."""

    code = "FAILED_PRECONDITION"


class Unimplemented(ServingError):
    """The server does not know this way of asking."""

    code = "UNIMPLEMENTED"


class Internal(ServingError):
    """The server failed."""

    code = "INTERNAL"


class Unavailable(ServingError):
    """The server could not be reached, or said that it cannot answer now."""

    code = "UNAVAILABLE"


class DataLoss(ServingError):
    """The answer was cut off, or is not one of TensorFlow Serving's."""

    code = "DATA_LOSS"


_KINDS = {kind.code: kind for kind in ServingError.__subclasses__()}

_CODE_OF_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error_of_code(code: str, message: str, status: int | None = None) -> ServingError:
    """Returns the error for the name of a canonical code."""
    return _KINDS.get(code, ServingError)(message, code=code, status=status)


def error_of_status(status: int, message: str) -> ServingError:
    """Returns the error for the status of an HTTP answer."""
    return error_of_code(_CODE_OF_STATUS.get(status, "UNKNOWN"), message, status)
