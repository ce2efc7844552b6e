"""Runs that wait or are under way, as the verbs of control find and change them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from betimes.domain.ids import (
    Fence,
    JobId,
    ParcelId,
    RunId,
    ShardId,
    TenantId,
    WorkerId,
    shard_of,
)
from betimes.domain.run import bounds
from betimes.domain.states import RunState, Trigger
from betimes.store.ask import execute, many, one
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.telling import tell_ended

SQL = load("control")
SHARDS = load("shards")
PARCELS = load("parcels")
FINISH = load("finish")
ROWS_MAX = 10_000
AFTER_THIS_ATTEMPT = datetime(9999, 1, 1, tzinfo=UTC)
"""As a time to end: never told to the worker, but no later attempt starts."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A shard whose cursor stands still until our transaction ends."""

    published_through: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A run that is not over, as far as the verbs care."""

    id: RunId
    due_at: datetime
    fire_at: datetime | None
    state: RunState
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class HeldParcel:
    """A parcel we have locked."""

    id: ParcelId
    worker: WorkerId | None
    fence: Fence
    runs: tuple[RunId, ...]
    deliveries: int = 0


async def freeze(connection: Connection, shard: ShardId, *, now: datetime | None) -> Frozen:
    """Keep publisher and takeover waiting until this transaction ends."""
    row = await one(connection, SHARDS["freeze_shard"], shard=shard, now=now)
    return Frozen(row["published_through"], row["now"])


async def find_parcelled(
    connection: Connection, shard: ShardId, tenant: TenantId, job: JobId
) -> list[RunId]:
    """Runs of a job that are in parcels and not over; the history of the job is not read."""
    rows = await many(connection, SQL["find_parcelled"], shard=shard, tenant=tenant, job=job)
    return [row["id"] for row in rows]


async def find_planned(
    connection: Connection, shard: ShardId, job: JobId, *, low: UUID
) -> list[PlannedRow]:
    """Runs of a job from an id on that are not over."""
    rows = await many(connection, SQL["find_planned"], shard=shard, job=job, low=low, most=ROWS_MAX)
    return [
        PlannedRow(
            row["id"],
            row["due_at"],
            row["fire_at"],
            RunState(row["state"]),
            Trigger(row["trigger"]),
        )
        for row in rows
    ]


async def find_fires(
    connection: Connection,
    shard: ShardId,
    job: JobId,
    *,
    low: UUID,
    first: datetime,
    last: datetime,
) -> dict[datetime, tuple[RunId, RunState]]:
    """The fires in a span that have a run, by fire time."""
    rows = await many(
        connection,
        SQL["find_fires"],
        shard=shard,
        job=job,
        low=low,
        first=first,
        last=last,
        most=ROWS_MAX,
    )
    return {row["fire_at"]: (row["id"], RunState(row["state"])) for row in rows}


async def find_stopped(
    connection: Connection, shard: ShardId, job: JobId, *, low: UUID, reasons: Sequence[str]
) -> dict[datetime, RunId]:
    """Fires from an id on that a pause ended before they began, and their runs."""
    rows = await many(
        connection,
        SQL["find_stopped"],
        shard=shard,
        job=job,
        low=low,
        reasons=list(reasons),
        most=ROWS_MAX,
    )
    return {row["fire_at"]: row["id"] for row in rows}


async def last_strange(
    connection: Connection, shard: ShardId, job: JobId, *, low: UUID
) -> datetime | None:
    """The last fire from an id on that has an account which no planner would recognise."""
    (row,) = await many(connection, SQL["read_last_strange"], shard=shard, job=job, low=low)
    strange: datetime | None = row["fire_at"]
    return strange


async def drop_stopped(connection: Connection, shard: ShardId, runs: Sequence[RunId]) -> None:
    """Delete runs that a pause has ended, in favour of others for the same fires."""
    if runs:
        low, high = bounds(runs)
        await many(
            connection, SQL["drop_stopped"], shard=shard, runs=list(runs), low=low, high=high
        )


async def hold(
    connection: Connection, shard: ShardId, tenant: TenantId, runs: Iterable[RunId]
) -> dict[RunId, HeldParcel]:
    """Lock the parcels that hold these runs; runs in no parcel are missing from the answer."""
    wanted, found = set(runs), dict[RunId, HeldParcel]()
    # Twice, because a lease we waited for may have split a parcel: the rest is a new row.
    for _ in range(2):
        missing = wanted - found.keys()
        if not missing:
            break
        rows = await many(
            connection, SQL["hold_parcelled"], shard=shard, tenant=tenant, runs=list(missing)
        )
        for row in rows:
            parcel = HeldParcel(
                row["id"],
                row["worker_id"],
                row["fence"],
                tuple(row["run_ids"]),
                row["deliveries"],
            )
            found |= {run: parcel for run in parcel.runs if run in wanted}
        if not rows:
            break
    return found


async def take_out(connection: Connection, shard: ShardId, held: dict[RunId, HeldParcel]) -> None:
    """Take runs out of the parcels that hold them; an empty parcel goes."""
    for parcel in {parcel.id: parcel for parcel in held.values()}.values():
        gone = [run for run in parcel.runs if run in held]
        if len(gone) == len(parcel.runs):
            await execute(connection, PARCELS["delete_parcels"], shard=shard, ids=[parcel.id])
        else:
            await execute(connection, FINISH["shrink_parcel"], shard=shard, id=parcel.id, gone=gone)


async def drop_unpublished(
    connection: Connection, shard: ShardId, job: JobId, *, low: UUID
) -> list[datetime]:
    """Delete planned runs from an id on; returns their fire times."""
    rows = await many(connection, SQL["drop_unpublished"], shard=shard, job=job, low=low)
    return sorted(row["fire_at"] for row in rows)


async def end_runs(
    connection: Connection,
    shard: ShardId,
    runs: Sequence[RunId],
    *,
    state: RunState,
    reason: str,
    now: datetime,
) -> set[RunId]:
    """Write an end into rows that have none yet, and tell it."""
    if not runs:
        return set()
    low, high = bounds(runs)
    rows = await many(
        connection,
        SQL["end_runs"],
        shard=shard,
        runs=list(runs),
        low=low,
        high=high,
        state=int(state),
        reason=reason,
        now=now,
    )
    await tell_ended(connection, shard, rows, state=state, reason=reason)
    return {row["id"] for row in rows}


async def renew_revision(
    connection: Connection,
    shard: ShardId,
    runs: Sequence[RunId],
    *,
    revision: int,
    handler: str | None,
) -> set[RunId]:
    """Let runs that wait be done as their job is now."""
    if not runs:
        return set()
    low, high = bounds(runs)
    rows = await many(
        connection,
        SQL["renew_revision"],
        shard=shard,
        runs=list(runs),
        low=low,
        high=high,
        revision=revision,
        handler=handler,
    )
    return {row["id"] for row in rows}


async def ask_to_end(
    connection: Connection,
    shard: ShardId,
    runs: Sequence[RunId],
    *,
    at: datetime,
    reason: str,
    by: datetime | None = None,
) -> set[RunId]:
    """Ask for the end of runs that workers hold; what has not ended `by` then is ended by force."""
    if not runs:
        return set()
    low, high = bounds(runs)
    rows = await many(
        connection,
        SQL["ask_to_end"],
        shard=shard,
        runs=list(runs),
        low=low,
        high=high,
        at=at,
        by=by,
        reason=reason,
    )
    return {row["id"] for row in rows}


async def keep_words(connection: Connection, run: RunId, words: str) -> None:
    """Keep what somebody said when a run was cancelled; nothing takes back what was said before."""
    await execute(connection, SQL["keep_words"], shard=shard_of(run), run=run, words=words or None)
