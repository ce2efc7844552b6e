"""The worker, put together: leases parcels, executes runs, reports outcomes."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Unavailable
from betimes.domain.ids import TAIL_BYTES, ParcelId, TenantId, WorkerId, random_ids, to_ms
from betimes.executing.beside import run_beside
from betimes.ops.contents import Contents
from betimes.ops.turns import Turns
from betimes.rhythm import DatabaseTime, Stopping
from betimes.store.admit import Offered
from betimes.store.database import Database
from betimes.store.ending import Ending
from betimes.store.finish import MARGIN, Finishing
from betimes.store.hints import NO_HINTS, Hinter
from betimes.store.parcels import Parcels, Source
from betimes.store.rules import ReadingRules
from betimes.store.specs import Specs
from betimes.store.workers import WorkerCard, Workers
from betimes.telemetry import Telemetry
from betimes.worker.claim import Claims
from betimes.worker.drain import drain
from betimes.worker.execute import Executor, Keep
from betimes.worker.finish import Reporter
from betimes.worker.handlers import Handlers, Kind
from betimes.worker.heartbeat import Answer, Heartbeat, Pulse
from betimes.worker.held import HeldParcel, HeldParcels
from betimes.worker.hints import Hint
from betimes.worker.lookout import CLAIM_RUNS_MAX, Lookout
from betimes.worker.plans import Fetch, Plans, on_the_loop
from betimes.worker.processes import Processes
from betimes.worker.registry import Registry
from betimes.worker.signals import NO_SIGNALS, WorkerSignals
from betimes.worker.slots import Slots
from betimes.worker.threads import Threads
from betimes.worker.watch import Watch

CLAIMS_AT_ONCE = 2
REMEMBERED_AHEAD = timedelta(minutes=1)
"""Retries due sooner are remembered; polls find the later ones."""
SENDERS = 2
"""As many boxes on their way as there are connections for them."""

OpenDatabase = Callable[[], AbstractAsyncContextManager[Database]]
Hear = Callable[[str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Dice and entropy, owned by `app`."""

    roll: Callable[[], float]
    entropy: Callable[[int], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Large:
    """Payloads and results by reference, kept by somebody else; and keys for the sealed ones."""

    fetch: Fetch
    keep: Keep
    contents: Contents | None = None


class Parts:
    """Everything a worker consists of, wired; tests crank the parts by hand.

    The constructor is long because it is only wiring: each part names what it is given.
    """

    def __init__(
        self,
        *,
        worker: WorkerId,
        database: Database,
        handlers: Handlers,
        clock: Clock,
        chance: Chance,
        settings: WorkerSettings,
        telemetry: Telemetry,
        group: asyncio.TaskGroup,
        margin: timedelta = MARGIN,
        hints: Hinter = NO_HINTS,
        signals: WorkerSignals = NO_SIGNALS,
        large: Large | None = None,
        tenant: TenantId | None = None,
        died: Callable[[Ending], None] = lambda _: None,
    ) -> None:
        self._chance = chance
        self._hints = hints
        self.time = DatabaseTime(clock=clock)
        self.pulse = Pulse(clock)
        self.held = HeldParcels()
        self.parcels = Parcels(database, worker, handlers.needs(), tenant)
        self.turns = Turns()
        nudge = asyncio.Event()
        enough = max(1, min(CLAIM_RUNS_MAX, settings.slots) // 4)
        self.slots = Slots(settings.slots, enough=enough, nudge=nudge)
        self.threads = Threads(settings.threads, freed=self.slots.end)
        self.processes = Processes(settings.processes)
        self.plans = Plans(
            specs=Specs(database),
            handlers=handlers,
            ways={Kind.ASYNC: on_the_loop, Kind.THREAD: self.threads, Kind.PROCESS: self.processes},
            fetch=None if large is None else large.fetch,
        )
        self.reporter = Reporter(
            finishing=Finishing(database, worker, margin),
            held=self.held,
            clock=clock,
            settings=settings,
            telemetry=telemetry,
            roll=chance.roll,
            queued_again=self._expect,
            left_to_others=self._tell_others,
            died=died,
            signals=signals,
        )
        self.executor = Executor(
            reporter=self.reporter,
            slots=self.slots,
            clock=clock,
            time=self.time,
            telemetry=telemetry,
            group=group,
            roll=chance.roll,
            new_parcel_id=self._new_parcel_id,
            signals=signals,
            keep=None if large is None else large.keep,
        )
        self.claims = Claims(
            parcels=self.parcels,
            plans=self.plans,
            held=self.held,
            slots=self.slots,
            executor=self.executor,
            reporter=self.reporter,
            clock=clock,
            time=self.time,
            settings=settings,
            telemetry=telemetry,
            turns=self.turns,
            offered=self._expect_offered,
            signals=signals,
            contents=None if large is None else large.contents,
        )
        self.lookout = Lookout(
            parcels=self.parcels,
            claims=self.claims,
            held=self.held,
            slots=self.slots,
            reporter=self.reporter,
            clock=clock,
            time=self.time,
            settings=settings,
            telemetry=telemetry,
            roll=chance.roll,
            nudge=nudge,
            turns=self.turns,
            rules=ReadingRules(database),
        )
        self.watch = Watch(
            parcels=self.parcels,
            held=self.held,
            running=self.executor.running,
            pulse=self.pulse,
            clock=clock,
            time=self.time,
            settings=settings,
            telemetry=telemetry,
            signals=signals,
        )

    def close(self) -> None:
        """End threads and processes that wait for work."""
        self.threads.close()
        self.processes.close()

    def _expect(self, source: Source, visible_at: datetime) -> None:
        """What we queue again ourselves needs no hint; others find it by their polls."""
        if visible_at - self.time.now() < REMEMBERED_AHEAD:
            self.lookout.expect(Hint(source, to_ms(visible_at)))

    def _tell_others(self, source: Source, visible_at: datetime) -> None:
        """What we cannot do is for somebody else, who should not have to find it by a poll."""
        self._hints.hint(source.shard, source.queue, source.tenant, visible_at, source.fair)

    def _expect_offered(self, one: Offered) -> None:
        self._expect(Source(one.shard, one.queue, one.tenant, one.fair), one.visible_at)

    def _new_parcel_id(self, parcel: HeldParcel) -> ParcelId:
        entropy = self._chance.entropy(TAIL_BYTES)
        (identifier,) = random_ids(to_ms(self.time.now()), parcel.leased.shard, entropy)
        return ParcelId(identifier)


class Listens(Protocol):
    """Something that tells hints until it is cancelled."""

    async def run(self) -> None:
        """Listen."""
        ...


class Announces(Protocol):
    """Tells everybody that a worker is alive."""

    draining: bool

    async def run(self) -> None:
        """Tell until cancelled."""
        ...

    async def leave(self) -> None:
        """Say goodbye."""
        ...


class Worker:
    """A role: runs until stopping is requested, then drains.

    `open_database` makes a database for the heartbeat, on the event loop of the heartbeat's thread.
    `listen` makes what tells hints; without one there are only polls. `hints` tells others of what
    this worker cannot do. `tenant` is whose work it does, if not everybody's; `announce` makes what
    tells that it is alive, given how many places are taken; `died` hears of runs that are dead.
    """

    def __init__(
        self,
        *,
        card: WorkerCard,
        database: Database,
        open_database: OpenDatabase,
        handlers: Handlers,
        clock: Clock,
        chance: Chance,
        settings: WorkerSettings,
        drain_timeout: timedelta,
        telemetry: Telemetry,
        margin: timedelta = MARGIN,
        listen: Callable[[Hear], Listens | None] = lambda _: None,
        hints: Hinter = NO_HINTS,
        signals: WorkerSignals = NO_SIGNALS,
        large: Large | None = None,
        tenant: TenantId | None = None,
        announce: Callable[[Callable[[], int]], Announces] | None = None,
        died: Callable[[Ending], None] = lambda _: None,
    ) -> None:
        self._tenant = tenant
        self._announce = announce
        self._died = died
        self._worker = card.id
        self._card = card
        self._database = database
        self._open_database = open_database
        self._handlers = handlers
        self._clock = clock
        self._chance = chance
        self._settings = settings
        self._drain_timeout = drain_timeout
        self._telemetry = telemetry
        self._margin = margin
        self._listen = listen
        self._hints = hints
        self._large = large
        self._signals = signals

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop; then finish or give back what is held."""
        async with asyncio.TaskGroup() as group:
            parts = self._parts(group)
            registry = self._registry(parts)
            helpers = [
                group.create_task(work, name=name) for name, work in self._helpers(parts, registry)
            ]
            try:
                await parts.lookout.run(stopping, loops=CLAIMS_AT_ONCE)
                registry.draining = True
                await drain(
                    parcels=parts.parcels,
                    held=parts.held,
                    running=parts.executor.running,
                    reporter=parts.reporter,
                    clock=self._clock,
                    telemetry=self._telemetry,
                    patience=self._drain_timeout,
                )
                await registry.leave()
            finally:
                for helper in helpers:
                    helper.cancel()
                parts.close()

    def _registry(self, parts: Parts) -> Announces:
        def busy() -> int:
            return min(parts.slots.total, parts.slots.total - parts.slots.free)

        if self._announce is not None:
            return self._announce(busy)
        return Registry(
            workers=Workers(self._database),
            card=self._card,
            busy=busy,
            time=parts.time,
            clock=self._clock,
            telemetry=self._telemetry,
            every=self._settings.heartbeat_every,
        )

    def _parts(self, group: asyncio.TaskGroup) -> Parts:
        return Parts(
            worker=self._worker,
            database=self._database,
            handlers=self._handlers,
            clock=self._clock,
            chance=self._chance,
            settings=self._settings,
            telemetry=self._telemetry,
            group=group,
            margin=self._margin,
            hints=self._hints,
            signals=self._signals,
            large=self._large,
            tenant=self._tenant,
            died=self._died,
        )

    def _helpers(
        self, parts: Parts, registry: Announces
    ) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        helpers = [
            ("worker.registry", registry.run()),
            ("worker.report", parts.reporter.run(senders=SENDERS)),
            ("worker.deadlines", parts.executor.running.run()),
            ("worker.watch", parts.watch.run()),
            ("worker.heartbeat", self._beat_beside(parts)),
        ]
        if (ear := self._listen(parts.lookout.hear)) is not None:
            helpers.append(("worker.listen", ear.run()))
        return helpers

    async def _beat_beside(self, parts: Parts) -> None:
        main = asyncio.get_running_loop()

        def hear(answer: Answer) -> None:
            main.call_soon_threadsafe(parts.watch.hear, answer)

        async def live() -> None:
            while True:
                try:
                    await self._beat(parts, hear)
                except Unavailable as fault:
                    hear(Answer(self._clock.monotonic(), [], fault=fault))
                    await self._clock.sleep(self._settings.heartbeat_every.total_seconds())

        await run_beside(live, name="betimes-heartbeat")

    async def _beat(self, parts: Parts, hear: Callable[[Answer], None]) -> None:
        async with self._open_database() as database:
            await Heartbeat(
                parcels=Parcels(database, self._worker),
                pulse=parts.pulse,
                clock=self._clock,
                every=self._settings.heartbeat_every,
                ttl=self._settings.lease_ttl,
                hear=hear,
            ).run()
