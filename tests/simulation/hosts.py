"""Hosts: the product's own services, each with its own connections, clock and luck.

Long because every role is put together here.

A host that crashes is abandoned where it stands, and a new one with a new identity takes its place
after a while. A host that freezes goes on later with whatever it believed.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Sequence
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
from betimes.domain.ids import TAIL_BYTES, NodeId, random_ids, to_ms
from betimes.janitor.service import Janitor
from betimes.ops.desk import Desk
from betimes.rhythm import Stopping, attend, beat
from betimes.store.database import Database
from betimes.store.hints import PLAN, READY, Hints
from betimes.store.nodes import NodeCard
from betimes.telemetry import Event, Outage, Telemetry
from simulation import workers
from simulation.boundary import Fault, HostClock, Link, SimPool, make_database
from simulation.loop import LIFE, Life

if TYPE_CHECKING:
    from simulation.world import World

T = TypeVar("T")
RESTART_SECONDS = 1.0
RPC_PATIENCE = 6.0
TZDATA = "2026a"


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


async def serve(host: Host, stopping: Stopping) -> None:
    """The verbs behind the API, for clients and for workers of apps."""
    host.waiters = Waiters(host.clock)
    heard = host.waiters.heard
    host.listen([READY], lambda _, payload: heard(payload))
    host.desk = await host.make_desk()
    await stopping.wait()


Role = Callable[[Host, Stopping], Awaitable[None]]
ROLES: dict[str, Role] = {
    "coordinator": coordinate,
    "janitor": clean,
    "worker": workers.work,
    "task": workers.work_on_tasks,
    "api": serve,
    "app": workers.work_for_app,
    "crude": workers.work_crudely,
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
            publish_every=seconds(0.25 if plan.profile == "far" else 1.0),
            plan_every=seconds(2.0),
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
        janitor=replace(plain.janitor, reap_every=seconds(2.0)),
    )
