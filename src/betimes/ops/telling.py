"""Events of what happens without anybody asking: in the transaction that makes it so.

What somebody asks for is told by the act itself; see `ops.acting`.
"""

from datetime import datetime
from typing import Any

from betimes.domain.ids import ShardId, TenantId, WorkerId, random_ids, to_ms, to_text
from betimes.domain.job import Job
from betimes.domain.states import JobState
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store.deliveries import tell
from betimes.store.pool import Connection
from betimes.store.telling import Completed, tell_completed, tell_ends


async def tell_job(
    desk: Desk, connection: Connection, job: Job, kind: str, *, now: datetime, **more: Any
) -> None:
    """Tell what became of a job; the caller has just written it, and did not find it so."""
    (event,) = random_ids(to_ms(now), job.shard, desk.entropy(TAIL_BYTES))
    text = to_text("job", job.id)
    body = {"job_id": text, "name": job.name, "state": job.state.name.lower(), **more}
    await tell(connection, job.tenant, kind, event=event, subject=text, body=body, now=now)


async def tell_worker(
    desk: Desk,
    connection: Connection,
    tenant: TenantId,
    worker: WorkerId,
    kind: str,
    *,
    now: datetime,
) -> None:
    """Tell what became of a worker of a tenant."""
    (event,) = random_ids(to_ms(now), desk.next_shard(), desk.entropy(TAIL_BYTES))
    text = to_text("wrk", worker)
    await tell(
        connection, tenant, kind, event=event, subject=text, body={"worker_id": text}, now=now
    )


async def tell_completion(connection: Connection, before: Job, after: Job) -> None:
    """Tell that an edit or the end of a pause has left a job without fires."""
    if after.state is JobState.COMPLETED and before.state is not JobState.COMPLETED:
        await tell_completed(connection, after.shard, [Completed(after.id, after.revision)])


async def tell_untold(desk: Desk, shard: ShardId, *, most: int = 100) -> int:
    """Tell of jobs whose last fires were planned when they were made; for the janitor."""

    async def work(connection: Connection) -> int:
        return await tell_ends(connection, shard, most=most)

    return await desk.transact(work, tenant=None)
