"""The worker of a user's app on the database: the engine of the service with tasks as handlers.

What it leases, how it keeps and loses leases, retries, limits and poison are decided by `worker/`,
as for the service's own work. Here is only what an app adds: its tasks, its name in the list of
workers, whose work it does, and what is called when a run is dead.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from betimes.api.routes.workers import WORKER
from betimes.app.direct import DirectNotes
from betimes.config.settings import WorkerSettings
from betimes.domain.clock import Clock
from betimes.domain.errors import NotFound, Unavailable
from betimes.domain.ids import TenantId, WorkerId, to_text, to_us
from betimes.domain.leased import HeldLease
from betimes.executing.processes import Processes
from betimes.ops import workers
from betimes.ops.blobs import STANDARD, keep_blob, new_blob, read_reference
from betimes.ops.contents import Contents
from betimes.ops.desk import Desk
from betimes.ops.leases import read_checkpoint
from betimes.ops.schemas import declared
from betimes.ops.workers import RemoteWorker
from betimes.rhythm import Stopping, attend, beat, first_of, full_jitter
from betimes.runtime.courier import Courier
from betimes.runtime.dead import DeadRun, tell_dead
from betimes.runtime.task_handlers import Service, handlers_of
from betimes.runtime.worker import WorkerOptions
from betimes.sdk.application import App
from betimes.sdk.options import seconds_of
from betimes.store.ending import Ending
from betimes.store.hints import Hints
from betimes.store.schemas import Declared
from betimes.store.workers import WorkerCard
from betimes.telemetry import Outage, Telemetry
from betimes.worker import Chance, Handlers, Worker
from betimes.worker.context import Context
from betimes.worker.service import Hear, Large, Listens, OpenDatabase

BEATS_PER_LEASE = 3
THREADS_MAX = 1_000
PAUSE, PAUSE_MAX = timedelta(milliseconds=100), timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a worker of an app stands on."""

    desk: Desk
    tenant: TenantId
    chance: Chance
    open_database: OpenDatabase
    """Makes a database for the heartbeat."""
    listen: Callable[[Hear], Listens | None]
    notes: DirectNotes
    """How what tasks say is told."""
    settings: WorkerSettings
    ttl: timedelta
    result_retention: str = STANDARD


