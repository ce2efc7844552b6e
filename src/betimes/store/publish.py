"""Runs that are nearly due become parcels, under the shard's epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from betimes.domain.ids import NodeId, RunId, ShardId, floor_of
from betimes.domain.parcel import Lane as ParcelLane
from betimes.domain.parcel import Parcel, Waiting, pack
from betimes.store.database import Database
from betimes.store.overlap import place
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.shards import Claim

SQL = load("parcels")
SHARDS = load("shards")


@dataclass(frozen=True, slots=True)
class Batch:
    """What to publish of one shard, and how far that brings it."""

    claim: Claim
    through: datetime
    runs: Sequence[Waiting]


@dataclass(slots=True)
class Placed:
    """What became of runs that needed parcels."""

    parcels: list[Parcel] = field(default_factory=list)
    skipped: dict[RunId, UUID] = field(default_factory=dict)
    """Runs that gave way to an earlier one of their job, and to which."""


@dataclass(slots=True)
class Published:
    """What a transaction has done; `lost` are the shards where we were fenced out."""

    placed: dict[ShardId, Placed] = field(default_factory=dict)
    lost: set[ShardId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Every run due up to here has its parcel; None when nothing was ever published."""

    through: datetime | None


@dataclass(frozen=True, slots=True)
class Publishing:
    """The publisher's side of the queue."""

    database: Database
    node: NodeId

    async def near_due(
        self, shard: ShardId, *, low: UUID, until_ms: int, most: int
    ) -> list[Waiting]:
        """Runs without a parcel from `low` up to and including a millisecond, by dueness."""
        rows = await self.database.many(
            SQL["read_near_due"],
            lane=Lane.ENGINE,
            shard=shard,
            low=low,
            high=floor_of(until_ms + 1),
            most=most,
        )
        return [Waiting(*row.values()) for row in rows]

    async def cursor(self, claim: Claim, *, now: datetime | None) -> Cursor | None:
        """How far a shard of ours is published; None when it is no longer ours.

        Waits for a commit of ours that is still under way.
        """
        row = await self.database.maybe(
            SHARDS["hold_shard"],
            lane=Lane.ENGINE,
            shard=claim.shard,
            node=self.node,
            epoch=claim.epoch,
            now=now,
        )
        return None if row is None else Cursor(row["published_through"])

    async def publish(self, batches: Sequence[Batch], *, now: datetime | None) -> Published:
        """Publish several shards in one transaction.

        Fenced out is also who froze past the end of its lease, although nobody has taken the shard
        yet. Repeating it after a lost reply inserts nothing: the cursor is already there.
        """

        async def work(connection: Connection) -> Published:
            done = Published()
            # In the order in which shards are acquired: nobody waits in a circle.
            for batch in sorted(batches, key=lambda one: one.claim.shard):
                placed = await self._publish_one(connection, batch, now=now)
                if placed is None:
                    done.lost.add(batch.claim.shard)
                else:
                    done.placed[batch.claim.shard] = placed
            return done

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _publish_one(
        self, connection: Connection, batch: Batch, *, now: datetime | None
    ) -> Placed | None:
        shard = batch.claim.shard
        holder = {"shard": shard, "node": self.node, "epoch": batch.claim.epoch}
        if any(run.overlap for run in batch.runs):
            rows = await SHARDS["move_cursor"].fetch(
                connection, **holder, through=batch.through, now=now
            )
            if rows:
                return await place_runs(connection, shard, batch.runs, now=rows[0]["now"])
        else:
            # The bare line: one statement moves the cursor and makes the parcels.
            placed = Placed(pack(shard, batch.runs))
            query = SQL["publish_parcels"]
            columns = parcel_columns(placed.parcels)
            wanted = {name: columns[name] for name in query.parameters if name in columns}
            if await query.fetch(connection, **holder, **wanted, through=batch.through, now=now):
                return placed
        # Nothing was inserted: we are fenced out, or we repeat what has already been done.
        rows = await SHARDS["hold_shard"].fetch(connection, **holder, now=now)
        if rows and rows[0]["published_through"] >= batch.through:
            return Placed(pack(shard, batch.runs))
        return None


def parcel_columns(parcels: Sequence[Parcel]) -> dict[str, Any]:
    """Parcels as columns for the statements that insert many; `numbers` says whose each run is."""
    return {
        "ids": [parcel.id for parcel in parcels],
        "tenants": [parcel.tenant for parcel in parcels],
        "queues": [parcel.queue for parcel in parcels],
        "priorities": [parcel.priority for parcel in parcels],
        "lanes": [parcel.lane for parcel in parcels],
        "ranks": [parcel.rank for parcel in parcels],
        "visible": [parcel.visible_at for parcel in parcels],
        "fences": [parcel.fence for parcel in parcels],
        "deliveries": [parcel.deliveries for parcel in parcels],
        "fairs": [parcel.terms.fair for parcel in parcels],
        "whens": [parcel.terms.when_full for parcel in parcels],
        "gates": [parcel.terms.gate for parcel in parcels],
        "lines": [parcel.terms.line for parcel in parcels],
        "rate_keys": [parcel.terms.rate for parcel in parcels],
        "holds": [parcel.held for parcel in parcels],
        "handlers": [parcel.handler for parcel in parcels],
        "numbers": [number for number, parcel in enumerate(parcels, 1) for _ in parcel.runs],
        "runs": [run for parcel in parcels for run in parcel.runs],
    }


async def insert_parcels(connection: Connection, shard: ShardId, parcels: Sequence[Parcel]) -> None:
    """Insert parcels inside the transaction that inserted their runs."""
    if not parcels:
        return
    await SQL["insert_parcels"].execute(connection, shard=shard, **parcel_columns(parcels))


async def place_runs(
    connection: Connection,
    shard: ShardId,
    waiting: Sequence[Waiting],
    *,
    now: datetime,
    reach: datetime | None = None,
    lane: ParcelLane = ParcelLane.ON_TIME,
) -> Placed:
    """Put runs into parcels, or skip them, as the overlap policies of their jobs say.

    The one door through which runs of jobs come into the queue. The caller holds the shard's row
    or the job's, so that nobody else decides about the same job meanwhile. `reach` is how far the
    shard is published; give it for runs that the publisher has not come to in its order.
    """
    runs, skipped = await place(connection, shard, waiting, now=now, reach=reach)
    parcels = pack(shard, runs, lane=lane)
    await insert_parcels(connection, shard, parcels)
    return Placed(parcels, skipped)
