"""Due runs that no parcel holds: found, and put into parcels, under the shard's epoch.

Only what is published can have fallen between. Beyond the cursor a run without a parcel is as it
should be: its publisher makes the parcel when it comes there, or the next owner takes the run back.
A parcel made there by anybody else would be a second one, or hold a run that is taken back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from betimes.domain.ids import Fence, NodeId, RunId, ShardId, floor_of, to_ms
from betimes.domain.parcel import Parcel, Waiting, pack
from betimes.domain.states import RunState
from betimes.fairness.overlap import POLICIES
from betimes.store.database import Database
from betimes.store.overlap import place
from betimes.store.pool import Connection, Lane
from betimes.store.publish import insert_parcels
from betimes.store.queries import load
from betimes.store.shards import SQL as SHARDS
from betimes.store.shards import Claim, HeldShard, take

RUNS = load("runs")


@dataclass(frozen=True, slots=True)
class Swept:
    """What had to be repaired, and up to where nothing is left to repair."""

    runs: Sequence[RunId]
    through: datetime | None


@dataclass(frozen=True, slots=True)
class Sweeping:
    """The sweeper's side of the store."""

    database: Database
    node: NodeId

    async def shards_to_sweep(
        self, spans: Mapping[ShardId, tuple[datetime | None, datetime]]
    ) -> set[ShardId]:
        """In which shards some run that is due after and up to two instants is in no parcel.

        A look without a lock: `sweep` decides.
        """
        lows = [floor_of(0 if after is None else to_ms(after) + 1) for after, _ in spans.values()]
        highs = [floor_of(to_ms(until) + 1) for _, until in spans.values()]
        rows = await self.database.many(
            RUNS["find_shards_unparcelled"],
            lane=Lane.ENGINE,
            shards=list(spans),
            lows=lows,
            highs=highs,
            low=min(lows),
            high=max(highs),
        )
        return {ShardId(row["shard"]) for row in rows}

    async def sweep(
        self,
        claim: Claim,
        *,
        after: datetime | None,
        until: datetime,
        most: int,
        now: datetime | None,
    ) -> Swept:
        """Repair what is due in (after, until], is published, and is in no parcel.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> Swept:
            held = await take(connection, claim, node=self.node, now=now)
            through = published_part(until, held.published_through)
            if through is None or (after is not None and through <= after):
                return Swept((), after)
            rows = await RUNS["find_unparcelled"].fetch(
                connection,
                shard=claim.shard,
                low=floor_of(0 if after is None else to_ms(after) + 1),
                high=floor_of(to_ms(through) + 1),
                most=most,
            )
            for parcels in await _repaired(connection, claim.shard, rows, held):
                await insert_parcels(connection, claim.shard, parcels)
            complete = len(rows) < most
            if complete:
                await SHARDS["move_swept"].fetch(
                    connection,
                    shard=claim.shard,
                    node=self.node,
                    epoch=claim.epoch,
                    through=through,
                )
            return Swept([RunId(row["id"]) for row in rows], through if complete else after)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


def published_part(until: datetime, cursor: datetime | None) -> datetime | None:
    """How far a sweep up to `until` may look: never beyond what is published."""
    return None if cursor is None else min(until, cursor)


async def _repaired(
    connection: Connection, shard: ShardId, rows: Sequence[Any], held: HeldShard
) -> list[list[Parcel]]:
    """Parcels for what fell between, as the overlap policies of its jobs say.

    They begin where the fences of their runs stand, so that fences go on rising. What began and
    waits for its retry was decided upon before.
    """
    fresh = [_waiting(row) for row in rows if row["state"] != RunState.RETRY_WAIT]
    begun = [_begun(_waiting(row)) for row in rows if row["state"] == RunState.RETRY_WAIT]
    reach = held.published_through
    placed, _ = await place(connection, shard, fresh, now=held.now, reach=reach)
    fences = {row["id"]: Fence(row["fence"]) for row in rows}
    runs: dict[Fence, list[Waiting]] = {}
    for one in [*placed, *begun]:
        runs.setdefault(fences[one.id], []).append(one)
    return [
        [replace(parcel, fence=fence) for parcel in pack(shard, group)]
        for fence, group in runs.items()
    ]


def _waiting(row: Any) -> Waiting:
    return Waiting(
        row["id"],
        row["tenant_id"],
        row["due_at"],
        row["priority"],
        row["queue"],
        row["fair"],
        row["gate"],
        row["when_full"],
        None,
        row["rate_key"],
        row["job_id"],
        row["overlap"],
        row["handler"],
    )


def _begun(run: Waiting) -> Waiting:
    """One that waits goes on standing in the line of its job."""
    return run._replace(line=run.job) if POLICIES[run.overlap].waits else run