class TaskWorker:
    """Executes runs of an app's tasks until asked to stop."""

    def __init__(
        self,
        *,
        app: App,
        grounds: Grounds,
        clock: Clock,
        options: WorkerOptions,
        telemetry: Telemetry,
    ) -> None:
        self._app = app
        self._grounds = grounds
        self._clock = clock
        self._options = options
        self._telemetry = telemetry

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop; then finish or give back what is held."""
        desk = self._grounds.desk
        registry = TaskRegistry(
            desk=desk,
            app=self._app,
            tenant=self._grounds.tenant,
            options=self._options,
            every=self._settings().heartbeat_every,
            clock=self._clock,
            telemetry=self._telemetry,
            stopping=stopping,
            roll=self._grounds.chance.roll,
        )
        await registry.enter()
        if stopping.requested and not registry.known:
            return
        processes = Processes(self._options.processes)
        hints = Hints(database=desk.database, clock=self._clock)
        courier = Courier(
            notes=self._grounds.notes, clock=self._clock, loop=asyncio.get_running_loop()
        )
        async with asyncio.TaskGroup() as group:
            helpers = [
                group.create_task(courier.run(), name="worker.courier"),
                group.create_task(hints.run(), name="worker.hints"),
            ]
            try:
                await self._worker(registry, courier, processes, hints).run(stopping)
            finally:
                for helper in helpers:
                    helper.cancel()
                processes.close()

    def _worker(
        self, registry: "TaskRegistry", courier: Courier, processes: Processes, hints: Hints
    ) -> Worker:
        grounds, identity = self._grounds, registry.worker.id
        handlers = self._handlers(registry.worker, courier, processes)
        return Worker(
            card=WorkerCard(
                id=identity,
                node=None,
                name=self._options.name,
                version=self._options.version,
                queues=tuple(self._options.queues),
                handlers=tuple(sorted(self._app.tasks)),
                slots=self._options.concurrency,
            ),
            database=grounds.desk.database,
            open_database=grounds.open_database,
            handlers=handlers,
            clock=self._clock,
            chance=grounds.chance,
            settings=self._settings(),
            drain_timeout=self._options.grace,
            telemetry=self._telemetry,
            margin=grounds.desk.margin,
            listen=grounds.listen,
            hints=hints,
            large=large_of(grounds.desk, grounds.result_retention),
            tenant=grounds.tenant,
            announce=registry.counting,
            died=self._died,
        )

    def _handlers(self, worker: RemoteWorker, courier: Courier, processes: Processes) -> Handlers:
        return handlers_of(self._app, service_of(self._grounds, worker, courier), processes)

    def _settings(self) -> WorkerSettings:
        """Those of the service, with the size of this worker and the leases that its tasks want."""
        options, grounds = self._options, self._grounds
        own = [one.options.get("lease") for one in self._app.tasks.values()]
        wanted = [timedelta(seconds=seconds_of(one)) for one in own if one is not None]
        ttl = max([grounds.ttl, *wanted])
        return replace(
            grounds.settings,
            slots=options.concurrency,
            threads=min(options.concurrency, THREADS_MAX),
            processes=options.processes,
            queues=tuple(options.queues),
            lease_ttl=ttl,
            heartbeat_every=min([grounds.ttl, *wanted]) / BEATS_PER_LEASE,
        )

    def _died(self, ending: Ending) -> None:
        task = self._app.tasks.get(ending.handler or "")
        dead = DeadRun(to_text("run", ending.run), ending.handler or "", ending.attempt)
        tell_dead(task, dead, self._telemetry)


def lease_of(held: Context, worker: WorkerId) -> HeldLease:
    """What an attempt holds, as the verbs about leases know it."""
    return HeldLease(
        run=held.run.id,
        parcel=held.parcel.id,
        worker=worker,
        fence=held.parcel.fence,
        attempt=held.attempt,
        started_us=to_us(held.started_at),
        plain=held.spec.is_plain,
        shard=held.parcel.shard,
    )


def service_of(grounds: Grounds, worker: RemoteWorker, courier: Courier) -> Service:
    """What tasks need of the service while they work."""

    async def kept(held: Context) -> bytes | None:
        return await read_checkpoint(grounds.desk, grounds.tenant, held.run.id)

    return Service(
        lease_of=lambda held: lease_of(held, worker.id),
        read_checkpoint=kept,
        courier=courier,
    )


def large_of(desk: Desk, retention: str) -> Large:
    """Payloads and results by reference."""

    async def fetch(tenant: TenantId, reference: str) -> bytes:
        return await read_reference(desk, tenant, reference)

    async def keep(tenant: TenantId, content: bytes) -> str:
        blob = new_blob(desk, content, media_type="application/json", retention=retention)
        return await keep_blob(desk, tenant, blob)

    return Large(fetch=fetch, keep=keep, contents=Contents(desk))


class TaskRegistry:
    """The worker in the list of its tenant's: known before it works, heard of while it does."""

    def __init__(
        self,
        *,
        desk: Desk,
        app: App,
        tenant: TenantId,
        options: WorkerOptions,
        every: timedelta,
        clock: Clock,
        telemetry: Telemetry,
        stopping: Stopping,
        roll: Callable[[], float],
    ) -> None:
        self._desk = desk
        self._tenant = tenant
        self._every = every
        self._clock = clock
        self._telemetry = telemetry
        self._stopping = stopping
        self._roll = roll
        self._outage = Outage(duty="worker.registry", telemetry=telemetry)
        self._busy: Callable[[], int] = int
        self._schemas = _schemas(app)
        self.worker = _card(desk, tenant, app, options, self._schemas)
        self.draining = False
        self.known = False

    def counting(self, busy: Callable[[], int]) -> "TaskRegistry":
        """The same, which tells how many places are taken."""
        self._busy = busy
        return self

    async def enter(self) -> None:
        """Until the service knows us, or nobody wants it any more."""
        failures = 0
        while not self._stopping.requested:
            try:
                await workers.register(self._desk, self.worker, self._schemas)
            except Unavailable as fault:
                failures += 1
                self._outage.failed(fault)
                pause = full_jitter(failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
                await first_of(self._clock.sleep(pause.total_seconds()), self._stopping.wait())
                continue
            self._outage.ended()
            self.known = True
            self._telemetry.event(
                "worker.registered",
                worker=to_text(WORKER, self.worker.id),
                queues=list(self.worker.queues),
                tasks=sorted(self.worker.handlers),
                concurrency=self.worker.slots,
            )
            return

    async def run(self) -> None:
        """Tell until cancelled."""
        beats = beat(self._clock, every=self._every)
        await attend(self.tick, beats=beats, troubles=self._outage)

    async def tick(self) -> None:
        """One sign of life; somebody may want us to finish, or have forgotten us."""
        try:
            told = await workers.beat(
                self._desk,
                self._tenant,
                self.worker.id,
                {},
                draining=self.draining,
                busy=self._busy(),
            )
        except NotFound:
            await workers.register(self._desk, self.worker, self._schemas)
        else:
            if told.draining and not self.draining:
                self._stopping.request("told to drain")

    async def leave(self) -> None:
        """Say goodbye; if the database does not listen, the janitor forgets us later."""
        try:
            await workers.delete_worker(self._desk, self._tenant, self.worker.id)
        except (Unavailable, NotFound) as error:
            self._outage.failed(error)
        self._telemetry.event("worker.left", worker=to_text(WORKER, self.worker.id))


def _schemas(app: App) -> Mapping[str, Declared]:
    return {
        task.name: declared(
            task.name, task.arguments.schema, pointer=f"/handlers/{task.name}/schema"
        )
        for task in app.tasks.values()
        if task.arguments.schema is not None
    }


def _card(
    desk: Desk,
    tenant: TenantId,
    app: App,
    options: WorkerOptions,
    schemas: Mapping[str, Declared],
) -> RemoteWorker:
    return workers.new_worker(
        desk,
        tenant,
        name=options.name,
        version=options.version,
        queues=options.queues,
        handlers=sorted(app.tasks),
        slots=options.concurrency,
        labels={},
        details={
            "host": options.host,
            "pid": options.pid,
            "sdk": {"name": "betimes-python", "version": options.version},
            "schemas": {name: one.digest for name, one in schemas.items()},
        },
    )
