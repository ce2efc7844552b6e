"""Due runs that no parcel holds: found, and put into parcels, under the shard's epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from betimes.domain.ids import Fence, NodeId, RunId, floor_of, to_ms
from betimes.domain.parcel import Parcel, Waiting, pack
from betimes.store.database import Database
from betimes.store.pool import Connection, Lane
from betimes.store.publish import insert_parcels
from betimes.store.queries import load
from betimes.store.shards import SQL as SHARDS
from betimes.store.shards import Claim, hold

RUNS = load("runs")


@dataclass(frozen=True, slots=True)
class Sweeping:
    """The sweeper's side of the store."""

    database: Database
    node: NodeId

    async def sweep(
        self,
        claim: Claim,
        *,
        after: datetime | None,
        until: datetime,
        most: int,
        now: datetime | None,
    ) -> list[RunId]:
        """Repair what is due in (after, until] and in no parcel; returns which runs that were.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> list[RunId]:
            await hold(connection, claim, node=self.node, now=now)
            rows = await RUNS["find_unparcelled"].fetch(
                connection,
                shard=claim.shard,
                low=floor_of(0 if after is None else to_ms(after) + 1),
                high=floor_of(to_ms(until) + 1),
                most=most,
            )
            for parcels in _by_fence(claim, rows):
                await insert_parcels(connection, claim.shard, parcels)
            if len(rows) < most:
                await SHARDS["move_swept"].fetch(
                    connection,
                    shard=claim.shard,
                    node=self.node,
                    epoch=claim.epoch,
                    through=until,
                )
            return [RunId(row["id"]) for row in rows]

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


def _by_fence(claim: Claim, rows: Sequence[Any]) -> list[list[Parcel]]:
    """Parcels that begin where their runs' fences stand, so that fences go on rising."""
    runs: dict[Fence, list[Waiting]] = {}
    for row in rows:
        waiting = Waiting(
            row["id"],
            row["tenant_id"],
            row["due_at"],
            row["priority"],
            row["queue"],
            row["fair"],
            row["gate"],
            row["when_full"],
        )
        runs.setdefault(Fence(row["fence"]), []).append(waiting)
    return [
        [replace(parcel, fence=fence) for parcel in pack(claim.shard, group)]
        for fence, group in runs.items()
    ]
