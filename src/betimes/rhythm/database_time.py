"""What time the database thinks it is, without asking it every time.

Only the database clock decides what is due. Between two answers its time is carried on by the
monotonic clock of this machine, so a wall clock that jumps here changes nothing.
"""

from datetime import UTC, datetime, timedelta

from betimes.domain.clock import Clock

DRIFT = 2e-4
"""How much faster than the database's our clock may be; more than clocks of machines are."""
UNKNOWN = datetime.min.replace(tzinfo=UTC)


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

    def observe(
        self, told: datetime, *, asked_at: float | None = None, heard_at: float | None = None
    ) -> None:
        """Take note of an answer, by default at the moment of hearing it.

        It was made a little earlier, so the estimate is late by the way back and never early:
        nothing is done too soon because of it. Of answers whose asking is known, the one with the
        shortest way back counts: one that lay around while we were slow or frozen would make every
        stamp as late as it was. An estimate that is ahead of all the answer allows is dropped: the
        clock there was set back.
        """
        heard = self._clock.monotonic() if heard_at is None else heard_at
        if asked_at is not None and self._told is not None:
            known = self._at(heard) - timedelta(seconds=DRIFT * (heard - self._heard_at))
            if told < known <= told + timedelta(seconds=heard - asked_at):
                return
        self._told, self._heard_at = told, heard

    def now(self) -> datetime:
        """The database's time, never ahead of it."""
        stated = self._clock.stated()
        if stated is not None:
            return stated
        if self._told is None:
            return self._clock.now()
        return self._at(self._clock.monotonic())

    def _at(self, moment: float) -> datetime:
        return (self._told or UNKNOWN) + timedelta(seconds=moment - self._heard_at)
