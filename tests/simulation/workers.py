"""Hosts that execute: workers of the service, of apps on the database, of apps behind the API."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import direct_line
from betimes.app.direct import DirectNotes
from betimes.app.task_worker import Grounds, TaskWorker
from betimes.domain.errors import Unavailable
from betimes.domain.ids import TAIL_BYTES, WorkerId, random_ids, to_ms
from betimes.rhythm import Stopping
from betimes.runtime.worker import Worker as AppWorker
from betimes.runtime.worker import WorkerOptions
from betimes.sdk.application import App
from betimes.sdk.context import Context as AppContext
from betimes.store.database import Database
from betimes.store.hints import READY
from betimes.store.pool import Lane
from betimes.store.workers import WorkerCard
from betimes.wire.workers import DeclaredHandler, LeaseRuns, NewWorker, ReportOne
from betimes.worker import Chance, Handlers, Worker, runner
from betimes.worker.context import Context
from betimes.worker.service import Hear, OpenDatabase
from direct_line import DirectLine
from simulation.boundary import make_database

if TYPE_CHECKING:
    from simulation.hosts import Host

T = TypeVar("T")
SAID_AT_ONCE = 0.25
"""How often a crude worker reports when it has leased; else it waits, also past its leases."""
SECRET = bytes(32)
CONCURRENCY = 100


async def run_inline(work: Callable[[], Coroutine[Any, Any, None]], *, name: str) -> None:
    """What the product does in a thread is a task here: there is one order of everything."""
    await work()


POLL_SECONDS = 3.0
"""How long a worker of an app waits for a hint before it looks again; in earnest it is less."""


def without_threads() -> None:
    """Heartbeats beat on the loop of the world; and what is idle asks more seldom."""
    direct_line.POLL_SECONDS = POLL_SECONDS
    runner.run_beside = run_inline  # type: ignore[attr-defined]


class Ear:
    """What a worker hears of hints."""

    def __init__(self, host: "Host", hear: Hear) -> None:
        host.listen([READY], hear)

    async def run(self) -> None:
        """Hear until cancelled."""
        await asyncio.Event().wait()


def opener(host: "Host") -> OpenDatabase:
    """What makes the database of a heartbeat."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Database]:
        database, pools = make_database(
            host.world.domain, host.link, host.clock, host.dice.random, lanes=(Lane.LEASE,)
        )
        host.pools += pools
        yield database

    return opened


def chance_of(host: "Host") -> Chance:
    """The luck of a host, as workers take it."""
    return Chance(roll=host.dice.roll, entropy=host.dice.entropy)


async def work(host: "Host", stopping: Stopping) -> None:
    """A worker of the service."""
    node, world = host.node, host.world
    handlers = Handlers()

    async def served(context: Context) -> object:
        return await world.execute(
            host,
            context.run_id,
            fence=context.fence,
            attempt=context.attempt,
            job=context.job_id,
            fire=context.fire_at,
            due=context.due_at,
            payload=context.payload,
        )

    handlers.add("served", served)
    (identity,) = random_ids(to_ms(node.clock.now()), 0, node.dice.entropy(TAIL_BYTES))

    await Worker(
        card=WorkerCard(
            id=WorkerId(identity),
            node=node.card.id,
            name=host.name,
            version="0",
            queues=("*",),
            handlers=("served",),
            slots=node.settings.worker.slots,
        ),
        database=node.database,
        open_database=opener(host),
        handlers=handlers,
        clock=node.clock,
        chance=chance_of(host),
        settings=node.settings.worker,
        drain_timeout=timedelta(seconds=5),
        telemetry=node.telemetry,
        margin=node.settings.coordinator.margin,
        listen=lambda hear: Ear(host, hear),
    ).run(stopping)


