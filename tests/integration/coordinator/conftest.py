"""Coordinators on a real database, cranked by hand."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

import pytest

from betimes.config.settings import CoordinatorSettings, DatabaseSettings
from betimes.coordinator.pace import PacePolicy
from betimes.coordinator.plan import plan_until
from betimes.coordinator.service import Coordinator
from betimes.domain import ids
from betimes.domain.ids import JobId, NodeId, RunId, ShardId, TenantId
from betimes.schedule import parse
from betimes.store import nodes
from betimes.store.database import Database
from betimes.store.nodes import NodeCard
from betimes.store.pool import Lane
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock

TENANT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
SETTINGS = CoordinatorSettings()


def ahead(now: datetime, period: int, *, shard: int = 1) -> int:
    """How many fires of a period are planned at once."""
    return (plan_until(ShardId(shard), now, SETTINGS.horizon) - now) // timedelta(seconds=period)


@dataclass
class World:
    """A database, a clock, and as many coordinators as the test wants."""

    database: Database
    clock: ManualClock
    telemetry: Telemetry
    hints: list[tuple[int, str, UUID, datetime]] = field(default_factory=list)
    tzdata: str = "test"
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def coordinator(
        self, settings: CoordinatorSettings = SETTINGS, *, policy: PacePolicy | None = None
    ) -> Coordinator:
        """A coordinator on a node of its own that has said that it is alive."""
        node = NodeId(ids.compose(1, 0, next(self.numbers)))
        await self.alive(node)
        return Coordinator(
            node=node,
            database=self.database,
            clock=self.clock,
            telemetry=self.telemetry,
            settings=settings,
            database_settings=DatabaseSettings(),
            tzdata=self.tzdata,
            hint=lambda *hint: self.hints.append(hint[:4]),
            policy=policy,
        )

    async def alive(self, node: NodeId, *, draining: bool = False) -> None:
        card = NodeCard(id=node, name="n", version="0", tzdata="test", roles=("coordinator",))
        await nodes.beat(
            self.database, card, skew_ms=None, draining=draining, now=self.clock.stated()
        )

    async def live(
        self, seconds: float, *coordinators: Coordinator, without: Collection[str] = ()
    ) -> None:
        """Let time pass in half seconds, with these coordinators alive and at work."""
        for _ in range(int(seconds * 2)):
            self.clock.advance(0.5)
            for coordinator in coordinators:
                await self.alive(coordinator.node)
                await coordinator.tick(without=without)

    async def insert_job(
        self,
        schedule: str | dict[str, object],
        *,
        shard: int = 1,
        next_fire_at: datetime | None = None,
    ) -> JobId:
        """An active job, its first fire computed as a creation would."""
        job = JobId(ids.compose(ids.to_ms(self.clock.now()), shard, next(self.numbers)))
        parsed = parse(schedule, now=self.clock.now(), seed=str(job), timezone="UTC")
        if next_fire_at is None:
            fire = parsed.next(self.clock.now())
            next_fire_at = fire.nominal if fire else None
        async with self.database.connection(Lane.ENGINE) as connection:
            await connection.execute(
                "INSERT INTO betimes.jobs (shard, id, tenant_id, next_fire_at, created_at, "
                "updated_at, queue, handler, tzdata, schedule, target) "
                "VALUES ($1, $2, $3, $4, $5, $5, 'q', 'h', 'test', $6, '{}')",
                shard,
                job,
                TENANT,
                next_fire_at,
                self.clock.now(),
                json.dumps(parsed.to_dict()),
            )
        return job

    async def fires(self, job: JobId) -> list[datetime]:
        """The fire times of a job that have become runs."""
        rows = await self.fetch(
            "SELECT fire_at FROM betimes.runs WHERE job_id = $1 ORDER BY fire_at", job
        )
        return [fire for (fire,) in rows if isinstance(fire, datetime)]

    async def insert_runs(
        self, dues: Sequence[datetime], *, shard: int = 1, queue: str = "q"
    ) -> list[RunId]:
        """Runs that wait for the publisher."""
        made = [RunId(ids.compose(ids.to_ms(due), shard, next(self.numbers))) for due in dues]
        async with self.database.connection(Lane.ENGINE) as connection:
            await connection.executemany(
                "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, queue) "
                "VALUES ($1, $2, $3, $4, $5)",
                [(shard, run, TENANT, due, queue) for run, due in zip(made, dues, strict=True)],
            )
        return made

    async def parcels(self) -> dict[UUID, datetime]:
        """Every run that is in a parcel, with when it becomes visible; fails if one is in two."""
        async with self.database.connection(Lane.ENGINE) as connection:
            rows = await connection.fetch(
                "SELECT unnest(run_ids) AS run, visible_at FROM betimes.parcels"
            )
        found = {row["run"]: row["visible_at"] for row in rows}
        assert len(found) == len(rows), "a run is in two parcels"
        return found

    async def fetch(self, statement: str, *arguments: object) -> list[tuple[object, ...]]:
        async with self.database.connection(Lane.ENGINE) as connection:
            return [tuple(row) for row in await connection.fetch(statement, *arguments)]

    def seconds(self, number: float) -> datetime:
        """So many seconds from now."""
        return self.clock.now() + timedelta(seconds=number)


@pytest.fixture
def world(database: Database, clock: ManualClock) -> World:
    return World(database, clock, Telemetry(clock=clock))
