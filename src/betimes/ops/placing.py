"""Fires of a held job become runs, in the transaction of the verb that wants them."""

from collections.abc import Iterable

from betimes.domain.job import Job
from betimes.domain.parcel import Lane, Parcel
from betimes.domain.states import RunState, Trigger
from betimes.ops.grip import Grip
from betimes.ops.outlook import runs_of
from betimes.schedule import Fire
from betimes.store.occurrences import insert_planned
from betimes.store.pool import Connection
from betimes.store.publish import place_runs


async def insert_fires(
    connection: Connection,
    held: Grip,
    fires: Iterable[Fire],
    *,
    job: Job,
    lane: Lane = Lane.ON_TIME,
) -> list[Parcel]:
    """Runs for fires that have none yet, and parcels for those that are near or late."""
    runs = runs_of(
        fires,
        job.definition,
        job=job.id,
        tenant=job.tenant,
        revision=job.revision,
        near=held.near,
        planned_late=lane is Lane.CATCH_UP,
    )
    inserted = await insert_planned(connection, job.shard, runs, trigger=Trigger.SCHEDULE)
    waiting = [
        run.waiting(max(run.due_at, held.now))
        for run in runs
        if run.id in inserted and run.state is RunState.QUEUED
    ]
    placed = await place_runs(
        connection, job.shard, waiting, now=held.now, reach=held.published_through, lane=lane
    )
    return placed.parcels
