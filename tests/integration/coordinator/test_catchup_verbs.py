"""What a job missed before somebody ended or edited it stays accounted for."""

from collections import Counter

import pytest

from betimes.ops.create import NewJob, create_job
from betimes.ops.end import cancel_job, delete_job
from betimes.ops.update import update_job
from integration.coordinator.conftest import TENANT, World
from integration.coordinator.test_catchup import ALL, HOUR, catch_up
from ops_kit import every, make_desk


@pytest.mark.parametrize("verb", ["cancel", "delete"])
async def test_what_a_job_missed_before_it_ended_is_recorded(world: World, verb: str) -> None:
    desk = make_desk(world.database, world.clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60, schedule={"catchup": ALL})))
    first = job.next_fire_at
    world.clock.advance(HOUR)
    if verb == "cancel":
        await cancel_job(desk, TENANT, job.id)
    else:
        await delete_job(desk, TENANT, job.id)
    await catch_up(world)
    rows = await world.fetch("SELECT fire_at, code FROM betimes.decisions ORDER BY 1")
    code = "JOB_CANCELLED" if verb == "cancel" else "JOB_DELETED"
    assert Counter(found for _, found in rows) == {code: 60}
    assert rows[0][0] == first
    assert await world.fires(job.id) == []


async def test_what_a_job_missed_before_an_edit_runs_as_it_was_then(world: World) -> None:
    desk = make_desk(world.database, world.clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60, schedule={"catchup": ALL})))
    world.clock.advance(HOUR)
    await update_job(desk, TENANT, job.id, every(3600, queue="other"))
    await catch_up(world)
    rows = await world.fetch(
        "SELECT revision, queue, count(*) FROM betimes.runs WHERE fire_at <= $1 GROUP BY 1, 2",
        world.clock.now(),
    )
    assert rows == [(1, "default", 60)]
