"""What tests of the verbs share: a desk, hints that are kept, plain timetables."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from unittest.mock import patch
from uuid import UUID

import asyncpg

from betimes.domain.clock import Clock
from betimes.domain.errors import UnknownOutcome
from betimes.domain.ids import JobId, RunId, ShardId, TenantId, shard_of
from betimes.domain.job import Definition
from betimes.ops.desk import Desk
from betimes.ops.vault import MasterKey, Vault
from betimes.schedule import parse
from betimes.store import database as store
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.testing import ManualClock

TENANT = TenantId(UUID("00000000-0000-8000-8000-000000000001"))
OTHER = TenantId(UUID("00000000-0000-8000-8000-000000000002"))
SHARDS = 4
MASTER = MasterKey(bytes(range(32)))
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@dataclass(slots=True)
class KeptHints:
    hints: list[tuple[ShardId, str, TenantId, datetime]] = field(default_factory=list)
    buckets: list[int] = field(default_factory=list)
    plans: list[ShardId] = field(default_factory=list)
    duties: list[str] = field(default_factory=list)

    def hint(
        self, shard: ShardId, queue: str, tenant: TenantId, visible_at: datetime, fair: int = 0
    ) -> None:
        self.hints.append((shard, queue, tenant, visible_at))
        self.buckets.append(fair)

    def replan(self, shard: ShardId) -> None:
        self.plans.append(shard)

    def wake(self, duty: str) -> None:
        self.duties.append(duty)


class CountingEntropy:
    """Never the same bytes twice, and the same bytes in every run of a test."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, size: int) -> bytes:
        words = [next(self._numbers).to_bytes(8, "big") for _ in range((size + 7) // 8)]
        return b"".join(words)[:size]


def make_desk(database: Database, clock: Clock, **changes: Any) -> Desk:
    return Desk(
        **{
            "database": database,
            "clock": clock,
            "hints": KeptHints(),
            "entropy": CountingEntropy(),
            "shards": SHARDS,
            "tzdata": "2026a",
            "vault": Vault(masters=[MASTER], clock=clock, entropy=os.urandom),
            **changes,
        }
    )


def every(
    seconds: float, *, schedule: Mapping[str, Any] | None = None, **changes: Any
) -> Definition:
    """Fires at whole multiples of a period since 1970."""
    members = {"type": "interval", "every": f"PT{seconds}S", "anchor": "1970-01-01T00:00:00Z"}
    read = parse({**members, "timezone": "UTC", **(schedule or {})})
    return Definition(**{"schedule": read.to_dict(), "handler": "noop", **changes})


def once(at: datetime, **changes: Any) -> Definition:
    read = parse({"type": "once", "at": at.isoformat(), "timezone": "UTC"})
    return Definition(**{"schedule": read.to_dict(), "handler": "noop", **changes})


async def fetch(database: Database, statement: str, *arguments: object) -> list[asyncpg.Record]:
    async with database.connection(Lane.ENGINE) as connection:
        return await connection.fetch(statement, *arguments)


async def runs_of(database: Database, job: JobId) -> list[asyncpg.Record]:
    return await fetch(
        database,
        "SELECT * FROM betimes.runs WHERE shard = $1 AND job_id = $2 ORDER BY id",
        shard_of(job),
        job,
    )


async def run_row(database: Database, run: RunId) -> asyncpg.Record | None:
    rows = await fetch(
        database, "SELECT * FROM betimes.runs WHERE shard = $1 AND id = $2", shard_of(run), run
    )
    return rows[0] if rows else None


async def parcelled(database: Database) -> list[RunId]:
    """Every run that a parcel holds, as often as one does."""
    rows = await fetch(database, "SELECT unnest(run_ids) AS id FROM betimes.parcels ORDER BY 1")
    return [row["id"] for row in rows]


async def add_tenant(database: Database, tenant: TenantId = OTHER) -> None:
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'other', 'Other')", tenant
        )


@contextmanager
def lost_reply(clock: ManualClock) -> Iterator[None]:
    """The next commit happens, but its reply gets lost; a second passes before it is repeated."""
    real, lost = store._commit, iter([True])

    async def commit(connection: Any) -> None:
        await real(connection)
        if next(lost, False):
            clock.advance(1)
            raise UnknownOutcome("the reply got lost")

    async def no_wait(_: float) -> None:
        return

    with (
        patch.object(store, "_commit", commit),
        patch.object(clock, "sleep", new=no_wait),
    ):
        yield
