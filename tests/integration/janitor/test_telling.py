"""What happens to jobs without anybody asking is told once, in the transaction that makes it so."""

from betimes.domain.ids import compose, to_ms, to_text
from betimes.domain.job import AfterCompletion
from betimes.janitor.errands import Errands
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.pause import pause_job
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.prune import Pruning
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from ops_kit import HOUR, MINUTE, TENANT, every, fetch, lost_reply, make_desk, once


async def told(desk: Desk) -> list[tuple[str, str]]:
    rows = await fetch(desk.database, "SELECT type, subject FROM betimes.outbox ORDER BY id")
    return [(row["type"], row["subject"]) for row in rows]


async def test_a_pause_by_rule_is_told_once_also_when_the_reply_is_lost(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    with lost_reply(clock):
        await pause_job(desk, TENANT, job.id, reason="410", actor="betimes", by_rule=True)
    await pause_job(desk, TENANT, job.id, reason="410 again", actor="betimes", by_rule=True)
    assert await told(desk) == [("job.auto_paused", to_text("job", job.id))]


async def test_the_end_of_a_pause_is_told(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    await pause_job(desk, TENANT, job.id, until=clock.now() + HOUR, actor="me")
    errands = Errands(desk=desk, clock=clock, telemetry=Telemetry(clock=clock))
    clock.advance(HOUR + MINUTE)
    with lost_reply(clock):
        await errands.tick()
    await errands.tick()
    assert await told(desk) == [("job.resumed", to_text("job", job.id))]


async def test_a_job_that_goes_when_it_is_done_is_told(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    definition = once(clock.now() + HOUR, after_completion=AfterCompletion.DELETE)
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute("UPDATE betimes.jobs SET state = 3, next_fire_at = NULL")
    errands = Errands(desk=desk, clock=clock, telemetry=Telemetry(clock=clock))
    await errands.tick()
    await errands.tick()
    assert await told(desk) == [("job.deleted", to_text("job", job.id))]


async def test_a_worker_that_is_heard_of_no_more_is_told(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    ours, theirs = (compose(to_ms(clock.now()), 0, number) for number in (1, 2))
    async with database.connection(Lane.ENGINE) as connection:
        for worker, tenant in ((ours, None), (theirs, TENANT)):
            await connection.execute(
                "INSERT INTO betimes.workers (id, tenant_id, name, queues, slots, started_at,"
                " heartbeat_at) VALUES ($1, $2, 'w', '{default}', 1, $3, $3)",
                worker,
                tenant,
                clock.now(),
            )
    clock.advance(2 * HOUR)
    assert await Pruning(database).silent(after=HOUR, now=clock.now()) == 2
    # The service's own workers are nobody's.
    assert await told(desk) == [("worker.offline", to_text("wrk", theirs))]
