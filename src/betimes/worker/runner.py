"""The runner: slots, deadlines, threads, processes, heartbeat and drain, on whatever transport.

Where work comes from and where its ends go is the transport's (`transport`); everything that
happens to a run while this process holds it happens here, the same for the service's own handlers
and for users' tasks, on the database and over HTTP.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.executing.beside import run_beside
from betimes.rhythm import DatabaseTime, Stopping
from betimes.telemetry import Telemetry
from betimes.worker.drain import drain
from betimes.worker.execute import Executor, Keep
from betimes.worker.handlers import Handlers, Kind
from betimes.worker.heartbeat import Answer, Heartbeat, Pulse
from betimes.worker.held import HeldParcels
from betimes.worker.plan import Fetch, Planning, Way, on_the_loop
from betimes.worker.processes import Processes
from betimes.worker.signals import NO_SIGNALS, WorkerSignals
from betimes.worker.slots import Slots
from betimes.worker.threads import Threads
from betimes.worker.transport import Transport
from betimes.worker.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much at once, and for how long it is held."""

    slots: int
    threads: int
    processes: int
    enough: int
    """Free slots that are worth asking for work."""
    lease_ttl: timedelta
    heartbeat_every: timedelta


class Resources:
    """What a transport builds on: slots, time, and the parcels that are held."""

    def __init__(self, *, size: Size, clock: Clock) -> None:
        self.size = size
        self.clock = clock
        self.time = DatabaseTime(clock=clock)
        self.pulse = Pulse(clock)
        self.held = HeldParcels()
        self.nudge = asyncio.Event()
        self.slots = Slots(size.slots, enough=size.enough, nudge=self.nudge)
        self.threads = Threads(size.threads, freed=self.slots.end)
        self.processes = Processes(size.processes)

    @property
    def busy(self) -> int:
        """How many slots are taken."""
        return min(self.slots.total, self.slots.total - self.slots.free)

    def planning(self, handlers: Handlers, fetch: Fetch | None = None) -> Planning:
        """How definitions are executed here."""
        ways: dict[Kind, Way] = {
            Kind.ASYNC: on_the_loop,
            Kind.THREAD: self.threads,
            Kind.PROCESS: self.processes,
        }
        return Planning(
            handlers=handlers, ways=ways, fetch=fetch, needs=frozenset(handlers.needs())
        )

    def close(self) -> None:
        """End threads and processes that wait for work."""
        self.threads.close()
        self.processes.close()


class Runner:
    """Executes what a transport leases, keeps its leases alive and tells it the ends."""

    def __init__(
        self,
        *,
        resources: Resources,
        transport: Transport,
        telemetry: Telemetry,
        group: asyncio.TaskGroup,
        keep: Keep | None = None,
        signals: WorkerSignals = NO_SIGNALS,
    ) -> None:
        self._resources = resources
        self._transport = transport
        self._telemetry = telemetry
        self.executor = Executor(
            reporter=transport.reports,
            slots=resources.slots,
            clock=resources.clock,
            time=resources.time,
            telemetry=telemetry,
            group=group,
            signals=signals,
            keep=keep,
        )
        self.watch = Watch(
            holds=transport.holds,
            reports=transport.reports,
            held=resources.held,
            running=self.executor.running,
            pulse=resources.pulse,
            clock=resources.clock,
            time=resources.time,
            every=resources.size.heartbeat_every,
            ttl=resources.size.lease_ttl,
            telemetry=telemetry,
            signals=signals,
        )

    async def run(
        self, group: asyncio.TaskGroup, stopping: Stopping, *, patience: timedelta
    ) -> None:
        """Work until asked to stop; then finish or give back what is held."""
        helpers = [group.create_task(work, name=name) for name, work in self._helpers()]
        try:
            await self._transport.lease_until(stopping)
            await self.drain(patience)
            await self._transport.leave()
        finally:
            for helper in helpers:
                helper.cancel()
            self._resources.close()

    async def drain(self, patience: timedelta) -> int:
        """Finish what can be finished in time, give back the rest; how many parcels that were."""
        return await drain(
            holds=self._transport.holds,
            held=self._resources.held,
            running=self.executor.running,
            reporter=self._transport.reports,
            clock=self._resources.clock,
            telemetry=self._telemetry,
            patience=patience,
        )

    def _helpers(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        return [
            *self._transport.helpers(),
            ("worker.deadlines", self.executor.running.run()),
            ("worker.watch", self.watch.run()),
            ("worker.heartbeat", self._beat_beside()),
        ]

    async def _beat_beside(self) -> None:
        main = asyncio.get_running_loop()
        every = self._resources.size.heartbeat_every.total_seconds()

        def hear(answer: Answer) -> None:
            main.call_soon_threadsafe(self.watch.hear, answer)

        async def live() -> None:
            while True:
                try:
                    await self._beat(hear)
                except Unavailable as fault:
                    hear(Answer(self._resources.clock.monotonic(), fault=fault))
                    await self._resources.clock.sleep(every)

        await run_beside(live, name="betimes-heartbeat")

    async def _beat(self, hear: Callable[[Answer], None]) -> None:
        size = self._resources.size
        async with self._transport.beating() as renews:
            await Heartbeat(
                renews=renews,
                pulse=self._resources.pulse,
                clock=self._resources.clock,
                every=size.heartbeat_every,
                ttl=size.lease_ttl,
                hear=hear,
            ).run()
