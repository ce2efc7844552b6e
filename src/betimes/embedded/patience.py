"""How long to bear silence."""

from collections.abc import Callable

from betimes.domain.clock import Clock


class Patience:
    """Runs out after some seconds without progress; progress is any change of a number.

    `words` is cheap and looked at every time. `work` is looked at only when patience is about to
    run out: a server may be busy without a word, such as in the checkpoint that ends a recovery.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        seconds: float,
        words: Callable[[], int],
        work: Callable[[], int] = lambda: 0,
    ) -> None:
        self._clock = clock
        self._seconds = seconds
        self._words, self._work = words, work
        self._seen = words(), work()
        self._since = clock.monotonic()

    def exhausted(self) -> bool:
        """Whether nothing has changed for too long."""
        silent = self._words() == self._seen[0]
        if silent and self._clock.monotonic() - self._since < self._seconds:
            return False
        seen = self._words(), self._work()
        if seen == self._seen:
            return True
        self._seen, self._since = seen, self._clock.monotonic()
        return False
