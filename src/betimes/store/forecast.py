"""What lies ahead of many jobs at once, as far as it is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from betimes.domain.ids import JobId, ShardId, TenantId
from betimes.store.ask import many, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("forecast")
By = Literal["all", "queue", "handler", "tenant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSpec:
    """A specification, how many jobs of a group share it, and the ids of some of them."""

    label: str
    schedule: str
    jobs: float
    ids: Sequence[JobId]


async def measure(
    connection: Connection, tenant: TenantId | None, *, bound: int
) -> tuple[int, float]:
    """How many jobs a tenant has, at most `bound`; and about how many there are in all."""
    row = await one(connection, SQL["measure_firing_jobs"], tenant=tenant, bound=bound)
    return row["own"], row["every"]


async def read_specs(
    connection: Connection,
    tenant: TenantId | None,
    *,
    by: By,
    until: datetime,
    percent: float | None,
) -> list[SharedSpec]:
    """Every specification that fires by an instant, or what a part of the table's pages tells."""
    given = {"tenant": tenant, "by": by, "until": until}
    if percent is None:
        rows, scale = await many(connection, SQL["read_firing_specs"], **given), 1.0
    else:
        rows = await many(connection, SQL["sample_firing_specs"], percent=percent, **given)
        scale = 100.0 / percent
    return [
        SharedSpec(
            label=row["label"], schedule=row["schedule"], jobs=row["jobs"] * scale, ids=row["ids"]
        )
        for row in rows
    ]


async def read_durations(
    connection: Connection,
    tenant: TenantId | None,
    *,
    by: By,
    shards: Sequence[ShardId],
    low: UUID,
    high: UUID,
    most: int,
) -> dict[str, float]:
    """Average seconds of runs that ended lately, by group."""
    rows = await many(
        connection,
        SQL["read_durations"],
        tenant=tenant,
        by=by,
        shards=list(shards),
        low=low,
        high=high,
        most=most,
    )
    return {row["label"]: max(0.0, row["seconds"]) for row in rows}


async def read_capacity(
    connection: Connection, tenant: TenantId | None, *, since: datetime
) -> list[tuple[frozenset[str], int]]:
    """Places of workers, with the queues they serve; `*` means every queue."""
    rows = await many(connection, SQL["read_capacity"], tenant=tenant, since=since)
    return [(frozenset(row["queues"]), row["slots"]) for row in rows]
