"""Ending a run in spite of the worker that holds it.

The end is written under a fence above the worker's, as if somebody else had taken the run over:
whatever the worker reports later finds its lease lost, and so does whatever it writes elsewhere
under its old fence.
"""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from betimes.domain.errors import Bug
from betimes.domain.ids import Fence, ShardId
from betimes.domain.outcome import OutcomeKind
from betimes.domain.run import Run
from betimes.domain.states import RunState, Trigger
from betimes.store.ask import execute
from betimes.store.control import HeldParcel
from betimes.store.ending import Attempted, Ending, Follow, follow_of
from betimes.store.finish import Held, write_endings
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.release import Freed
from betimes.store.remote import specs, wanted

FINISH = load("finish")


async def end_by_force(
    connection: Connection,
    run: Run,
    parcel: HeldParcel,
    *,
    reason: str,
    now: datetime,
    margin: timedelta,
) -> Freed:
    """Cancel a run that is not over, out of a leased parcel that the caller has locked.

    Before the parcel it has held the job of the run, whose next fire may follow. It releases what
    is freed, when it needs no more parcels.
    """
    if parcel.worker is None:
        raise Bug("only what a worker holds is ended by force")
    ending = Ending(
        run=run.id,
        parcel=parcel.id,
        fence=Fence(parcel.fence + 1),
        holder_fence=parcel.fence,
        tenant=run.tenant,
        queue=run.queue,
        priority=run.priority,
        job=run.job,
        handler=run.handler,
        state=RunState.CANCELLED,
        attempt=run.attempt + parcel.deliveries,
        started_at=None,
        ended_at=now,
        reason=reason,
        attempted=Attempted(OutcomeKind.CANCELLED, None),
        follow=await following(connection, run, now),
    )
    held = Held({(parcel.id, parcel.fence)}, pausing=frozenset())
    await write_endings(connection, parcel.worker, run.shard, held, [ending], margin=margin)
    # When it began is not known here, but it has begun: no token comes back.
    return replace(held.freed, unstarted=Counter())


async def follow_on(connection: Connection, shard: ShardId, follow: Follow) -> None:
    """Give a job its next fire, after the end of its run; the caller holds the job."""
    await execute(
        connection,
        FINISH["follow_jobs"],
        shard=shard,
        runs=[follow.run],
        jobs=[follow.job],
        revisions=[follow.revision],
        next_fires=[follow.next_fire_at],
    )


async def following(connection: Connection, run: Run, now: datetime) -> Follow | None:
    """A fixed delay counts from this end as from any other; None where nothing follows."""
    if run.job is None or run.revision is None or run.trigger is not Trigger.SCHEDULE:
        return None
    rows = await wanted(connection, run.shard, [run.id])
    if run.id not in rows:
        return None
    spec = (await specs(connection, run.shard, list(rows.values())))[run.id]
    return follow_of(run, spec.fixed_delay, now)
