"""Attempts that wait for something, and how they are stopped.

A handler that returns at once never comes here. The others have a task of their own and can be
stopped for one of four causes. Stopping is cooperative: the context says so, and a coroutine is
cancelled, at once when its time is up and after a grace when somebody asked nicely. What does not
end within the grace is reported without waiting for it; its place stays taken until it ends.
"""

import asyncio
import heapq
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import Enum
from itertools import count
from typing import Any, Protocol

from betimes.domain.clock import Clock
from betimes.domain.errors import Bug
from betimes.domain.ids import RunId
from betimes.domain.leased import WantedRun
from betimes.domain.outcome import Cancelled, Outcome, Released, TimedOut
from betimes.rhythm import first_of
from betimes.worker.context import Context
from betimes.worker.held import HeldParcel
from betimes.worker.plan import Plan

GRACE = timedelta(seconds=5)
GIVEN_BACK = Released("its worker goes")
"""What comes of an attempt that was stopped because its worker goes; no handler returns it."""
NO_LIMIT = timedelta.max
SILENT_MAX = 1_000


class Stop(Enum):
    """Why an attempt is stopped."""

    TIMEOUT = "timeout"
    CANCEL = "cancel"
    RELEASE = "release"
    """The worker drains: the run goes back into its queue."""
    LOST = "lost"
    """The lease is gone: whatever comes of it is nobody's business."""


Act = Callable[["Running"], None]


class Alarm:
    """Something to do with an attempt at a time."""

    __slots__ = ("act", "at", "order", "running")

    def __init__(self, at: float, order: int, act: Act, running: "Running") -> None:
        self.at = at
        self.order = order
        self.act = act
        self.running: Running | None = running
        """None when it is no longer needed; it stays in the heap until its time or a clean-up."""

    def __lt__(self, other: "Alarm") -> bool:
        return (self.at, self.order) < (other.at, other.order)


class Stoppable(Protocol):
    """What carries an attempt: an asyncio task, or a call in a thread."""

    def done(self) -> bool:
        """Whether it has ended."""
        ...

    def cancel(self) -> Any:
        """End it, or stop waiting for it."""
        ...


class Running:
    """One attempt that is under way."""

    __slots__ = ("alarm", "carrier", "context", "parcel", "plan", "run", "settled", "stop")

    def __init__(
        self,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        context: Context,
        carrier: Stoppable | None = None,
    ) -> None:
        """Without anything else that carries it, it belongs to the current asyncio task."""
        self.run = run
        self.parcel = parcel
        self.plan = plan
        self.context = context
        self.carrier: Stoppable = current_task() if carrier is None else carrier
        self.stop: Stop | None = None
        self.settled = False
        self.alarm: Alarm | None = None

    @property
    def task(self) -> "asyncio.Task[Any]":
        """The asyncio task of an attempt that waits on the event loop."""
        if not isinstance(self.carrier, asyncio.Task):
            raise Bug("an attempt in a thread has no asyncio task")
        return self.carrier

    def outcome_of_stop(self) -> Outcome | None:
        """What a stopped attempt is reported as; None when it is not to be reported."""
        if self.stop is Stop.TIMEOUT:
            return TimedOut(limit=self.plan.spec.timeout or NO_LIMIT)
        if self.stop is Stop.RELEASE:
            return GIVEN_BACK
        return Cancelled() if self.stop is Stop.CANCEL else None


def current_task() -> "asyncio.Task[Any]":
    """The asyncio task that an attempt belongs to."""
    task = asyncio.current_task()
    if task is None:
        raise Bug("a handler that waits needs a task of its own")
    return task


class Runnings:
    """All attempts under way, with the times at which something has to happen to them."""

    def __init__(self, *, clock: Clock, give_up: Act) -> None:
        self._clock = clock
        self._give_up = give_up
        self._by_run: dict[RunId, Running] = {}
        self._alarms: list[Alarm] = []
        self._silent = 0
        self._order = count()
        self._sooner = asyncio.Event()
        self.closing = False
        """Whether nothing is to begin any more: what is left is given back."""
        self.concluding: set[asyncio.Task[None]] = set()
        """What is left to do for attempts in threads before their ends are reported."""

    def __len__(self) -> int:
        return len(self._by_run)

    def __iter__(self) -> Iterator[Running]:
        return iter(list(self._by_run.values()))

    def get(self, run: RunId) -> Running | None:
        """The attempt of a run, if it is under way."""
        return self._by_run.get(run)

    def add(self, running: Running) -> None:
        """An attempt waits for something; its time limit begins to matter."""
        self._by_run[running.run.id] = running
        limit = running.plan.spec.timeout
        if limit is not None:
            self._set_alarm(limit, self._time_out, running)

    def remove(self, running: Running) -> None:
        """An attempt is over."""
        self._silence(running)
        if self._by_run.get(running.run.id) is running:
            del self._by_run[running.run.id]

    def stop(self, running: Running, why: Stop) -> None:
        """Ask an attempt to end; a second cause changes nothing unless the lease is lost."""
        if running.stop is not None and why is not Stop.LOST:
            return
        first = running.stop is None
        running.stop = why
        running.context.cancel()
        # A request has nobody inside who could hear; a handler gets time to end by itself.
        if why is Stop.CANCEL and not running.plan.spec.target:
            self._set_alarm(GRACE, self._interrupt, running)
        elif first:
            self._interrupt(running)

    async def run(self) -> None:
        """Keep the time until cancelled."""
        while True:
            self.tick()
            self._sooner.clear()
            if self._alarms:
                pause = max(0.0, self._alarms[0].at - self._clock.monotonic())
                await first_of(self._sooner.wait(), self._clock.sleep(pause))
            else:
                await self._sooner.wait()

    def tick(self) -> int:
        """Do what is due; how many alarms went off. Tests call this."""
        gone_off = 0
        now = self._clock.monotonic()
        while self._alarms and self._alarms[0].at <= now:
            alarm = heapq.heappop(self._alarms)
            if alarm.running is None:
                self._silent -= 1
                continue
            gone_off += 1
            alarm.running.alarm = None
            alarm.act(alarm.running)
        return gone_off

    def _time_out(self, running: Running) -> None:
        self.stop(running, Stop.TIMEOUT)

    def _interrupt(self, running: Running) -> None:
        if not running.carrier.done():
            running.carrier.cancel()
            self._set_alarm(GRACE, self._give_up, running)

    def _set_alarm(self, after: timedelta, act: Act, running: Running) -> None:
        self._silence(running)
        at = self._clock.monotonic() + after.total_seconds()
        running.alarm = Alarm(at, next(self._order), act, running)
        heapq.heappush(self._alarms, running.alarm)
        if self._alarms[0] is running.alarm:
            self._sooner.set()

    def _silence(self, running: Running) -> None:
        if running.alarm is None:
            return
        running.alarm.running = None
        running.alarm = None
        self._silent += 1
        if self._silent > SILENT_MAX and self._silent * 2 > len(self._alarms):
            self._alarms = [alarm for alarm in self._alarms if alarm.running is not None]
            heapq.heapify(self._alarms)
            self._silent = 0
