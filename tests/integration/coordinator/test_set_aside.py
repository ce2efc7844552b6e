"""A job that a rule sets aside keeps its account, and can be mended."""

from datetime import timedelta

from betimes.domain.ids import to_text
from betimes.domain.states import JobState
from betimes.ops import NewJob, create_job
from betimes.ops.explain import explain_job
from betimes.ops.pause import resume_job
from betimes.ops.read import get_job
from betimes.ops.update import update_job
from integration.coordinator.conftest import TENANT, World
from ops_kit import every, make_desk


async def test_a_job_that_was_set_aside_accounts_for_what_it_missed(world: World) -> None:
    desk = make_desk(world.database, world.clock)
    began = world.clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    ((schedule,),) = await world.fetch("SELECT schedule::text FROM betimes.jobs")
    await world.fetch('UPDATE betimes.jobs SET schedule = \'{"type": "nonsense"}\'')
    world.clock.advance(150)
    await world.live(2, await world.coordinator())
    assert (await get_job(desk, TENANT, job.id)).state is JobState.AUTO_PAUSED
    told = await world.fetch("SELECT subject, body ->> 'code' FROM betimes.outbox WHERE type = $1",
                             "job.auto_paused")  # fmt: skip
    assert told == [(to_text("job", job.id), "SCHEDULE_UNREADABLE")]
    (reason,) = (await explain_job(desk, TENANT, job.id, at=None)).reasons
    assert reason.code == "SCHEDULE_UNREADABLE"
    await world.fetch("UPDATE betimes.jobs SET schedule = $1::text::jsonb", schedule)
    world.clock.advance(60)
    await resume_job(desk, TENANT, job.id)
    rows = await world.fetch("SELECT fire_at, until_at, fires FROM betimes.decisions")
    assert rows == [(began + timedelta(seconds=60), began + timedelta(seconds=180), 3)]


async def test_a_job_that_was_set_aside_can_be_given_another_schedule(world: World) -> None:
    desk = make_desk(world.database, world.clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    await world.fetch('UPDATE betimes.jobs SET schedule = \'{"type": "nonsense"}\'')
    world.clock.advance(150)
    await world.live(2, await world.coordinator())
    edited = await update_job(desk, TENANT, job.id, every(30))
    assert edited.revision == 2
    resumed = await resume_job(desk, TENANT, job.id)
    assert resumed.job.state is JobState.ACTIVE
