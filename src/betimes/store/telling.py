"""News about runs that no act and no worker tells: how they ended without one, and who has them.

The members of `body` are those of the events that finishing workers write, so that a reader does
not need to know who has ended a run.
"""

from collections.abc import Iterable, Sequence
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
