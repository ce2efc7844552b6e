"""The worker of an app over HTTP, turned by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from betimes import App
from betimes.rhythm import Stopping
from betimes.runtime.http_line import HttpLine
from betimes.runtime.line import Line
from betimes.runtime.transport import HttpRenews
from betimes.runtime.worker import Parts, Worker, WorkerOptions
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker.heartbeat import Heartbeat
from conformance.hands import (
    LEASE,
    NO_PATIENCE,
    PLACES,
    ROUNDS,
    Tasks,
    half,
    losing,
    no_wait,
    until_quiet,
)
from conformance.roads import Bodies


class AppHand:
    """A worker of an app; the cranks are those of the runner, as on every road."""

    def __init__(
        self, *, parts: Parts, line: Line, group: Tasks, clock: ManualClock, bodies: Bodies
    ) -> None:
        self.frozen = self.silent = self._dead = False
        self._clock = clock
        self._bodies = bodies
        self.parts = parts
        self.runner = parts.wire(group)  # type: ignore[arg-type]  # it only begins tasks
        self._heartbeat = Heartbeat(
            renews=HttpRenews(parts.transport, line),
            pulse=parts.resources.pulse,
            clock=clock,
            every=LEASE / 3,
            ttl=LEASE,
            hear=self.runner.watch.hear,
        )

    @classmethod
    async def made(
        cls, app: App, line: Line, *, clock: ManualClock, group: Tasks, bodies: Bodies
    ) -> "AppHand":
        """A worker that is known to the service and has begun nothing."""
        worker = Worker(
            app=app,
            open_line=lambda: None,  # type: ignore[arg-type, return-value]  # beats are cranked
            clock=clock,
            roll=half,
            options=WorkerOptions(name="hand", concurrency=PLACES, grace=NO_PATIENCE),
            telemetry=Telemetry(clock=clock),
        )
        parts = await worker.enter(line, Stopping())
        return cls(parts=parts, line=line, group=group, clock=clock, bodies=bodies)

    async def work(self) -> None:
        idle = 0
        while idle < ROUNDS and not self._dead:
            leased = await self._claim()
            await self._quiet()
            written = await self.parts.transport.reports.flush()
            idle = 0 if leased or written else idle + 1

    async def take(self) -> None:
        while await self._claim():
            await self._quiet()

    async def _claim(self) -> int:
        slots = self.parts.resources.slots
        return await self.parts.transport.tick(wait=0.0) if slots.free else 0

    async def report(self) -> None:
        await self._quiet()
        await self.parts.transport.reports.flush()

    async def beat(self) -> None:
        if self.frozen or self._dead:
            return
        self.parts.resources.pulse.note()
        if not self.silent:
            await self._heartbeat.tick()
            await self.parts.courier.tick()
        await self.runner.watch.tick()
        await self._quiet()

    def ring(self) -> None:
        """What is due by the clock."""
        if not self.frozen and not self._dead:
            self.runner.executor.running.tick()

    async def go(self) -> None:
        await self.runner.drain(NO_PATIENCE)

    def kill(self) -> None:
        self._dead = True
        for running in self.runner.executor.running:
            running.task.cancel()
        self.parts.resources.close()
        self.parts.close()

    @contextmanager
    def reply_lost(self) -> Iterator[None]:
        with (
            losing(HttpLine, "report") as lost,
            patch.object(self._clock, "sleep", new=no_wait),
        ):
            yield
        assert lost, "nothing was reported"

    @property
    def idle(self) -> bool:
        resources = self.parts.resources
        return not len(resources.held) and not resources.busy

    async def _quiet(self) -> None:
        await until_quiet(self._is_busy)

    def _is_busy(self) -> bool:
        if self._dead:
            return False
        running = list(self.runner.executor.running)
        if self.parts.resources.busy > len(self._bodies.resting):
            return True
        return any(
            (one.context.run_id, one.context.fence) not in self._bodies.resting for one in running
        )
