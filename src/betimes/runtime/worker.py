"""The worker of an app over HTTP: the runner, with tasks as handlers and the API as its queue.

What it leases, how it keeps and loses leases, deadlines and draining are the runner's (`worker/`),
as for the service's own work. Here is only what an app adds: its tasks, its name in the list of
workers, and what is called when a run is dead.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from betimes.domain.clock import Clock
from betimes.domain.errors import NotFound, Unavailable
from betimes.domain.ids import TenantId
from betimes.executing.processes import Processes
from betimes.rhythm import Stopping, first_of, full_jitter
from betimes.runtime.courier import Courier
from betimes.runtime.dead import DeadRun, tell_dead
from betimes.runtime.line import Line, OpenLine
from betimes.runtime.reporter import HttpParcel
from betimes.runtime.task_handlers import Service, handlers_of
from betimes.runtime.transport import Enlisted, HttpTransport
from betimes.schedule.duration import read_duration
from betimes.sdk.application import App
from betimes.sdk.options import seconds_of
from betimes.telemetry import Outage, Telemetry
from betimes.wire.workers import PARCEL_RUNS_MAX, DeclaredHandler, NewWorker, Registered
from betimes.worker.context import Context
from betimes.worker.runner import Resources, Runner, Size

BEATS_PER_LEASE = 3
THREADS_MAX = 1_000
PAUSE, PAUSE_MAX = timedelta(milliseconds=100), timedelta(seconds=5)
GRANTED = "/v1/grants/"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker of an app is to work."""

    name: str
    queues: Sequence[str] = ("default",)
    concurrency: int = 10
    processes: int = 2
    grace: timedelta = timedelta(seconds=30)
    host: str = ""
    pid: int = 0
    version: str = ""