def app_of(host: "Host", name: str) -> App:
    """An app with one task, which leaves evidence."""
    app, world = App(name="simulation"), host.world

    async def task(ctx: AppContext, takes: float, fails: float) -> object:
        facts = ctx.facts
        return await world.execute(
            host,
            facts.run_id,
            fence=facts.fence,
            attempt=facts.attempt,
            job=facts.job_id,
            fire=facts.scheduled_for,
            due=facts.due_at,
            payload={"takes": takes, "fails": fails},
        )

    app.task(name=name)(task)
    return app


async def work_on_tasks(host: "Host", stopping: Stopping) -> None:
    """A worker of an app that has the database: what users run."""
    world, node = host.world, host.node
    desk = await host.make_desk()
    ttl = timedelta(seconds=world.plan.worker_ttl)
    await TaskWorker(
        app=app_of(host, "tasked"),
        grounds=Grounds(
            desk=desk,
            tenant=world.tenant,
            chance=chance_of(host),
            open_database=opener(host),
            listen=lambda hear: Ear(host, hear),
            notes=DirectNotes(desk, world.tenant),
            settings=node.settings.worker,
            ttl=ttl,
        ),
        clock=host.clock,
        options=WorkerOptions(name=host.name, concurrency=CONCURRENCY, processes=0),
        telemetry=node.telemetry,
    ).run(stopping)


class AppLine:
    """How a worker of an app reaches the service: some API host, over a network."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._lines: dict[str, DirectLine] = {}

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        async def ask(*arguments: Any) -> Any:
            host, world = self._host, self._host.world
            await world.travel(host)
            api = world.some_api()
            if api is None:
                raise Unavailable("no API answers")
            answer = await api.call(lambda: getattr(self._line(api), verb)(*arguments))
            await world.travel(host)
            return answer

        return ask

    def _line(self, api: "Host") -> DirectLine:
        line = self._lines.get(api.life.name)
        if line is None:
            assert api.desk is not None
            assert api.waiters is not None
            line = self._lines[api.life.name] = DirectLine(
                desk=api.desk,
                tenant=api.world.tenant,
                waiters=api.waiters,
                secret=SECRET,
                roll=api.dice.roll,
                ttl=timedelta(seconds=api.world.plan.worker_ttl),
            )
        return line


async def work_for_app(host: "Host", stopping: Stopping) -> None:
    """A worker of an app, with the runtime that apps are given."""
    line = AppLine(host)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield line

    await AppWorker(
        app=app_of(host, "apped"),
        open_line=opened,
        clock=host.clock,
        roll=host.dice.roll,
        options=WorkerOptions(name=host.name, concurrency=CONCURRENCY),
        telemetry=host.node.telemetry,
    ).run(stopping)


async def work_crudely(host: "Host", stopping: Stopping) -> None:
    """Somebody's own worker: it keeps what it has to say, and says all of it in one request."""
    world, line = host.world, AppLine(host)
    registered = await _until(
        host,
        lambda: line.register(
            NewWorker(name=host.name, handlers=[DeclaredHandler(name="apped")], slots=8)
        ),
    )
    waiting: list[ReportOne] = []
    while not stopping.requested:
        with suppress(Unavailable):
            wish = LeaseRuns(queues=["default"], handlers=["apped"], max=4, wait=0)
            for grant in await line.lease_runs(registered.worker_id, wish):
                given = {"takes": 0.0, "fails": 0.0}
                await world.execute(
                    host,
                    grant.run_id,
                    fence=grant.fence,
                    attempt=grant.attempt,
                    job=grant.job_id,
                    fire=grant.scheduled_for,
                    due=grant.due_at,
                    payload=given,
                )
                waiting.append(ReportOne(lease_id=grant.lease_id, action="complete"))
            if world.domain.calm or host.dice.roll() < SAID_AT_ONCE:
                host.dice.random.shuffle(waiting)
                await line.report_runs(waiting)
                waiting = []
        await host.clock.sleep(1.0)


async def _until(host: "Host", work: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await work()
        except Unavailable:
            await host.clock.sleep(1.0)
