"""While the database is away, one question in a while is enough.

A process has many loops and every one of them would knock by itself. The first connection that
cannot be made closes the gate for a moment, with full jitter and longer each time: until then
whoever asks is told at once, without knocking. So a long outage costs few attempts, many processes
do not return in step, and nobody is later than `PAUSE_MAX` when the database is back.
"""

from collections.abc import Callable
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.rhythm import full_jitter

PAUSE, PAUSE_MAX = timedelta(milliseconds=50), timedelta(seconds=1)


class Gate:
    """Shared by the pools of one database."""

    def __init__(self, *, clock: Clock, roll: Callable[[], float]) -> None:
        self._clock = clock
        self._roll = roll
        self._failures = 0
        self._closed_until = float("-inf")

    def pass_through(self) -> None:
        """Go ahead.

        Raises:
            Unavailable: somebody has just tried in vain.

        """
        if self._clock.monotonic() < self._closed_until:
            raise Unavailable("the database is away; it was asked a moment ago")

    def close(self) -> None:
        """No connection could be made."""
        self._failures += 1
        pause = full_jitter(self._failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
        self._closed_until = self._clock.monotonic() + pause.total_seconds()

    def open(self) -> None:
        """Somebody got through."""
        self._failures = 0
        self._closed_until = float("-inf")
