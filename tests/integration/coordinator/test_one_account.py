"""Every fire is a run or a decision, never both and never twice, whatever came between.

The publisher hangs, so that planned fires lie unpublished beyond the cursor; meanwhile somebody
pauses, resumes, edits or skips, and then the shards change hands.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from betimes.coordinator.recovery import Recovery
from betimes.coordinator.service import Coordinator
from betimes.domain.errors import FencedOut
from betimes.domain.ids import JobId
from betimes.domain.job import Definition, Job
from betimes.ops import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.gap import Missed
from betimes.ops.manual import skip_next
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.update import update_job
from betimes.store.consistency import Checker
from integration.coordinator.conftest import SETTINGS, TENANT, World
from ops_kit import every, make_desk

PERIOD = timedelta(seconds=5)
POLICY = pytest.mark.parametrize("policy", ["none", "latest", "all"])
SKIPPED = 7


def often(policy: str, seconds: int = 5, **more: object) -> Definition:
    caught = {"catchup": {"policy": policy, "window": "PT1H", "max": 1000}, "overlap": "allow"}
    return every(seconds, schedule={**caught, **more})


async def hanging(world: World, definition: Definition) -> tuple[Desk, Job]:
    """A job that is planned minutes ahead, and a publisher that has just stopped."""
    desk = make_desk(world.database, world.clock)
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    await world.live(20, await world.coordinator())
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    return desk, job


async def only_plans(world: World) -> Coordinator:
    """A coordinator that loses its shards when it has planned what is on time."""

    async def lose(*_: object) -> None:
        raise FencedOut("the shard has another owner")

    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    kept = Recovery.recover
    Recovery.recover = lose  # type: ignore[method-assign, assignment]
    try:
        await coordinator.planner.tick()
    finally:
        Recovery.recover = kept  # type: ignore[method-assign]
    return coordinator


async def taken_over(world: World, *, after: float) -> datetime:
    """Nobody is there for a while; then somebody recovers, settles and publishes."""
    world.clock.advance(after)
    back = world.clock.now()
    await world.live(20, await world.coordinator())
    assert await world.fetch("SELECT job_id FROM betimes.gaps") == []
    return back


async def check_accounts(world: World, job: JobId, *, since: datetime, until: datetime) -> None:
    """Each fire of a span has exactly one account, and every range counts its fires."""
    rows: Any = await world.fetch(
        "SELECT fire_at, state FROM betimes.runs WHERE job_id = $1 AND trigger IN (0, 3)", job
    )
    accounts: Counter[datetime] = Counter(fire for fire, _ in rows)
    skipped = {fire for fire, state in rows if state == SKIPPED}
    decided: Any = await world.fetch(
        "SELECT fire_at, coalesce(until_at, fire_at), fires, code FROM betimes.decisions"
        " WHERE job_id = $1 AND fire_at <= $2 ORDER BY 1",
        job,
        until,
    )
    for first, last, fires, code in decided:
        inside = [first + PERIOD * step for step in range((last - first) // PERIOD + 1)]
        assert fires == len(inside), f"{code} counts {fires}, and there are {len(inside)} fires"
        accounts.update(fire for fire in inside if fire not in skipped)
    fire = since + PERIOD - timedelta(seconds=since.timestamp() % 5)
    expected = []
    while fire <= until:
        expected.append(fire)
        fire += PERIOD
    wrong = {fire: accounts[fire] for fire in expected if accounts[fire] != 1}
    assert not wrong, "these fires have no account, or more than one"
    (counted,) = await world.fetch("SELECT fires FROM betimes.jobs WHERE id = $1", job)
    assert counted == (len(rows),)
    checked = await Checker(world.database).check(now=world.clock.now())
    assert [one.sentence for one in checked.found] == []
    in_parcels: Any = await world.fetch("SELECT unnest(run_ids) FROM betimes.parcels")
    assert len(set(in_parcels)) == len(in_parcels), "a run is in two parcels"


@POLICY
@pytest.mark.parametrize("missed", list(Missed))
async def test_a_pause_behind_a_hanging_publisher(
    world: World, policy: str, missed: Missed
) -> None:
    """Paused and resumed while fires from before lie unpublished; the job is behind then."""
    began = world.clock.now()
    desk, job = await hanging(world, often(policy))
    await pause_job(desk, TENANT, job.id)
    world.clock.advance(31)
    await resume_job(desk, TENANT, job.id, missed=missed)
    back = await taken_over(world, after=80)
    await check_accounts(world, job.id, since=began, until=back)


@POLICY
@pytest.mark.parametrize("missed", list(Missed))
async def test_a_pause_between_planned_fires(world: World, policy: str, missed: Missed) -> None:
    """The same, planned on after the resume: unpublished fires lie on both sides of the pause."""
    began = world.clock.now()
    desk, job = await hanging(world, often(policy))
    await pause_job(desk, TENANT, job.id)
    world.clock.advance(31)
    await resume_job(desk, TENANT, job.id, missed=missed)
    await only_plans(world)
    back = await taken_over(world, after=80)
    await check_accounts(world, job.id, since=began, until=back)


@POLICY
async def test_fires_that_were_published_by_a_verb(world: World, policy: str) -> None:
    """A short pause: the fires around it have runs already, amid those that are taken back."""
    began = world.clock.now()
    desk, job = await hanging(world, often(policy))
    await pause_job(desk, TENANT, job.id)
    world.clock.advance(1)
    await resume_job(desk, TENANT, job.id, missed=Missed.RUN_ALL)
    await only_plans(world)
    back = await taken_over(world, after=80)
    await check_accounts(world, job.id, since=began, until=back)


@POLICY
async def test_fires_that_somebody_does_not_want(world: World, policy: str) -> None:
    began = world.clock.now()
    desk, job = await hanging(world, often(policy))
    await skip_next(desk, TENANT, job.id, count=3)
    back = await taken_over(world, after=80)
    await check_accounts(world, job.id, since=began, until=back)


@POLICY
@pytest.mark.parametrize("pending", [False, True])
async def test_an_edit_behind_a_hanging_publisher(world: World, policy: str, pending: bool) -> None:
    """Of another revision and another period; what was planned before keeps its fires."""
    began = world.clock.now()
    desk, job = await hanging(world, often(policy))
    edited_at = world.clock.now()
    await update_job(desk, TENANT, job.id, often(policy, seconds=10), pending=pending)
    await only_plans(world)
    await taken_over(world, after=80)
    await check_accounts(world, job.id, since=began, until=edited_at)


@POLICY
async def test_two_takeovers_in_a_row(world: World, policy: str) -> None:
    """What the first has settled is not settled by the second."""
    began = world.clock.now()
    desk, job = await hanging(world, often(policy))
    await pause_job(desk, TENANT, job.id)
    world.clock.advance(12)
    await resume_job(desk, TENANT, job.id, missed=Missed.RUN_LATEST)
    await only_plans(world)
    await taken_over(world, after=40)
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    await only_plans(world)
    back = await taken_over(world, after=60)
    await check_accounts(world, job.id, since=began, until=back)


async def test_a_pause_while_a_gap_waits(world: World) -> None:
    """The gap of the outage and the gap of the pause are two."""
    began = world.clock.now()
    desk, job = await hanging(world, often("none"))
    world.clock.advance(400)
    await only_plans(world)  # behind: nothing is settled before the shard is recovered
    await pause_job(desk, TENANT, job.id)
    world.clock.advance(31)
    await resume_job(desk, TENANT, job.id)
    back = await taken_over(world, after=40)
    await check_accounts(world, job.id, since=began, until=back)
