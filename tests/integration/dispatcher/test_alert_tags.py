"""Alert rules that select jobs by their tags."""

from betimes.domain.alert import Condition
from betimes.domain.ids import to_text
from betimes.domain.job import Job
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.update import update_job
from betimes.testing import ManualClock
from integration.dispatcher.test_alerts import (
    FIRING,
    MINUTE,
    RESOLVED,
    a_job,
    a_rule,
    a_run,
    look,
)
from ops_kit import TENANT, every, fetch


async def test_a_rule_selects_jobs_by_their_tags(desk: Desk, clock: ManualClock) -> None:
    """Those that carry all of them now: a job that is tagged later, or no longer, counts so."""

    async def tagged(name: str, tags: dict[str, str]) -> Job:
        definition = every(86_400, options={"tags": tags} if tags else {})
        return await create_job(desk, TENANT, NewJob(definition=definition, name=name))

    both = await tagged("both", {"env": "prod", "team": "billing"})
    one = await tagged("one", {"env": "prod"})
    none = await tagged("none", {})
    await a_rule(
        desk, Condition.JOB_LATE, 60, tags={"env": "prod", "team": "billing"}, name="billing"
    )
    for job in (both, one, none):
        await a_run(desk, job, 1, clock.now())
    clock.advance(2 * MINUTE)
    assert await look(desk, clock) == [(FIRING, to_text("job", both.id))]
    more = every(86_400, options={"tags": {"env": "prod", "team": "billing"}})
    await update_job(desk, TENANT, one.id, more)
    await update_job(desk, TENANT, both.id, every(86_400))
    assert set((await look(desk, clock))[1:]) == {
        (RESOLVED, to_text("job", both.id)),
        (FIRING, to_text("job", one.id)),
    }
    await fetch(desk.database, "DELETE FROM betimes.jobs WHERE id = $1", one.id)
    left = await fetch(desk.database, "SELECT job_id FROM betimes.job_tags")
    assert left == [], "what is gone carries nothing"


async def test_a_rule_whose_tags_nobody_carries_finds_nothing(
    desk: Desk, clock: ManualClock
) -> None:
    """It does not become a rule about every job."""
    job = await a_job(desk)
    await a_rule(desk, Condition.JOB_MISSED, 1, tags={"env": "prod"})
    await fetch(
        desk.database,
        "INSERT INTO betimes.decisions (shard, job_id, tenant_id, decided_at, fire_at, revision,"
        " code, fires) VALUES ($1, $2, $3, $4, $4, 1, 'CATCHUP_DROPPED', 7) RETURNING 1",
        job.shard,
        job.id,
        TENANT,
        clock.now(),
    )
    assert await look(desk, clock) == []
