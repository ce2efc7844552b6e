"""What a worker counts."""

from collections.abc import Sequence
from datetime import datetime

from betimes.domain.leased import WantedRun
from betimes.domain.outcome import Failed, Outcome, TimedOut, kind_of
from betimes.telemetry import Telemetry


class Metrics:
    """Lag, duration and failures of attempts; ends of runs are counted when they are written."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._lag = telemetry.histogram("betimes_start_lag_seconds")
        self._seconds = telemetry.histogram("betimes_run_seconds")
        self._failures = telemetry.counter("betimes_attempt_failures_total")
        self._retries = telemetry.counter("betimes_retries_total")

    def ended(self, run: WantedRun, outcome: Outcome, started_at: datetime, now: datetime) -> None:
        """Note one attempt."""
        self._lag.observe((started_at - run.due_at).total_seconds())
        self._seconds.observe((now - started_at).total_seconds())
        if run.attempt:
            self._retries.add()
        if isinstance(outcome, Failed | TimedOut):
            self._failures.add(1, **{"class": kind_of(outcome).name.lower()})

    def succeeded(
        self, dues: Sequence[datetime], attempt: int, started_at: datetime, now: datetime
    ) -> None:
        """Note attempts in a row that began and ended together; most were due together too."""
        first = 0
        for place, due_at in enumerate(dues):
            if due_at != dues[first]:
                lag = (started_at - dues[first]).total_seconds()
                self._lag.observe_times(lag, place - first)
                first = place
        lag = (started_at - dues[first]).total_seconds()
        self._lag.observe_times(lag, len(dues) - first)
        self._seconds.observe_times((now - started_at).total_seconds(), len(dues))
        if attempt > 1:
            self._retries.add(len(dues))
