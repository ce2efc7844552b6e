"""Fires of a held job become runs, in the transaction of the verb that wants them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from betimes.domain.ids import RunId, successor
from betimes.domain.job import Job
from betimes.domain.parcel import Lane, Parcel
from betimes.domain.states import RunState, Trigger
from betimes.ops.grip import Grip
from betimes.ops.outlook import runs_of
from betimes.schedule import Fire
from betimes.store.control import drop_stopped
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
    near: datetime | None = None,
    instead_of: Mapping[datetime, RunId] | None = None,
) -> list[Parcel]:
    """Runs for fires that have none yet, and parcels for those that are near or late.

    `instead_of` are fires whose runs are over without having begun. They get new ones under ids of
    their own: a publisher may have read the old ones, and would make a second parcel for them. An
    id that was in a parcel is never given again, so such a run is put into a parcel at once: what
    waits for the publisher may be forgotten and planned again under its first id.
    """
    runs = runs_of(
        fires,
        job.definition,
        job=job.id,
        tenant=job.tenant,
        revision=job.revision,
        near=held.near if near is None else near,
        planned_late=lane is Lane.CATCH_UP,
    )
    if instead_of:
        over = {
            run.id: instead_of[run.fire_at]
            for run in runs
            if run.fire_at is not None and run.fire_at in instead_of
        }
        await drop_stopped(connection, job.shard, list(over.values()))
        runs = [
            replace(run, id=successor(over[run.id]), state=RunState.QUEUED)
            if run.id in over
            else run
            for run in runs
        ]
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
