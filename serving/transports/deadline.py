"""The time by which a call must be over, whatever it still has to do."""

import time

from ..serving_error import DeadlineExceeded


class Deadline:
    """A point in time.

    Args:
        seconds: how far it is away.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Returns the seconds that are left, more than 0; raises `DeadlineExceeded` where none are."""
        remaining = self._end - time.monotonic()
        if remaining <= 0:
            raise self.exceeded()
        return remaining

    def exceeded(self) -> DeadlineExceeded:
        """Returns the error for a call that was not over by then."""
        return DeadlineExceeded(f"No whole answer within {self._seconds:g} seconds")
