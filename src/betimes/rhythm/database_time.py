"""What time the database thinks it is, without asking it every time.

Only the database clock decides what is due. Between two answers its time is carried on by the
monotonic clock of this machine, so a wall clock that jumps here changes nothing.
"""

from datetime import datetime, timedelta

from betimes.domain.clock import Clock


class DatabaseTime:
    """An estimate that is renewed with every answer that tells the time."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._told: datetime | None = None
        self._heard_at = 0.0

    @property
    def known(self) -> bool:
        """Whether the database has told us its time yet."""
        return self._told is not None or self._clock.stated() is not None

    def observe(self, told: datetime) -> None:
        """Take note of an answer at the moment of hearing it.

        It was made a little earlier, so the estimate is late by the way back and never early:
        nothing is done too soon because of it.
        """
        self._told, self._heard_at = told, self._clock.monotonic()

    def now(self) -> datetime:
        """The database's time, never ahead of it."""
        stated = self._clock.stated()
        if stated is not None:
            return stated
        if self._told is None:
            return self._clock.now()
        return self._told + timedelta(seconds=self._clock.monotonic() - self._heard_at)
