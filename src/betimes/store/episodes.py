"""Episodes of catching up as people see them, and what becomes of late work that waits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import asyncpg

from betimes.domain.ids import JobId, RunId, ShardId, TenantId, shard_of
from betimes.domain.parcel import Lane, rank_of
from betimes.domain.run import bounds
from betimes.store import ask
from betimes.store.ask import execute, many, maybe
from betimes.store.joining import EpisodeState
from betimes.store.occurrences import Dropped, insert_decisions
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("catchup")
PARCELS = load("parcels")
DROPPED = "CATCHUP_DROPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catchup:
    """An episode."""

    id: UUID
    tenant: TenantId
    state: EpisodeState
    opened_at: datetime
    found_at: datetime
    paced_through: datetime
    first_fire_at: datetime
    last_fire_at: datetime
    runs: int
    held: int
    released: int
    dropped: int
    per_second: float
    decided_at: datetime | None
    decided_by: str | None
    reason: str | None

    @property
    def shard(self) -> ShardId:
        """Its id says where it lives."""
        return shard_of(self.id)


@dataclass(frozen=True, slots=True)
class QueueShare:
    """What waits for approval in one queue."""

    queue: str
    runs: int


@dataclass(frozen=True, slots=True)
class JobShare:
    """What waits for approval of one job."""

    job: JobId
    runs: int
    first_fire_at: datetime
    last_fire_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLate:
    """A parcel that waits for approval, locked."""

    shard: ShardId
    id: UUID
    tenant: TenantId
    queue: str
    priority: int
    visible_at: datetime
    runs: Sequence[RunId]


async def list_catchups(
    connection: Connection, tenant: TenantId, *, before: UUID, most: int
) -> list[Catchup]:
    """A page of episodes, newest first."""
    rows = await many(connection, SQL["list_catchups"], tenant=tenant, before=before, most=most)
    return [_catchup(row) for row in rows]


async def read_catchup(connection: Connection, catchup: UUID) -> Catchup | None:
    """One episode."""
    row = await maybe(connection, SQL["read_catchup"], shard=shard_of(catchup), id=catchup)
    return None if row is None else _catchup(row)


async def hold_catchup(connection: Connection, catchup: UUID) -> Catchup | None:
    """One episode, held until the transaction ends."""
    row = await maybe(connection, SQL["hold_catchup"], shard=shard_of(catchup), id=catchup)
    return None if row is None else _catchup(row)


async def waiting_by_queue(connection: Connection, catchup: UUID, *, most: int) -> list[QueueShare]:
    """What of it waits for approval, by queue."""
    rows = await many(connection, SQL["count_held_by_queue"], episode=catchup, most=most)
    return [QueueShare(row["queue"], row["runs"]) for row in rows]


async def waiting_by_job(connection: Connection, catchup: UUID, *, most: int) -> list[JobShare]:
    """What of it waits for approval, by job."""
    rows = await many(connection, SQL["count_held_by_job"], episode=catchup, most=most)
    return [JobShare(*row.values()) for row in rows]


async def decide(
    connection: Connection,
    catchup: Catchup,
    state: EpisodeState,
    *,
    now: datetime,
    actor: str | None,
    reason: str,
) -> Catchup:
    """Write a decision about an episode that waits and that the caller holds."""
    await maybe(
        connection,
        SQL["decide_catchup"],
        shard=catchup.shard,
        id=catchup.id,
        state=int(state),
        now=now,
        actor=actor,
        reason=reason or None,
    )
    return replace(catchup, state=state, decided_at=now, decided_by=actor, reason=reason or None)


async def decided(connection: Connection, shard: ShardId, *, most: int) -> list[UUID]:
    """Episodes of a shard whose decision is not carried out yet."""
    rows = await many(connection, SQL["find_decided"], shard=shard, most=most)
    return [row["id"] for row in rows]


async def lock_held(connection: Connection, catchup: UUID, *, most: int) -> list[HeldLate]:
    """The next parcels of an episode that wait."""
    rows = await many(connection, SQL["lock_held_parcels"], episode=catchup, most=most)
    return [
        HeldLate(
            shard=ShardId(row["shard"]),
            id=row["id"],
            tenant=row["tenant_id"],
            queue=row["queue"],
            priority=row["priority"],
            visible_at=row["visible_at"],
            runs=row["run_ids"],
        )
        for row in rows
    ]


async def release(
    connection: Connection, parcels: Sequence[HeldLate], turns: Sequence[datetime]
) -> None:
    """Offer parcels, each at its turn."""
    visible = [max(turn, parcel.visible_at) for parcel, turn in zip(parcels, turns, strict=True)]
    await execute(
        connection,
        SQL["release_parcels"],
        shards=[parcel.shard for parcel in parcels],
        ids=[parcel.id for parcel in parcels],
        visible=visible,
        ranks=[
            rank_of(at, parcel.priority, Lane.CATCH_UP)
            for parcel, at in zip(parcels, visible, strict=True)
        ],
    )


async def drop(connection: Connection, parcels: Sequence[HeldLate], *, now: datetime) -> int:
    """Late runs become decisions; how many there were that had not ended otherwise."""
    by_shard: dict[ShardId, list[HeldLate]] = {}
    for parcel in parcels:
        by_shard.setdefault(parcel.shard, []).append(parcel)
    gone = 0
    for shard, mine in by_shard.items():
        runs = [run for parcel in mine for run in parcel.runs]
        low, high = bounds(runs)
        rows = await many(
            connection, SQL["drop_late_runs"], shard=shard, runs=runs, low=low, high=high
        )
        gone += len(rows)
        dropped = [
            Dropped(
                job=row["job_id"],
                tenant=row["tenant_id"],
                fire_at=row["fire_at"],
                until_at=None,
                fires=1,
                revision=row["revision"],
                code=DROPPED,
            )
            for row in rows
        ]
        await insert_decisions(connection, shard, dropped, now=now)
        await execute(
            connection,
            PARCELS["delete_parcels"],
            shard=shard,
            ids=[parcel.id for parcel in mine],
        )
    return gone


async def paced_through(connection: Connection, tenant: TenantId) -> datetime:
    """Up to when turns of the tenant are given out."""
    row = await ask.one(connection, SQL["read_paced_through"], tenant=tenant)
    answer: datetime = row["paced_through"]
    return answer


async def note_carried_out(
    connection: Connection,
    catchup: Catchup,
    *,
    runs: int,
    released: int,
    dropped: int,
    through: datetime,
) -> None:
    """Write down how far a decision is carried out."""
    await execute(
        connection,
        SQL["carry_out_catchup"],
        shard=catchup.shard,
        id=catchup.id,
        runs=runs,
        released=released,
        dropped=dropped,
        paced_through=through,
    )


async def end_catchup(connection: Connection, catchup: Catchup) -> None:
    """Nothing of it waits any more."""
    await execute(connection, SQL["end_catchup"], shard=catchup.shard, id=catchup.id)


def _catchup(row: asyncpg.Record) -> Catchup:
    return Catchup(
        id=row["id"],
        tenant=row["tenant_id"],
        state=EpisodeState(row["state"]),
        **{
            name: row[name]
            for name in (
                *("opened_at", "found_at", "paced_through", "first_fire_at", "last_fire_at"),
                *("runs", "held", "released", "dropped", "per_second"),
                *("decided_at", "decided_by", "reason"),
            )
        },
    )
