"""The worker of an app, on whatever line, turned by hand."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from betimes import App
from betimes.domain.errors import Unavailable
from betimes.rhythm import Stopping
from betimes.runtime.line import Grant, Line
from betimes.runtime.worker import Worker, WorkerOptions
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.wire.workers import LeaseRuns, Reported, ReportOne
from conformance.hands import (
    NO_PATIENCE,
    PATIENCE_SECONDS,
    PLACES,
    ROUNDS,
    Tasks,
    half,
    no_wait,
    until_quiet,
)
from conformance.roads import Bodies
from worker_kit import settle_down


class Impatient:
    """A line whose long polls are over at once, and whose answers may get lost."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self.losing = 0

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._line, verb)

    async def lease(self, worker: str, wanted: LeaseRuns) -> list[Grant]:
        return await self._line.lease(worker, msgspec.structs.replace(wanted, wait=0.0))

    async def report(self, reports: Sequence[ReportOne]) -> list[Reported]:
        answer = await self._line.report(reports)
        if self.losing:
            self.losing -= 1
            raise Unavailable("the answer got lost")
        return answer


class Alarm:
    """Something to do at a time of the test's clock."""

    def __init__(self, at: float, act: Callable[..., None], given: tuple[Any, ...]) -> None:
        self.at, self.act, self.given = at, act, given
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ClockLoop:
    """As much of an event loop as sets alarms, by the clock of the test."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._alarms: list[Alarm] = []

    def call_later(self, seconds: float, act: Callable[..., None], *given: Any) -> Alarm:
        alarm = Alarm(self._clock.monotonic() + seconds, act, given)
        self._alarms.append(alarm)
        return alarm

    def tick(self) -> None:
        now = self._clock.monotonic()
        due = [one for one in self._alarms if one.at <= now and not one.cancelled]
        self._alarms = [one for one in self._alarms if one.at > now and not one.cancelled]
        for one in due:
            one.act(*one.given)


class AppHand:
    """A worker of an app, on whatever line."""

    def __init__(
        self, *, worker: Worker, line: Impatient, clock: ManualClock, bodies: Bodies
    ) -> None:
        self.frozen = self.silent = self._dead = False
        self._worker = worker
        self._line = line
        self._clock = clock
        self._bodies = bodies
        self._alarms = ClockLoop(clock)

    @classmethod
    async def made(
        cls, app: App, line: Line, *, clock: ManualClock, group: Tasks, bodies: Bodies
    ) -> "AppHand":
        """A worker that is known to the service and has begun nothing."""
        worker = Worker(
            app=app,
            open_line=lambda: None,  # type: ignore[arg-type, return-value]  # wired below
            clock=clock,
            roll=half,
            options=WorkerOptions(name="hand", concurrency=PLACES, grace=NO_PATIENCE),
            telemetry=Telemetry(clock=clock),
        )
        hand = cls(worker=worker, line=Impatient(line), clock=clock, bodies=bodies)
        worker._line = hand._line
        worker._stopping = Stopping()
        every = await worker._register()
        worker._wire(worker._line, group, every)  # type: ignore[arg-type]  # it only begins tasks
        worker._executor.attempts._loop = hand._alarms  # type: ignore[assignment]  # as above
        return hand

    async def work(self) -> None:
        idle = 0
        while idle < ROUNDS and not self._dead:
            leased = await self._worker.tick() if self._worker._places.free else 0
            await self._quiet()
            sent = await self._worker._reporter.tick()
            idle = 0 if leased or sent else idle + 1

    async def take(self) -> None:
        while self._worker._places.free and await self._worker.tick():
            await self._quiet()

    async def report(self) -> None:
        await self._quiet()
        await self._worker._reporter.tick()

    async def beat(self) -> None:
        if self.frozen or self._dead:
            return
        worker = self._worker
        worker._pulse.note()
        if not self.silent:
            await worker._pulse.tick(worker._line)
            await worker._courier.tick()
        await settle_down()
        worker.look()
        await self._quiet()

    def ring(self) -> None:
        """What is due by the clock."""
        if not self.frozen and not self._dead:
            self._alarms.tick()

    async def go(self) -> None:
        worker = self._worker
        worker._draining = True
        going = asyncio.get_running_loop().create_task(worker._drain())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not going.done():
                await settle_down()
                await worker._reporter.tick()
        await going

    def kill(self) -> None:
        self._dead = True
        for attempt in self._worker._executor.attempts:
            if attempt.handle is not None:
                attempt.handle.cancel()
        self._worker._executor.close()

    @contextmanager
    def reply_lost(self) -> Iterator[None]:
        self._line.losing = 1
        with patch.object(self._clock, "sleep", new=no_wait):
            yield
        assert not self._line.losing, "nothing was reported"

    @property
    def idle(self) -> bool:
        return not len(self._worker._executor.attempts) and not self._worker._places.busy

    async def _quiet(self) -> None:
        await until_quiet(self._is_busy)

    def _is_busy(self) -> bool:
        if self._dead:
            return False
        return any(
            not one.ended and (one.grant.run_id, one.grant.fence) not in self._bodies.resting
            for one in self._worker._executor.attempts
        )
