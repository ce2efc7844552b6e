"""The world of one seed: its hosts, what happens to them, and what everybody saw."""

import asyncio
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from random import Random
from typing import Any
from uuid import UUID

from betimes.domain.errors import Unavailable
from betimes.domain.ids import TenantId, from_text
from betimes.store.queries import load, nouns
from betimes.telemetry import Event
from simulation.boundary import Domain
from simulation.clients import Client
from simulation.history import Asked, Executed, History, Trouble
from simulation.hosts import Host, settings_of
from simulation.loop import VirtualLoop
from simulation.plan import Incident, Plan
from simulation.server import Server, midnight

TENANT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
STATEMENTS = {query.text: query.name for noun in nouns() for query in load(noun).values()}
JINXES = {"publish": {"publish_parcels", "move_cursors"}}
DRAIN_SECONDS = 20.0
"""How long before the end the last fire is that must have come to its end."""


class Failing(Exception):
    """What a simulated task raises."""


@dataclass(eq=False)
class World:
    """One seed under way."""

    plan: Plan
    server: Server
    tenant: TenantId = TENANT
    hosts: list[Host] = field(default_factory=list)
    history: History = field(init=False)
    log: Any = field(default_factory=sha256)
    lines: list[str] = field(default_factory=list)
    verbose: bool = False

    def __post_init__(self) -> None:
        plan = self.plan
        self.dice = Random(f"{plan.seed}/world")
        self.loop = VirtualLoop(Random(f"{plan.seed}/order"))
        began = midnight() + timedelta(seconds=plan.start)
        self.domain = Domain(
            server=self.server, loop=self.loop, dice=Random(f"{plan.seed}/luck"), began=began
        )
        self.domain.trace = self._trace
        self.domain.notified = self._notify
        self.settings = settings_of(plan)
        self.history = History(plan=plan, began=began)
        self.jinxed: set[str] = set()

    def run(self) -> History:
        """Live through the seed and tell what happened."""
        self.server.reset(shards=self.plan.shards, now=self.domain.began)
        try:
            self.loop.run_until_complete(self._live())
        finally:
            self.domain.over = True
            for host in self.hosts:
                host.crash()
            self.loop.end()
        self.history.read(self.server)
        self.history.met = dict(self.domain.met)
        self.history.transactions = self.domain.transactions
        self.history.digest = self.log.hexdigest()
        return self.history

    async def _live(self) -> None:
        plan = self.plan
        for role, many in (
            ("api", plan.apis),
            ("coordinator", plan.coordinators),
            ("worker", plan.workers),
            ("task", plan.tasks),
            ("app", plan.apps),
            ("crude", plan.crude),
            ("janitor", plan.janitors),
        ):
            for number in range(many):
                host = Host(self, role, number)
                self.hosts.append(host)
                host.boot()
        client = Client(self)
        asking = [self.loop.create_task(client.live())]
        asking += [self.loop.create_task(self._happen(one)) for one in plan.incidents]
        await self.sleep(plan.chaos)
        self._heal()
        await asyncio.gather(*asking)
        if plan.probe:
            await self._probe()
        left = plan.chaos + plan.settle - self.loop.time()
        await self.sleep(max(left, DRAIN_SECONDS))
        self.history.ended = self.domain.now()

    def _heal(self) -> None:
        """Everything is there again, and nothing goes wrong any more."""
        domain = self.domain
        domain.calm, domain.away = True, False
        self.jinxed.clear()
        for host in self.hosts:
            host.link.cut, host.muted = False, False
            if host.life.frozen:
                self.loop.thaw(host.life)
            if host.life.dead:
                host.boot()
        self.history.healed = domain.now()
        self.note("heal")

    async def _probe(self) -> None:
        """Kill a coordinator of a healthy world; its shards must be somebody's soon."""
        await self.sleep(self.plan.ttl + 3.0)
        victim = next(host for host in self.hosts if host.role == "coordinator")
        node = victim.node.card.id
        rows = self.server.read("SELECT shard, epoch FROM betimes.shards WHERE owner = $1", node)
        self.history.probed = (self.domain.now(), {row["shard"]: row["epoch"] for row in rows})
        self.note("probe", victim.life.name, len(rows))
        victim.crash()
        await self.sleep(self.plan.ttl + 5.0)
        victim.boot()

    async def _happen(self, incident: Incident) -> None:  # noqa: C901, PLR0912 -- one case each
        await self.sleep(incident.at)
        if self.domain.calm:
            return
        self.note("incident", incident.kind, incident.host, incident.detail)
        self.domain.meet(incident.kind)
        host = next((one for one in self.hosts if one.name == incident.host), None)
        life = None if host is None else host.life
        match incident.kind:
            case "crash" if host is not None:
                host.crash()
            case "freeze" if host is not None:
                host.life.frozen = True
            case "cut" if host is not None:
                host.link.cut = True
                for pool in host.pools:
                    pool.terminate()
            case "mute" if host is not None:
                host.muted = True
            case "away":
                self.domain.away = True
            case "step":
                self.domain.db_offset += timedelta(seconds=float(incident.detail))
                self.history.steps.append((self.domain.now(), float(incident.detail)))
                return
            case "jinx":
                self.jinxed |= JINXES[incident.detail]
            case _:
                return
        await self.sleep(incident.lasts)
        if self.domain.calm:
            return
        match incident.kind:
            case "crash" if host is not None and host.life is life:
                host.boot()
            case "freeze" if host is not None and host.life is life:
                self.loop.thaw(host.life)
            case "cut" if host is not None:
                host.link.cut = False
            case "mute" if host is not None:
                host.muted = False
            case "away":
                self.domain.away = False
            case "jinx":
                self.jinxed -= JINXES[incident.detail]
            case _:
                pass

    async def execute(self, host: Host, run: str, *, payload: Any, **facts: Any) -> object:
        """What a task does: it leaves evidence, takes its time, and may fail."""
        done = Executed(
            at=self.domain.now(),
            host=host.life.name,
            run=from_text("run", run),
            fence=facts["fence"],
            attempt=facts["attempt"],
            job=None if facts["job"] is None else from_text("job", facts["job"]),
            fire=facts["fire"],
            due=facts["due"],
        )
        self.history.executed.append(done)
        self.note("execute", host.life.name, run, done.fence, done.attempt)
        given = json.loads(payload) if isinstance(payload, bytes) else payload
        await host.clock.sleep(given["takes"])
        done.ended = self.domain.now()
        if host.dice.roll() < given["fails"]:
            raise Failing("as planned")
        return {"fence": done.fence}

    def some_api(self) -> Host | None:
        """An API host that seems to be there."""
        there = [one for one in self.hosts if one.role == "api" and one.desk is not None]
        there = [one for one in there if not one.life.dead]
        return self.dice.choice(there) if there else None

    async def travel(self, host: Host) -> None:
        """From a worker of an app to the service, or back."""
        if host.muted:
            await self.sleep(1.0)
            raise Unavailable("the network is away")
        await self.sleep(host.link.rtt / 2)

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await asyncio.sleep(seconds)

    def fell(self, host: Host, error: Exception) -> None:
        """A role ended with an error."""
        if self.domain.over:
            return
        self.note("fell", host.life.name, repr(error))
        causes = _leaves(error)
        self.history.troubles.append(Trouble(self.domain.now(), host.life.name, causes))

    def told(self, host: Host, event: Event) -> None:
        """Telemetry of a host."""
        if event.level in {"warning", "error"}:
            self.domain.meet(event.name)
            self.note("event", host.life.name, event.name, repr(event.error))
        if event.name == "run.unpublished":
            self.history.unpublished += 1

    def asked(self, asked: Asked) -> None:
        """A client has asked, and may have been answered."""
        self.history.asked.append(asked)

    def note(self, *facts: object) -> None:
        """One line of the log of events; its digest tells whether two runs were the same."""
        line = f"{self.loop.time():.6f} " + " ".join(map(str, facts))
        self.log.update(line.encode() + b"\n")
        if self.verbose:
            self.lines.append(line)

    def _trace(self, kind: str, host: str, query: str = "") -> None:
        name = STATEMENTS.get(query, query[:30])
        if name in self.jinxed:
            import asyncpg

            self.domain.meet("jinxed")
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        self.note(kind, host, name)

    def _notify(self, channel: str, payload: str) -> None:
        for host in self.hosts:
            for channels, hear in host.hears:
                if channel in channels and self.dice.random() < self.plan.hints:
                    later = self.dice.uniform(0.0005, 0.02)
                    host.start(self._hear(later, hear, channel, payload), "hear")

    async def _hear(self, later: float, hear: Any, channel: str, payload: str) -> None:
        await self.sleep(later)
        hear(channel, payload)


def _leaves(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    cause = (
        f" (from {type(error.__cause__).__name__}: {error.__cause__})" if error.__cause__ else ""
    )
    return [f"{type(error).__name__}: {error}{cause}"]


def database_time(world: World) -> datetime:
    """The clock of the database of a world."""
    return world.domain.now()
