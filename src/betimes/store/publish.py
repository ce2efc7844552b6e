"""Runs that are nearly due become parcels, under the shard's epoch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from betimes.domain.ids import NodeId, ShardId, floor_of
from betimes.domain.parcel import Parcel, Waiting
from betimes.store.database import Database
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
    parcels: Sequence[Parcel]


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

    async def cursor(self, claim: Claim) -> Cursor | None:
        """How far a shard of ours is published; None when it is no longer ours.

        Waits for a commit of ours that is still under way.
        """
        row = await self.database.maybe(
            SHARDS["hold_shard"],
            lane=Lane.ENGINE,
            shard=claim.shard,
            node=self.node,
            epoch=claim.epoch,
            now=None,
        )
        return None if row is None else Cursor(row["published_through"])

    async def publish(self, batches: Sequence[Batch]) -> set[ShardId]:
        """Publish several shards in one transaction; returns those where we were fenced out.

        Repeating it after a lost reply inserts nothing: the cursor is already there.
        """

        async def work(connection: Connection) -> set[ShardId]:
            lost: set[ShardId] = set()
            for batch in batches:
                if not await self._publish_one(connection, batch):
                    lost.add(batch.claim.shard)
            return lost

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _publish_one(self, connection: Connection, batch: Batch) -> bool:
        holder = {"shard": batch.claim.shard, "node": self.node, "epoch": batch.claim.epoch}
        query = SQL["publish_parcels"]
        columns = parcel_columns(batch.parcels)
        wanted = {name: columns[name] for name in query.parameters if name in columns}
        if await query.fetch(connection, **holder, **wanted, through=batch.through):
            return True
        # Nothing was inserted: we are fenced out, or we repeat what has already been done.
        rows = await SHARDS["hold_shard"].fetch(connection, **holder, now=None)
        return bool(rows) and rows[0]["published_through"] >= batch.through


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
        "numbers": [number for number, parcel in enumerate(parcels, 1) for _ in parcel.runs],
        "runs": [run for parcel in parcels for run in parcel.runs],
    }


async def insert_parcels(connection: Connection, shard: ShardId, parcels: Sequence[Parcel]) -> None:
    """Insert parcels inside the transaction that inserted their runs."""
    if not parcels:
        return
    await SQL["insert_parcels"].execute(connection, shard=shard, **parcel_columns(parcels))
