"""Leases that ran out: their parcels go back into the queue, in pieces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from betimes.domain.ids import Fence, ParcelId, RunId, ShardId, TenantId, to_text
from betimes.domain.outcome import OutcomeKind
from betimes.domain.parcel import SPLIT_INTO, Lane, Parcel, split
from betimes.domain.terms import Terms
from betimes.store.database import Database
from betimes.store.pool import Connection
from betimes.store.pool import Lane as PoolLane
from betimes.store.publish import insert_parcels
from betimes.store.queries import load
from betimes.store.telling import News, about, tell

SQL = load("parcels")
FINISH = load("finish")
RUNS = load("runs")
LEASE_EXPIRED = "LEASE_EXPIRED"

NewId = Callable[[], UUID]
"""Random ids, from the dice of app/."""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A parcel whose worker did not come back, and which worker that was."""

    parcel: Parcel
    worker: UUID
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class Reaping:
    """The reaper's side of the queue. Needs no ownership: the row locks keep reapers apart."""

    database: Database
    new_id: NewId

    async def shards_to_reap(self, *, now: datetime | None) -> list[ShardId]:
        """Which shards have an expired lease."""
        rows = await self.database.many(SQL["find_shards_to_reap"], lane=PoolLane.ENGINE, now=now)
        return [ShardId(row["shard"]) for row in rows]

    async def reap(self, shard: ShardId, *, most: int, now: datetime | None) -> list[Abandoned]:
        """Take expired parcels back: record the lost attempts, make the pieces visible again."""

        async def work(connection: Connection) -> list[Abandoned]:
            rows = await SQL["find_expired"].fetch(connection, shard=shard, most=most, now=now)
            abandoned = [_abandoned(shard, row) for row in rows]
            for one in abandoned:
                await self._give_back(connection, one)
            return abandoned

        return await self.database.transact(work, lane=PoolLane.ENGINE, repeatable=True)

    async def _give_back(self, connection: Connection, one: Abandoned) -> None:
        parcel = one.parcel
        low, high = min(parcel.runs), max(parcel.runs)
        rows = await RUNS["read_unfinished"].fetch(
            connection,
            shard=parcel.shard,
            ids=list(parcel.runs),
            low=low,
            high=high,
        )
        counted = {RunId(row["id"]): row["attempt"] + parcel.deliveries for row in rows}
        await SQL["delete_parcels"].execute(connection, shard=parcel.shard, ids=[parcel.id])
        if not counted:
            return
        left = tuple(run for run in parcel.runs if run in counted)
        await self._record(connection, one, counted)
        await tell(connection, _news(one, rows, counted))
        names = [ParcelId(self.new_id()) for _ in range(SPLIT_INTO - 1)]
        await insert_parcels(connection, parcel.shard, split(replace(parcel, runs=left), names))

    async def _record(
        self, connection: Connection, one: Abandoned, counted: dict[RunId, int]
    ) -> None:
        count = len(counted)
        await FINISH["insert_attempts"].execute(
            connection,
            shard=one.parcel.shard,
            worker=one.worker,
            runs=list(counted),
            numbers=list(counted.values()),
            tenants=[one.parcel.tenant] * count,
            fences=[one.parcel.fence] * count,
            started=[None] * count,
            finished=[one.lease_until] * count,
            retries=[None] * count,
            outcomes=[OutcomeKind.ABANDONED] * count,
            errors=[None] * count,
            https=[None] * count,
        )


def _news(one: Abandoned, rows: Sequence[Any], counted: dict[RunId, int]) -> list[News]:
    """Who lost what, and that each of it is tried again."""
    worker, shard = to_text("wrk", one.worker), one.parcel.shard
    lost = {"worker_id": worker, "runs": len(rows), "queue": one.parcel.queue}
    again = [
        about(shard, row, "run.retrying", state="queued", reason=LEASE_EXPIRED) for row in rows
    ]
    for news, row in zip(again, rows, strict=True):
        news.body["attempt"] = counted[RunId(row["id"])]
    return [News(shard, one.parcel.tenant, "worker.lease_lost", worker, lost), *again]


def _abandoned(shard: ShardId, row: Any) -> Abandoned:
    parcel = Parcel(
        shard=shard,
        id=ParcelId(row["id"]),
        tenant=TenantId(row["tenant_id"]),
        queue=row["queue"],
        priority=row["priority"],
        visible_at=row["visible_at"],
        runs=tuple(row["run_ids"]),
        lane=Lane(row["lane"]),
        fence=Fence(row["fence"]),
        deliveries=row["deliveries"],
        terms=Terms(row["fair"], row["gate"], row["when_full"], row["line"], row["rate_key"]),
        handler=row["handler"],
    )
    return Abandoned(parcel, row["worker_id"], row["lease_until"])
