"""How long to bear silence."""

from collections.abc import Callable

from betimes.domain.clock import Clock


class Patience:
    """Runs out after some seconds without progress; progress is any change of a number."""

    def __init__(self, *, clock: Clock, seconds: float, progress: Callable[[], int]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._progress = progress
        self._seen = progress()
        self._since = clock.monotonic()

    def exhausted(self) -> bool:
        """Whether nothing has changed for too long."""
        if (now_seen := self._progress()) != self._seen:
            self._seen, self._since = now_seen, self._clock.monotonic()
        return self._clock.monotonic() - self._since >= self._seconds