class Worker:
    """Leases parcels of an app's tasks, executes and reports them, until asked to stop."""

    def __init__(
        self,
        *,
        app: App,
        open_line: OpenLine,
        clock: Clock,
        roll: Callable[[], float],
        options: WorkerOptions,
        telemetry: Telemetry,
    ) -> None:
        self._app = app
        self._open_line = open_line
        self._clock = clock
        self._roll = roll
        self._options = options
        self._telemetry = telemetry
        self._outage = Outage(duty="worker.registry", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop; then finish or give back what is held."""
        async with self._open_line() as line:
            parts = await self.enter(line, stopping)
            async with asyncio.TaskGroup() as group:
                runner = parts.wire(group)
                courier = group.create_task(parts.courier.run(), name="worker.courier")
                try:
                    await runner.run(group, stopping, patience=self._options.grace)
                finally:
                    courier.cancel()
                    parts.close()

    async def enter(self, line: Line, stopping: Stopping) -> "Parts":
        """Register, and put together what works then."""

        async def register() -> Registered:
            return await self._registered(line, stopping)

        asked_at = self._clock.monotonic()
        told = await register()
        parts = Parts(
            app=self._app,
            line=line,
            open_line=self._open_line,
            told=told,
            register=register,
            clock=self._clock,
            roll=self._roll,
            options=self._options,
            telemetry=self._telemetry,
            stopping=stopping,
        )
        parts.resources.time.observe(datetime.fromisoformat(told.server_time), asked_at=asked_at)
        return parts

    async def _registered(self, line: Line, stopping: Stopping) -> Registered:
        """Until the service knows us."""
        failures = 0
        while True:
            try:
                told = await line.register(self._card())
            except Unavailable as fault:
                failures += 1
                self._outage.failed(fault)
                pause = full_jitter(failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
                await first_of(self._clock.sleep(pause.total_seconds()), stopping.wait_hastened())
                continue
            self._outage.ended()
            self._telemetry.event(
                "worker.registered",
                worker=told.worker_id,
                queues=list(self._options.queues),
                tasks=sorted(self._app.tasks),
                concurrency=self._options.concurrency,
            )
            return told

    def _card(self) -> NewWorker:
        options = self._options
        return NewWorker(
            name=options.name,
            queues=list(options.queues),
            handlers=[
                DeclaredHandler(name=task.name, schema=task.arguments.schema)
                for task in self._app.tasks.values()
            ],
            slots=options.concurrency,
            version=options.version,
            host=options.host,
            pid=options.pid,
            sdk={"name": "betimes-python", "version": options.version},
        )


class Parts:
    """Everything a worker over HTTP consists of, wired; tests crank the parts by hand."""

    def __init__(
        self,
        *,
        app: App,
        line: Line,
        open_line: OpenLine,
        told: Registered,
        register: Callable[[], Awaitable[Registered]],
        clock: Clock,
        roll: Callable[[], float],
        options: WorkerOptions,
        telemetry: Telemetry,
        stopping: Stopping,
    ) -> None:
        self._app = app
        self._line = line
        self._options = options
        self._telemetry = telemetry
        self.resources = Resources(size=size_of(app, options, told), clock=clock)
        self.processes = Processes(options.processes)
        self.courier = Courier(notes=line, clock=clock, loop=asyncio.get_running_loop())
        service = Service(lease_of=lease_of, read_checkpoint=read_checkpoint, courier=self.courier)
        handlers = handlers_of(app, service, self.processes)

        async def again() -> Enlisted:
            return enlisted(await register())

        self.transport = HttpTransport(
            resources=self.resources,
            line=line,
            open_line=open_line,
            register=again,
            enlisted=enlisted(told),
            planning=self.resources.planning(handlers, self._fetch),
            queues=options.queues,
            tasks=sorted(app.tasks),
            roll=roll,
            telemetry=telemetry,
            stopping=stopping,
            died=self._died,
        )

    def wire(self, group: asyncio.TaskGroup) -> Runner:
        """The runner on this transport."""
        runner = Runner(
            resources=self.resources,
            transport=self.transport,
            telemetry=self._telemetry,
            group=group,
            keep=self._keep,
        )
        self.transport.bind(runner.executor, asyncio.get_running_loop())
        return runner

    def close(self) -> None:
        """End processes that wait for work."""
        self.processes.close()

    async def _fetch(self, _: TenantId, reference: str) -> bytes:
        if not reference.startswith(GRANTED):
            raise NotFound(f"expected a blob of the service, got {reference!r}")
        return await self._line.fetch(reference)

    async def _keep(self, _: TenantId, content: bytes) -> str | None:
        return await self._line.keep(content)

    def _died(self, dead: DeadRun) -> None:
        tell_dead(self._app.tasks.get(dead.task), dead, self._telemetry)


def lease_of(held: Context) -> str:
    """The lease of a run, as the routes about leases know it."""
    parcel = held.held
    return parcel.lease_of(held.run.id) if isinstance(parcel, HttpParcel) else ""


async def read_checkpoint(held: Context) -> bytes | None:
    """What an earlier attempt has kept; it came with the run."""
    parcel = held.held
    return parcel.checkpoints.get(held.run.id) if isinstance(parcel, HttpParcel) else None


def enlisted(told: Registered) -> Enlisted:
    """What the service has told a worker that registered."""
    return Enlisted(worker=told.worker_id, lease_ttl=_span(told.lease_duration))


def _span(text: str) -> timedelta:
    return timedelta(microseconds=read_duration(text).elapsed())


def size_of(app: App, options: WorkerOptions, told: Registered) -> Size:
    """How much at once; the longest lease that a task wants is that of all.

    No longer than the service extends a lease: what lasts longer here would be believed after the
    run was given to somebody else.
    """
    own = [one.options.get("lease") for one in app.tasks.values()]
    wanted = [timedelta(seconds=seconds_of(one)) for one in own if one is not None]
    ttl, every = _span(told.lease_duration), _span(told.heartbeat_interval)
    most = timedelta.max if told.config is None else _span(told.config.extend_max)
    return Size(
        slots=options.concurrency,
        threads=min(options.concurrency, THREADS_MAX),
        processes=1,
        enough=max(1, min(PARCEL_RUNS_MAX, options.concurrency) // 4),
        lease_ttl=max(ttl, min(max([ttl, *wanted]), most)),
        heartbeat_every=min([every, *(one / BEATS_PER_LEASE for one in wanted)]),
    )
