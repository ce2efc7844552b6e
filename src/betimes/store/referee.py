"""Verdicts about held runs when they are due, under the epochs of their shards."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.ids import NodeId, ShardId, TenantId, floor_of, to_ms
from betimes.domain.run import bounds
from betimes.fairness.overlap import POLICIES
from betimes.store.ask import execute, many
from betimes.store.database import Database
from betimes.store.overlap import SQL, Bound, decide
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load
from betimes.store.shards import Claim

SHARDS = load("shards")


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

    async def judge(
        self, claims: Sequence[Claim], *, most: int, now: datetime | None
    ) -> dict[ShardId, Refereed]:
        """Decide about everything that is due in some shards, so much of each at most.

        Safe to repeat: it reads what is. Shards that have another owner are missing in the answer.
        """
        listed = sorted(claims, key=lambda claim: claim.shard)

        async def work(connection: Connection) -> dict[ShardId, Refereed]:
            held = await many(
                connection,
                SHARDS["take_shards"],
                shards=[claim.shard for claim in listed],
                epochs=[claim.epoch for claim in listed],
                node=self.node,
                now=now,
            )
            done = {ShardId(row["shard"]): Refereed() for row in held}
            if not held:
                return done
            told = held[0]["now"]
            parcels = await many(
                connection, SQL["hold_for_verdict"], shards=list(done), now=told, most=most
            )
            if parcels:
                through = {row["shard"]: row["published_through"] for row in held}
                await _judge(connection, done, parcels, told, through)
            for shard, many_of in Counter(parcel["shard"] for parcel in parcels).items():
                done[shard].more = many_of == most
            return done

        return await self.database.transact(work, lane=Lane.ENGINE, repeatable=True)


async def _judge(
    connection: Connection,
    done: dict[ShardId, Refereed],
    parcels: Sequence[Any],
    now: datetime,
    through: Mapping[ShardId, datetime | None],
) -> None:
    runs = [parcel["run_id"] for parcel in parcels]
    low, high = bounds(runs)
    rows = await many(
        connection,
        SQL["read_bound_runs"],
        shards=[parcel["shard"] for parcel in parcels],
        ids=runs,
        low=low,
        high=high,
    )
    unended = {row["id"]: row for row in rows}
    due = [
        _bound(parcel, unended[parcel["run_id"]], _reach(through[parcel["shard"]], now))
        for parcel in parcels
        if parcel["run_id"] in unended
    ]
    decided = await decide(connection, due, now=now)
    go, stay = set(decided.go), set(decided.stay)
    gone = []
    for parcel in parcels:
        of_shard, run = done[parcel["shard"]], parcel["run_id"]
        if run in go:
            where = parcel["queue"], parcel["tenant_id"], parcel["visible_at"], parcel["fair"]
            of_shard.offered.append(LetThrough(*where))
        # Also those that ended while they were held: nobody else will ever look at them.
        elif run in decided.skipped or run not in unended:
            of_shard.skipped += run in decided.skipped
            gone.append(parcel)
        else:
            of_shard.stayed += run in stay
    await _write(connection, "let_through", [one for one in parcels if one["run_id"] in go])
    await _write(connection, "delete_judged", gone)


async def _write(connection: Connection, statement: str, parcels: Sequence[Any]) -> None:
    if parcels:
        shards, ids = [one["shard"] for one in parcels], [one["id"] for one in parcels]
        await execute(connection, SQL[statement], shards=shards, ids=ids)


def _reach(through: datetime | None, now: datetime) -> UUID:
    """What is due has its parcel, also where a new owner's cursor has not come there yet."""
    return floor_of(to_ms(now if through is None else max(through, now)) + 1)


def _bound(parcel: Any, run: Any, reach: UUID) -> Bound:
    policy = POLICIES[run["overlap"]]
    # What is skipped gives way to earlier runs only; what waits, to everything that was published.
    # The id of a run that was moved does not say what is earlier.
    below = max(run["id"], reach) if policy.waits else run["id"]
    if run["moved"]:
        below = reach
    return Bound(
        run["id"], parcel["shard"], parcel["tenant_id"], run["job_id"], policy, below, parcel["id"]
    )
