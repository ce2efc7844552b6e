"""Runs that are nearly due become parcels, under the shard's epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from betimes.domain.errors import Bug
from betimes.domain.ids import NodeId, RunId, ShardId, floor_of
from betimes.domain.parcel import Lane as ParcelLane
from betimes.domain.parcel import Parcel, Waiting, pack
from betimes.domain.run import bounds
from betimes.store.database import Database
from betimes.store.overlap import place, place_together
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.shards import Claim, take

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
class Publishing:
    """The publisher's side of the queue."""

    database: Database
    node: NodeId

    async def near_due(
        self, lows: Mapping[ShardId, UUID], *, until_ms: int, most: int
    ) -> dict[ShardId, list[Waiting]]:
        """Runs without a parcel from a bound of each shard up to and including a millisecond.

        By dueness, and at most so many of each shard.
        """
        rows = await self.database.many(
            SQL["read_near_due"],
            lane=Lane.ENGINE,
            shards=list(lows),
            lows=list(lows.values()),
            low=min(lows.values()),
            high=floor_of(until_ms + 1),
            most=most,
        )
        found: dict[ShardId, list[Waiting]] = {shard: [] for shard in lows}
        for row in rows:
            shard, *values = row.values()
            found[shard].append(Waiting(*values))
        return found

    async def cursors(
        self, claims: Sequence[Claim], *, now: datetime | None
    ) -> dict[ShardId, datetime | None]:
        """How far shards of ours are published; what is no longer ours is missing.

        Waits for a commit of ours that is still under way.
        """
        listed = sorted(claims, key=lambda claim: claim.shard)
        rows = await self.database.many(
            SHARDS["hold_shards"],
            lane=Lane.ENGINE,
            shards=[claim.shard for claim in listed],
            epochs=[claim.epoch for claim in listed],
            node=self.node,
            now=now,
        )
        return {ShardId(row["shard"]): row["published_through"] for row in rows}

    async def publish(self, batches: Sequence[Batch], *, now: datetime | None) -> Published:
        """Publish several shards in one transaction.

        Fenced out is also who froze past the end of its lease, although nobody has taken the shard
        yet. Repeating it after a lost reply inserts nothing: the cursor is already there.
        """
        # In the order in which shards are acquired: nobody waits in a circle.
        ordered = sorted(batches, key=lambda one: one.claim.shard)
        bare = [one for one in ordered if not any(run.overlap for run in one.runs)]
        bound = [one for one in ordered if any(run.overlap for run in one.runs)]

        async def work(connection: Connection) -> Published:
            done = Published()
            if bound and bare:
                # One statement locks them all, so that two kinds are no two orders.
                await SHARDS["lock_shards"].fetch(
                    connection, shards=[one.claim.shard for one in ordered]
                )
            if bound:
                done.placed |= await self._publish_bound(connection, bound, now=now)
            if bare:
                done.placed |= await self._publish_bare(connection, bare, now=now)
            for batch in ordered:
                if batch.claim.shard not in done.placed:
                    await self._look_again(connection, batch, done, now=now)
            return done

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def publish_part(
        self, claim: Claim, runs: Sequence[Waiting], *, now: datetime | None
    ) -> Placed:
        """Put some runs of a millisecond into parcels that has more of them than are read at once.

        The cursor counts in milliseconds and stays before this one. So the runs themselves say that
        they are published: neither the next read nor the next owner finds them again. Repeating it
        inserts nothing.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> Placed:
            held = await take(connection, claim, node=self.node, now=now)
            low, high = bounds([run.id for run in runs])
            rows = await SQL["queue_runs"].fetch(
                connection, shard=claim.shard, runs=[run.id for run in runs], low=low, high=high
            )
            ours = {row["id"] for row in rows}
            wanted = [run for run in runs if run.id in ours]
            reach = held.published_through
            return await place_runs(connection, claim.shard, wanted, now=held.now, reach=reach)

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)

    async def _publish_bare(
        self, connection: Connection, batches: Sequence[Batch], *, now: datetime | None
    ) -> dict[ShardId, Placed]:
        """One statement moves the cursors and makes the parcels."""
        placed = {one.claim.shard: Placed(pack(one.claim.shard, one.runs)) for one in batches}
        query = SQL["publish_parcels"]
        columns = parcel_columns([parcel for one in placed.values() for parcel in one.parcels])
        rows = await query.fetch(
            connection,
            **{name: columns[name] for name in query.parameters if name in columns},
            **self._holder(batches),
            claimed=[one.claim.shard for one in batches],
            now=now,
        )
        return {ShardId(row["shard"]): placed[row["shard"]] for row in rows}

    async def _publish_bound(
        self, connection: Connection, batches: Sequence[Batch], *, now: datetime | None
    ) -> dict[ShardId, Placed]:
        """The cursors first, then the parcels as the overlap policies of their jobs say."""
        rows = await SHARDS["move_cursors"].fetch(
            connection,
            **self._holder(batches),
            shards=[one.claim.shard for one in batches],
            now=now,
        )
        if not rows:
            return {}
        moved = {row["shard"] for row in rows}
        waiting = {one.claim.shard: one.runs for one in batches if one.claim.shard in moved}
        found = await place_together(connection, waiting, now=rows[0]["now"])
        placed = {
            shard: Placed(pack(shard, runs), skipped) for shard, (runs, skipped) in found.items()
        }
        parcels = [parcel for one in placed.values() for parcel in one.parcels]
        await insert_parcels_together(connection, parcels)
        return placed

    def _holder(self, batches: Sequence[Batch]) -> dict[str, Any]:
        return {
            "node": self.node,
            "epochs": [one.claim.epoch for one in batches],
            "throughs": [one.through for one in batches],
        }

    async def _look_again(
        self, connection: Connection, batch: Batch, done: Published, *, now: datetime | None
    ) -> None:
        """Nothing was inserted: we are fenced out, or we repeat what has already been done."""
        claim = batch.claim
        rows = await SHARDS["hold_shard"].fetch(
            connection, shard=claim.shard, node=self.node, epoch=claim.epoch, now=now
        )
        if rows and rows[0]["published_through"] >= batch.through:
            done.placed[claim.shard] = Placed(pack(claim.shard, batch.runs))
        else:
            done.lost.add(claim.shard)


def parcel_columns(parcels: Sequence[Parcel]) -> dict[str, Any]:
    """Parcels as columns for the statements that insert many; `numbers` says whose each run is."""
    return {
        "shards": [parcel.shard for parcel in parcels],
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
    """Insert parcels of one shard inside the transaction that inserted their runs."""
    if any(parcel.shard != shard for parcel in parcels):
        raise Bug("a parcel of another shard")
    await insert_parcels_together(connection, parcels)


async def insert_parcels_together(connection: Connection, parcels: Sequence[Parcel]) -> None:
    """The same for parcels of several shards."""
    if parcels:
        await SQL["insert_parcels"].execute(connection, **parcel_columns(parcels))


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
