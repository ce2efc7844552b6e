"""Attempts under way, and how they are stopped.

Stopping is cooperative: the context says so, and a coroutine is cancelled, at once when its time is
up and after a grace when somebody asked nicely; a process is told, and killed when it is cancelled.
What does not end within the grace is reported without waiting for it. A thread cannot be stopped:
its place stays taken until it ends.
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import Enum

from betimes.runtime import ending
from betimes.runtime.line import Grant
from betimes.runtime.saying import Saying
from betimes.sdk.context import Context
from betimes.sdk.task import AnyTask
from betimes.wire.workers import ReportOne

GRACE_SECONDS = 5.0
END = "end"
"""What a process is told when it should end."""


class Stop(Enum):
    """Why an attempt is stopped."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    RELEASE = "release"
    """The worker goes: the run is given back."""
    LOST = "lost"
    """The lease is gone: whatever comes of it is nobody's business."""


class Attempt:
    """One run in the hands of this worker."""

    def __init__(
        self,
        grant: Grant,
        task: AnyTask | None,
        context: Context,
        saying: Saying,
        *,
        monotonic: Callable[[], float],
        trusted_until: float,
    ) -> None:
        self.grant = grant
        self.task = task
        self.context = context
        self.saying = saying
        self.lingers = False
        """Whether a thread goes on with it although it was reported."""
        self.stop: Stop | None = None
        self.ended = False
        """Whether its end was decided; a second one is not reported."""
        self._monotonic = monotonic
        self.trusted_until = trusted_until
        self.handle: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.limit: timedelta | None = None
        self.say: Callable[[object], None] | None = None
        """How to talk to the process it runs in."""

    @property
    def lease(self) -> str:
        """What is held."""
        return self.grant.lease_id

    def is_held(self) -> bool:
        """Whether the lease can still be ours; asked right before the handler begins.

        Who was frozen finds that its time is over before anybody has told it.
        """
        return self.stop is not Stop.LOST and self._monotonic() < self.trusted_until

    def end_of_stop(self) -> ReportOne | None:
        """What a stopped attempt is reported as; None when it is not to be reported."""
        match self.stop:
            case Stop.TIMEOUT:
                return ending.timed_out(self.lease, (self.limit or timedelta()).total_seconds())
            case Stop.CANCEL:
                return ending.cancelled(self.lease)
            case Stop.RELEASE:
                return ending.released(self.lease, "the worker goes")
            case _:
                return None


class Attempts:
    """All attempts of a worker that the service has not been told the end of."""

    def __init__(
        self, *, loop: asyncio.AbstractEventLoop, give_up: Callable[[Attempt], None]
    ) -> None:
        self._loop = loop
        self._give_up = give_up
        self._by_lease: dict[str, Attempt] = {}
        self.empty = asyncio.Event()
        self.empty.set()

    def __len__(self) -> int:
        return len(self._by_lease)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(list(self._by_lease.values()))

    def get(self, lease: str) -> Attempt | None:
        """The attempt under a lease."""
        return self._by_lease.get(lease)

    def add(self, attempt: Attempt) -> None:
        """An attempt begins; its time limit begins to matter."""
        self._by_lease[attempt.lease] = attempt
        self.empty.clear()
        if attempt.limit is not None:
            self._later(attempt, attempt.limit.total_seconds(), self._time_out)

    def remove(self, attempt: Attempt) -> None:
        """The service knows its end, or does not want to."""
        self.silence(attempt)
        if self._by_lease.get(attempt.lease) is attempt:
            del self._by_lease[attempt.lease]
        if not self._by_lease:
            self.empty.set()

    def silence(self, attempt: Attempt) -> None:
        """It has ended: no alarm is needed."""
        if attempt.timer is not None:
            attempt.timer.cancel()
            attempt.timer = None

    def stop(self, attempt: Attempt, why: Stop) -> None:
        """Ask an attempt to end; a second cause changes nothing unless the lease is lost."""
        if attempt.ended or (attempt.stop is not None and why is not Stop.LOST):
            return
        first = attempt.stop is None
        attempt.stop = why
        attempt.saying.end_wanted = True
        if attempt.say is not None:
            attempt.say(END)
        if why is Stop.CANCEL:
            self._later(attempt, GRACE_SECONDS, self._interrupt)
        elif first or why is Stop.LOST:
            self._interrupt(attempt)

    def _time_out(self, attempt: Attempt) -> None:
        self.stop(attempt, Stop.TIMEOUT)

    def _interrupt(self, attempt: Attempt) -> None:
        if attempt.handle is not None and not attempt.handle.done():
            attempt.handle.cancel()
            self._later(attempt, GRACE_SECONDS, self._give_up)

    def _later(self, attempt: Attempt, seconds: float, act: Callable[[Attempt], None]) -> None:
        self.silence(attempt)
        attempt.timer = self._loop.call_later(seconds, act, attempt)
