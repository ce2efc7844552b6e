"""Hosts: the product's own services, each with its own connections, clock and luck.

Long because every role is put together here.

A host that crashes is abandoned where it stands, and a new one with a new identity takes its place
after a while. A host that freezes goes on later with whatever it believed.
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from betimes.api.waiters import Waiters
from betimes.app.node import Node
from betimes.app.presence import Presence
from betimes.config import Settings
from betimes.coordinator.service import Coordinator
from betimes.domain.errors import Unavailable
from betimes.domain.ids import TAIL_BYTES, NodeId, WorkerId, random_ids, to_ms
from betimes.janitor.service import Janitor
from betimes.ops.desk import Desk
from betimes.rhythm import Stopping, attend, beat
from betimes.runtime.worker import Worker as AppWorker
from betimes.runtime.worker import WorkerOptions
from betimes.sdk.application import App
from betimes.sdk.context import Context as AppContext
from betimes.store.database import Database
from betimes.store.hints import PLAN, READY, Hints
from betimes.store.nodes import NodeCard
from betimes.store.pool import Lane
from betimes.store.workers import WorkerCard
from betimes.telemetry import Event, Outage, Telemetry
from betimes.wire.workers import DeclaredHandler, LeaseRuns, NewWorker, ReportOne
from betimes.worker import Chance, Handlers, Worker, runner
from betimes.worker.context import Context
from direct_line import DirectLine
from simulation.boundary import Fault, HostClock, Link, SimPool, make_database
from simulation.loop import LIFE, Life

if TYPE_CHECKING:
    from simulation.world import World

T = TypeVar("T")
RESTART_SECONDS = 1.0
RPC_PATIENCE = 6.0
SAID_AT_ONCE = 0.25
"""How often a crude worker reports when it has leased; else it waits, also past its leases."""
SECRET = bytes(32)
TZDATA = "2026a"


async def run_inline(work: Callable[[], Coroutine[Any, Any, None]], *, name: str) -> None:
    """What the product does in a thread is a task here: there is one order of everything."""
    await work()


def without_threads() -> None:
    """Heartbeats beat on the loop of the world."""
    runner.run_beside = run_inline  # type: ignore[attr-defined]


class SimDice:
    """The luck of one host, all of it from the seed."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)

    def roll(self) -> float:
        return self.random.random()

    def entropy(self, count: int) -> bytes:
        return self.random.randbytes(count)

    def secret(self) -> str:
        return self.entropy(32).hex()


