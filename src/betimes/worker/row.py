"""Runs that end as soon as they begin, taken together: what makes the fast path fast."""

from datetime import datetime

from betimes.domain.clock import Clock
from betimes.domain.leased import Streak, WantedRun
from betimes.rhythm import DatabaseTime
from betimes.worker.held import HeldParcel
from betimes.worker.metrics import Metrics
from betimes.worker.slots import Slots
from betimes.worker.transport import Reports

STAMP_SECONDS = 0.001
"""Times are noted to the millisecond; what happens within the same one shares the note."""
TURN_SECONDS = 0.005
"""How long runs that never wait may keep the event loop to themselves."""


class Moment:
    """The time as it is noted, moving on when a millisecond has passed."""

    __slots__ = ("_clock", "_stamped_at", "_time", "_turn_at", "at", "now", "turn_is_over")

    def __init__(self, clock: Clock, time: DatabaseTime) -> None:
        self._clock = clock
        self._time = time
        self.begin_turn()

    def begin_turn(self) -> None:
        """The event loop has been round."""
        self._turn_at = self._stamped_at = self.at = self._clock.monotonic()
        self.now: datetime = self._time.now()
        self.turn_is_over = False

    def passes(self) -> None:
        """Look at the clock."""
        self.at = at = self._clock.monotonic()
        if at - self._stamped_at > STAMP_SECONDS:
            self._stamped_at = at
            self.now = self._time.now()
            self.turn_is_over = at - self._turn_at > TURN_SECONDS


class Row:
    """Gathers plain successes into streaks, one for each parcel, and hands these over."""

    __slots__ = ("_metrics", "_now", "_open", "_reporter", "_slots", "_started_at")

    def __init__(self, reporter: Reports, slots: Slots, metrics: Metrics) -> None:
        self._reporter = reporter
        self._slots = slots
        self._metrics = metrics
        self._started_at: datetime | None = None
        self._now: datetime | None = None
        self._open: dict[HeldParcel, tuple[Streak, list[datetime]]] = {}

    def add(self, run: WantedRun, parcel: HeldParcel, started_at: datetime, now: datetime) -> None:
        """Take one more. Times are compared by identity: a `Moment` gives the same one out."""
        if now is not self._now or started_at is not self._started_at:
            self.close()
            self._started_at, self._now = started_at, now
        found = self._open.get(parcel)
        if found is None or found[0].attempt != run.attempt + 1:
            found = self._begin(run, parcel, started_at, now)
        streak, dues = found
        streak.runs.append(run.id)
        dues.append(run.due_at)

    def close(self) -> None:
        """Hand over what was gathered."""
        for parcel, (streak, dues) in self._open.items():
            self._hand_over(parcel, streak, dues)
        self._open.clear()

    def _begin(
        self, run: WantedRun, parcel: HeldParcel, started_at: datetime, now: datetime
    ) -> tuple[Streak, list[datetime]]:
        before = self._open.get(parcel)
        if before is not None:
            self._hand_over(parcel, *before)
        home = parcel.leased
        streak = Streak(home.id, home.fence, run.attempt + 1, started_at, now, [])
        self._open[parcel] = streak, []
        return self._open[parcel]

    def _hand_over(self, parcel: HeldParcel, streak: Streak, dues: list[datetime]) -> None:
        self._metrics.succeeded(dues, streak.attempt, streak.started_at, streak.finished_at)
        self._reporter.succeeded(parcel, streak)
        self._slots.release(len(streak.runs))
