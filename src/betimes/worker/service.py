"""The worker, put together: leases parcels, executes runs, reports outcomes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import Bug
from betimes.domain.ids import TAIL_BYTES, ParcelId, TenantId, WorkerId, random_ids, to_ms
from betimes.domain.leased import Source
from betimes.ops.contents import Contents
from betimes.ops.turns import Turns
from betimes.rhythm import Stopping
from betimes.store.admit import Offered
from betimes.store.database import Database
from betimes.store.ending import Ending
from betimes.store.finish import MARGIN, Finishing
from betimes.store.hints import NO_HINTS, Hinter
from betimes.store.parcels import Parcels
from betimes.store.rules import ReadingRules
from betimes.store.specs import Specs
from betimes.store.workers import WorkerCard, Workers
from betimes.telemetry import Telemetry
from betimes.worker.claim import Claims
from betimes.worker.execute import Keep
from betimes.worker.finish import Reporter
from betimes.worker.handlers import Handlers
from betimes.worker.held import HeldParcel
from betimes.worker.hints import Hint
from betimes.worker.holding import DatabaseHolds
from betimes.worker.lookout import CLAIM_RUNS_MAX, Lookout
from betimes.worker.plan import Fetch
from betimes.worker.plans import Plans
from betimes.worker.registry import Registry
from betimes.worker.runner import Resources, Runner, Size
from betimes.worker.signals import NO_SIGNALS, WorkerSignals

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


class Parts:
    """A worker on the database, wired: the transport whose queue is the database itself.

    Tests crank the parts by hand. The constructor is long because it is only wiring: each part
    names what it is given.
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
        open_database: OpenDatabase | None = None,
        announce: Callable[[Resources], Announces] | None = None,
        listen: Callable[[Hear], Listens | None] = lambda _: None,
    ) -> None:
        self._chance = chance
        self._hints = hints
        self._worker = worker
        self._open_database = open_database
        self._listen = listen
        self.resources = resources = Resources(size=_size_of(settings), clock=clock)
        self.time, self.pulse, self.held = resources.time, resources.pulse, resources.held
        self.slots = resources.slots
        self.registry = None if announce is None else announce(resources)
        self.parcels = Parcels(database, worker, handlers.needs(), tenant)
        self.holds = DatabaseHolds(self.parcels, clock)
        self.turns = Turns()
        self.plans = Plans(
            specs=Specs(database),
            planning=resources.planning(handlers, None if large is None else large.fetch),
        )
        self.reporter = self.reports = Reporter(
            finishing=Finishing(database, worker, margin),
            held=self.held,
            clock=clock,
            settings=settings,
            telemetry=telemetry,
            roll=chance.roll,
            new_parcel_id=self._new_parcel_id,
            queued_again=self._expect,
            left_to_others=self._tell_others,
            died=died,
            signals=signals,
        )
        self.runner = Runner(
            resources=resources,
            transport=self,
            telemetry=telemetry,
            group=group,
            keep=None if large is None else large.keep,
            signals=signals,
        )
        self.executor, self.watch = self.runner.executor, self.runner.watch
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
            nudge=resources.nudge,
            turns=self.turns,
            rules=ReadingRules(database),
        )

    def helpers(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """What runs beside the work until the worker ends."""
        helpers = [("worker.report", self.reporter.run(senders=SENDERS))]
        if self.registry is not None:
            helpers.append(("worker.registry", self.registry.run()))
        if (ear := self._listen(self.lookout.hear)) is not None:
            helpers.append(("worker.listen", ear.run()))
        return helpers

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[DatabaseHolds]:
        """What renews leases, with connections of its own."""
        if self._open_database is None:
            raise Bug("a worker with a heartbeat needs a database for it")
        async with self._open_database() as database:
            yield DatabaseHolds(Parcels(database, self._worker), self.resources.clock)

    async def lease_until(self, stopping: Stopping) -> None:
        """Claim parcels until asked to stop."""
        await self.lookout.run(stopping, loops=CLAIMS_AT_ONCE)
        if self.registry is not None:
            self.registry.draining = True

    async def leave(self) -> None:
        """Say goodbye."""
        if self.registry is not None:
            await self.registry.leave()

    def close(self) -> None:
        """End threads and processes that wait for work."""
        self.resources.close()

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
            runner = self._parts(group).runner
            await runner.run(group, stopping, patience=self._drain_timeout)

    def _registry(self, resources: Resources) -> Announces:
        if self._announce is not None:
            return self._announce(lambda: resources.busy)
        return Registry(
            workers=Workers(self._database),
            card=self._card,
            busy=lambda: resources.busy,
            time=resources.time,
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
            open_database=self._open_database,
            announce=self._registry,
            listen=self._listen,
        )


def _size_of(settings: WorkerSettings) -> Size:
    return Size(
        slots=settings.slots,
        threads=settings.threads,
        processes=settings.processes,
        enough=max(1, min(CLAIM_RUNS_MAX, settings.slots) // 4),
        lease_ttl=settings.lease_ttl,
        heartbeat_every=settings.heartbeat_every,
    )