@dataclass(eq=False)
class Host:
    """One process."""

    world: "World"
    role: str
    number: int
    births: int = 0
    life: Life = field(init=False)
    link: Link = field(init=False)
    clock: HostClock = field(init=False)
    dice: SimDice = field(init=False)
    database: Database = field(init=False)
    pools: list[SimPool] = field(default_factory=list)
    node: Node = field(init=False)
    hears: list[tuple[tuple[str, ...], Callable[[str, str], None]]] = field(default_factory=list)
    desk: Desk | None = None
    waiters: Waiters | None = None
    muted: bool = False
    """Whether an app can reach no API."""

    @property
    def name(self) -> str:
        return f"{self.role}-{self.number}"

    def boot(self) -> None:
        """Start anew, as somebody nobody has seen before."""
        world, plan = self.world, self.world.plan
        self.births += 1
        self.life = Life(f"{self.name}.{self.births}")
        self.dice = SimDice(f"{plan.seed}/{self.life.name}")
        skew = plan.skews[self.number % len(plan.skews)]
        self.clock = HostClock(world.domain, skew=timedelta(seconds=skew))
        rates = {Fault(name): rate for name, rate in plan.rates.items()}
        self.link = Link(rtt=plan.rtt[self.role], rates=rates, spread=plan.spread)
        self.database, self.pools = make_database(
            world.domain, self.link, self.clock, self.dice.random
        )
        (identity,) = random_ids(to_ms(world.domain.now()), 0, self.dice.entropy(TAIL_BYTES))
        card = NodeCard(
            id=NodeId(identity), name=self.name, version="0", tzdata=TZDATA, roles=(self.role,)
        )
        self.node = Node(
            card=card,
            settings=world.settings,
            clock=self.clock,
            dice=self.dice,  # type: ignore[arg-type]  # the same verbs
            telemetry=Telemetry(clock=self.clock, handlers=[self._heard]),
            database=self.database,
            listen_dsn="",
        )
        self.hears, self.desk, self.waiters, self.muted = [], None, None, False
        self.start(self._live(), "main")

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """A task of this host, in its context."""
        context = contextvars.copy_context()
        context.run(LIFE.set, self.life)
        loop = self.world.loop
        return loop.create_task(work, name=f"{self.life.name}/{name}", context=context)

    def crash(self) -> None:
        """End at once: nothing of it moves again, the server undoes what it left open."""
        self.life.dead = True
        for pool in self.pools:
            pool.terminate()

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something on this host for somebody else, who may never hear of it."""
        loop = self.world.loop
        answer: asyncio.Future[T] = loop.create_future()

        async def serve() -> None:
            try:
                value = await work()
            except Exception as error:  # noqa: BLE001 -- it belongs to whoever asked
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(value)

        if self.life.dead or self.desk is None:
            raise Unavailable("nobody is there")
        self.start(serve(), "call")
        try:
            async with asyncio.timeout(RPC_PATIENCE):
                return await answer
        except TimeoutError:
            raise Unavailable("no answer came") from None

    async def _live(self) -> None:
        """The role, made anew when it falls over; as the supervisor of a node does."""
        while True:
            stopping = Stopping()
            try:
                await ROLES[self.role](self, stopping)
            except Exception as error:  # noqa: BLE001 -- judged afterwards
                self.world.fell(self, error)
            self.hears.clear()
            await self.clock.sleep(RESTART_SECONDS)

    def _heard(self, event: Event) -> None:
        self.world.told(self, event)

    async def make_desk(self) -> Desk:
        """What verbs need on this host."""
        plan = self.world.plan
        hints = Hints(database=self.database, clock=self.clock)
        self.start(hints.run(), "hints")
        return Desk(
            database=self.database,
            clock=self.clock,
            hints=hints,
            entropy=self.dice.entropy,
            shards=plan.shards,
            tzdata=TZDATA,
            margin=self.world.settings.coordinator.margin,
        )

    def listen(self, channels: Sequence[str], hear: Callable[[str, str], None]) -> None:
        """Be told what others notify, as far as it arrives."""
        self.hears.append((tuple(channels), hear))


async def coordinate(host: Host, stopping: Stopping) -> None:
    """The coordinator, with its presence and its hints."""
    node = host.node
    hints = Hints(database=node.database, clock=node.clock)
    coordinator = Coordinator(
        node=node.card.id,
        database=node.database,
        clock=node.clock,
        telemetry=node.telemetry,
        settings=node.settings.coordinator,
        database_settings=node.settings.database,
        tzdata=TZDATA,
        hint=hints.hint,
    )
    host.listen([PLAN], lambda *_: coordinator.planner.nudge.set())
    async with asyncio.TaskGroup() as group:
        group.create_task(hints.run())
        group.create_task(Presence(node=node).run(stopping))
        group.create_task(coordinator.run(stopping))


async def clean(host: Host, stopping: Stopping) -> None:
    """The janitor: what takes back, resumes and lets in."""
    node = host.node
    janitor = Janitor(
        desk=await host.make_desk(),
        clock=node.clock,
        telemetry=node.telemetry,
        settings=node.settings.janitor,
        new_id=lambda: next(random_ids(to_ms(node.clock.now()), 0, node.dice.entropy(TAIL_BYTES))),
    )
    # Its rarer duties come more seldom than in earnest: they are most of what an idle cell asks.
    duties = [
        (janitor.errands.tick, 5.0 + host.world.plan.shards),
        (janitor.offerer.tick, 4.0),
        (janitor.pruner.tick, 60.0),
    ]
    async with asyncio.TaskGroup() as group:
        group.create_task(janitor.reaper.run(stopping))
        for tick, seconds in duties:
            beats = beat(node.clock, every=timedelta(seconds=seconds), stopping=stopping)
            troubles = Outage(duty="janitor.simulated", telemetry=node.telemetry)
            group.create_task(attend(tick, beats=beats, troubles=troubles))


async def work(host: Host, stopping: Stopping) -> None:
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

    @asynccontextmanager
    async def opened() -> AsyncIterator[Database]:
        database, pools = make_database(
            world.domain, host.link, host.clock, host.dice.random, lanes=(Lane.LEASE,)
        )
        host.pools += pools
        yield database

    class Ear:
        def __init__(self, hear: Callable[[str, str], None]) -> None:
            host.listen([READY], hear)

        async def run(self) -> None:
            await asyncio.Event().wait()

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
        open_database=opened,
        handlers=handlers,
        clock=node.clock,
        chance=Chance(roll=node.dice.roll, entropy=node.dice.entropy),
        settings=node.settings.worker,
        drain_timeout=timedelta(seconds=5),
        telemetry=node.telemetry,
        margin=node.settings.coordinator.margin,
        listen=Ear,
    ).run(stopping)


async def serve(host: Host, stopping: Stopping) -> None:
    """The verbs behind the API, for clients and for workers of apps."""
    host.waiters = Waiters(host.clock)
    heard = host.waiters.heard
    host.listen([READY], lambda _, payload: heard(payload))
    host.desk = await host.make_desk()
    await stopping.wait()


class AppLine:
    """How a worker of an app reaches the service: some API host, over a network."""

    def __init__(self, host: Host) -> None:
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

    def _line(self, api: Host) -> DirectLine:
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


async def work_for_app(host: Host, stopping: Stopping) -> None:
    """A worker of an app, with the runtime that apps are given."""
    app, world = App(name="simulation"), host.world

    async def apped(ctx: AppContext, takes: float, fails: float) -> object:
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

    app.task(apped)
    line = AppLine(host)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield line

    await AppWorker(
        app=app,
        open_line=opened,
        clock=host.clock,
        roll=host.dice.roll,
        options=WorkerOptions(name=host.name, concurrency=100),
        telemetry=host.node.telemetry,
    ).run(stopping)


async def work_crudely(host: Host, stopping: Stopping) -> None:
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


async def _until(host: Host, work: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await work()
        except Unavailable:
            await host.clock.sleep(1.0)


Role = Callable[[Host, Stopping], Awaitable[None]]
ROLES: dict[str, Role] = {
    "coordinator": coordinate,
    "janitor": clean,
    "worker": work,
    "api": serve,
    "app": work_for_app,
    "crude": work_crudely,
}


def settings_of(plan: Any) -> Settings:
    """The settings that a seed has chosen."""

    def seconds(number: float) -> timedelta:
        return timedelta(seconds=number)

    plain = Settings()
    return replace(
        plain,
        coordinator=replace(
            plain.coordinator,
            lease_ttl=seconds(plan.ttl),
            renew_every=seconds(min(2.0, plan.ttl / 4)),
            balance_every=seconds(1.0),
            publish_every=seconds(0.25 if plan.profile == "far" else 0.5),
            sweep_every=seconds(plan.sweep),
            horizon=seconds(plan.horizon),
        ),
        worker=replace(
            plain.worker,
            lease_ttl=seconds(plan.worker_ttl),
            heartbeat_every=seconds(plan.worker_ttl / 4),
            poll_every=seconds(2.0),
            slots=256,
        ),
        janitor=replace(plain.janitor, reap_every=seconds(1.0)),
    )
