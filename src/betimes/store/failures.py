"""A job that fails so many times in a row is paused, in the transaction of its last failure.

Counted from the rows of its runs: the newest ones that succeeded or died since the job was last
edited, paused or resumed. So nothing has to be reset, and a crash cannot miscount.
"""

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from betimes.domain.ids import JobId, ShardId, TenantId, compose, floor_of, to_ms, to_text, to_us
from betimes.domain.job import GAP_FROM
from betimes.domain.states import RunState
from betimes.store.ask import execute, many, one
from betimes.store.control import drop_unpublished, freeze
from betimes.store.jobs import hold_jobs
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.telling import tell_ended

SQL = load("failures")
JOB_AUTO_PAUSED = "JOB_AUTO_PAUSED"


class AutoPaused(NamedTuple):
    """A job that was paused by the rule, after how many failures."""

    job: JobId
    tenant: TenantId
    failures: int


async def hold_pausing(
    connection: Connection,
    shard: ShardId,
    jobs: Collection[JobId],
    *,
    following: Collection[JobId] = (),
) -> frozenset[JobId]:
    """Lock, before any parcel, what the ends of runs may have to write about their jobs.

    `jobs` are those whose runs die, `following` those whose next fire follows. Answers which of the
    former pause after some failures: for them the shard is frozen, too, as for a pause by hand.
    """
    found: frozenset[JobId] = frozenset()
    if jobs:
        rows = await many(connection, SQL["find_pausing_jobs"], shard=shard, jobs=list(jobs))
        found = frozenset(row["id"] for row in rows)
    if found:
        await freeze(connection, shard, now=None)
    await hold_jobs(connection, shard, {*found, *following})
    return found


async def pause_failing(
    connection: Connection,
    shard: ShardId,
    jobs: Collection[JobId],
    *,
    now: datetime,
    margin: timedelta,
) -> list[AutoPaused]:
    """Pause those of the jobs whose last runs have all died, as many as their schedule says.

    The caller has held them before it locked any parcel, with `hold_pausing`.
    """
    if not jobs:
        return []
    paused: list[AutoPaused] = []
    for row in await many(connection, SQL["lock_failing_jobs"], shard=shard, jobs=list(jobs)):
        counted = await one(
            connection,
            SQL["count_failures"],
            shard=shard,
            job=row["id"],
            since=row["updated_at"],
            most=row["most"],
        )
        if counted["dead"] >= row["most"]:
            await _pause(connection, shard, row, now, margin)
            paused.append(AutoPaused(row["id"], row["tenant_id"], row["most"]))
    return paused


async def _pause(
    connection: Connection, shard: ShardId, row: Any, now: datetime, margin: timedelta
) -> None:
    """As a pause by hand: forget what no publisher can have read, end what lies nearer."""
    frozen = await freeze(connection, shard, now=now)
    # `now` is when the worker says that it ended: the cursor may know of a later time.
    near = max(now, frozen.published_through or now) + margin
    forgotten = await drop_unpublished(connection, shard, row["id"], low=floor_of(to_ms(near) + 1))
    reason: dict[str, Any] = {"code": JOB_AUTO_PAUSED, "failures": row["most"]}
    following = [*forgotten, *([row["next_fire_at"]] if row["next_fire_at"] else [])]
    if following:
        # Everything before it has a run; resuming accounts for what follows.
        reason[GAP_FROM] = to_us(min(following))
    await many(
        connection,
        SQL["pause_failing_job"],
        shard=shard,
        job=row["id"],
        now=now,
        forgotten=len(forgotten),
        reason=json.dumps(reason),
    )
    skipped = await many(
        connection,
        SQL["skip_planned_runs"],
        shard=shard,
        job=row["id"],
        low=floor_of(to_ms(now)),
        now=now,
        reason=JOB_AUTO_PAUSED,
    )
    await tell_ended(connection, shard, skipped, state=RunState.SKIPPED, reason=JOB_AUTO_PAUSED)
    job = to_text("job", row["id"])
    await execute(
        connection,
        SQL["tell_auto_paused"],
        shard=shard,
        id=compose(to_ms(now), shard, row["id"].int),
        tenant=row["tenant_id"],
        subject=job,
        body=json.dumps({"job_id": job, **reason}),
        now=now,
    )
