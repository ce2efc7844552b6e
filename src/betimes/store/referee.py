"""Verdicts about held runs when they are due, under the shard's epoch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from betimes.domain.ids import NodeId, ShardId, TenantId, floor_of, to_ms
from betimes.domain.run import bounds
from betimes.fairness.overlap import POLICIES
from betimes.store.ask import execute, many
from betimes.store.database import Database
from betimes.store.overlap import PARCELS, SQL, Bound, decide
from betimes.store.pool import Connection, Lane
from betimes.store.shards import Claim, take


class LetThrough(NamedTuple):
    """Where a parcel waits for a worker now."""

    queue: str
    tenant: TenantId
    visible_at: datetime
    fair: int


@dataclass(slots=True)
class Refereed:
    """What a pass has done."""

    offered: list[LetThrough] = field(default_factory=list)
    skipped: int = 0
    stayed: int = 0
    more: bool = False
    """There were more than fit into one pass."""


@dataclass(frozen=True, slots=True)
class Refereeing:
    """The referee's side of the store."""

    database: Database
    node: NodeId

    async def next_due(self, shards: Sequence[ShardId]) -> dict[ShardId, datetime]:
        """When the next verdict is due, by shard; shards without any are missing."""
        rows = await self.database.many(
            SQL["find_verdicts_due"], lane=Lane.ENGINE, shards=list(shards)
        )
        return {ShardId(row["shard"]): row["visible_at"] for row in rows}

    async def judge(self, claim: Claim, *, most: int, now: datetime | None) -> Refereed:
        """Decide about everything that is due in a shard. Safe to repeat: it reads what is.

        Raises:
            FencedOut: the shard has another owner.

        """

        async def work(connection: Connection) -> Refereed:
            held = await take(connection, claim, node=self.node, now=now)
            told, through = held.now, held.published_through
            parcels = await many(
                connection, SQL["hold_for_verdict"], shard=claim.shard, now=told, most=most
            )
            if not parcels:
                return Refereed()
            done = await _judge(connection, claim.shard, parcels, told, through)
            done.more = len(parcels) == most
            return done

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


async def _judge(
    connection: Connection,
    shard: ShardId,
    parcels: Sequence[Any],
    now: datetime,
    through: datetime | None,
) -> Refereed:
    runs = [parcel["run_id"] for parcel in parcels]
    low, high = bounds(runs)
    rows = await many(connection, SQL["read_bound_runs"], shard=shard, ids=runs, low=low, high=high)
    unended = {row["id"]: row for row in rows}
    # What is due has its parcel, also where a new owner's cursor has not come there yet.
    reach = floor_of(to_ms(now if through is None else max(through, now)) + 1)
    due = [
        _bound(parcel, unended[parcel["run_id"]], reach)
        for parcel in parcels
        if parcel["run_id"] in unended
    ]
    decided = await decide(connection, shard, due, now=now)
    stay = set(decided.stay)
    go = [parcel for parcel in parcels if parcel["run_id"] in set(decided.go)]
    gone = [
        parcel["id"]
        for parcel in parcels
        # Also those that ended while they were held: nobody else will ever look at them.
        if parcel["run_id"] in decided.skipped or parcel["run_id"] not in unended
    ]
    if go:
        ids = [parcel["id"] for parcel in go]
        await execute(connection, SQL["let_through"], shard=shard, ids=ids)
    if gone:
        await execute(connection, PARCELS["delete_parcels"], shard=shard, ids=gone)
    offered = [
        LetThrough(one["queue"], one["tenant_id"], one["visible_at"], one["fair"]) for one in go
    ]
    return Refereed(offered, len(decided.skipped), len(stay))


def _bound(parcel: Any, run: Any, reach: Any) -> Bound:
    policy = POLICIES[run["overlap"]]
    # What is skipped gives way to earlier runs only; what waits, to everything that was published.
    # The id of a run that was moved does not say what is earlier.
    below = max(run["id"], reach) if policy.waits else run["id"]
    if run["moved"]:
        below = reach
    return Bound(run["id"], parcel["tenant_id"], run["job_id"], policy, below, parcel["id"])
