"""News that no act and no worker tells: how runs ended without one, who has them, what is used up.

The members of `body` are those of the events that finishing workers write, so that a reader does
not need to know who has ended a run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from betimes.domain.ids import JobId, ShardId, TenantId, to_text
from betimes.domain.states import RunState
from betimes.store.ending import EVENTS
from betimes.store.jobs import to_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("telling")


class News(NamedTuple):
    """Something that happened to somebody's run."""

    shard: ShardId
    tenant: TenantId
    type: str
    subject: str
    body: dict[str, Any]


async def tell(connection: Connection, news: Sequence[News]) -> None:
    """Write it where those who asked look."""
    if news:
        await SQL["tell"].execute(
            connection,
            shards=[one.shard for one in news],
            tenants=[one.tenant for one in news],
            types=[one.type for one in news],
            subjects=[one.subject for one in news],
            bodies=[to_json(one.body) for one in news],
        )


class Completed(NamedTuple):
    """A job that was written as complete in a revision."""

    job: JobId
    revision: int
    is_single: bool = False
    """It had a single fire: told only to those who want every such end."""


async def tell_completed(
    connection: Connection, shard: ShardId, completed: Sequence[Completed]
) -> None:
    """Tell of jobs that have just come to the end of their schedules."""
    if completed:
        await SQL["tell_completed"].execute(
            connection,
            shard=shard,
            ids=[one.job for one in completed],
            revisions=[one.revision for one in completed],
            singles=[one.is_single for one in completed],
        )


async def tell_ends(connection: Connection, shard: ShardId, *, most: int) -> int:
    """Tell of jobs that were complete when they were made, once their last run is over."""
    return len(await SQL["tell_ends"].fetch(connection, shard=shard, most=most))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaNews:
    """How much of a quota is used: nearly all, or all of it."""

    type: str
    quota: str
    limit: int
    used: int


async def tell_quota(
    connection: Connection,
    shard: ShardId,
    tenant: TenantId,
    news: QuotaNews,
    *,
    now: datetime,
    pause: timedelta,
) -> bool:
    """Tell it, unless the same was told less than a pause ago; whether it was."""
    rows = await SQL["tell_quota"].fetch(
        connection,
        shard=shard,
        tenant=tenant,
        quota=news.quota,
        type=news.type,
        body=to_json({"quota": news.quota, "limit": news.limit, "used": news.used}),
        now=now,
        pause=pause,
    )
    return bool(rows)


async def tell_ended(
    connection: Connection,
    shard: ShardId,
    rows: Iterable[asyncpg.Record],
    *,
    state: RunState,
    reason: str,
) -> None:
    """Tell of runs that have just ended without a worker; rows of the statements that end them."""
    told = {"state": state.name.lower(), "reason": reason}
    await tell(connection, [about(shard, row, EVENTS[state], **told) for row in rows])


def about(shard: ShardId, row: Any, kind: str, **more: Any) -> News:
    """News about one run; the row has its id, tenant, job, queue, handler and attempt."""
    run = to_text("run", row["id"])
    body = {
        "run_id": run,
        "job_id": job_text(row["job_id"]),
        "queue": row["queue"],
        "handler": row["handler"],
        "attempt": row["attempt"],
        "next_retry_at": None,
        **more,
    }
    return News(shard, row["tenant_id"], kind, run, body)


def job_text(job: JobId | None) -> str | None:
    """The job of a run, as it is told."""
    return None if job is None else to_text("job", job)
