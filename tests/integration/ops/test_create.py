"""Creating jobs: the definition, what is nearly due, and the names."""

from datetime import timedelta

import pytest

from betimes.domain.errors import AlreadyExists, BadSchedule, Invalid
from betimes.domain.ids import occurrence, shard_of_key, to_ms, to_us
from betimes.domain.job import Definition
from betimes.domain.states import JobState, RunState
from betimes.ops import NewJob, create_job, create_jobs
from betimes.store.database import Database
from betimes.testing import ManualClock
from ops_kit import (
    HOUR,
    MINUTE,
    OTHER,
    SECOND,
    TENANT,
    KeptHints,
    add_tenant,
    every,
    fetch,
    make_desk,
    once,
    parcelled,
    runs_of,
)


async def test_a_job_that_fires_later_waits_for_the_planner(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    assert (job.state, job.revision, job.fires) == (JobState.ACTIVE, 1, 0)
    assert job.next_fire_at == clock.now() + MINUTE
    assert await runs_of(database, job.id) == []
    assert isinstance(desk.hints, KeptHints)
    assert (desk.hints.hints, desk.hints.plans) == ([], [job.shard])


async def test_the_planner_is_called_only_for_what_fires_soon(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(3_600)))
    assert job.next_fire_at is not None
    assert job.next_fire_at > clock.now() + MINUTE
    assert isinstance(desk.hints, KeptHints)
    assert desk.hints.plans == []


async def test_fires_within_the_margin_become_runs_with_the_ids_of_the_planner(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(4)))
    fires = [clock.now() + 4 * SECOND, clock.now() + 8 * SECOND]
    expected = [occurrence(job.id, to_us(fire), to_ms(fire)) for fire in fires]
    rows = await runs_of(database, job.id)
    assert [row["id"] for row in rows] == expected == await parcelled(database)
    assert {row["state"] for row in rows} == {RunState.QUEUED}
    assert (job.next_fire_at, job.fires) == (clock.now() + 12 * SECOND, 2)


async def test_a_fire_that_is_due_later_than_it_fires_is_planned_without_a_parcel(
    database: Database, clock: ManualClock
) -> None:
    definition = every(8, schedule={"window": "PT1H"})
    job = await create_job(make_desk(database, clock), TENANT, NewJob(definition=definition))
    (row,) = await runs_of(database, job.id)
    assert row["state"] == RunState.SCHEDULED
    assert row["fire_at"] + 10 * SECOND < row["due_at"] < row["fire_at"] + HOUR
    assert await parcelled(database) == []


async def test_a_one_off_that_is_nearly_due_is_planned_at_once(
    database: Database, clock: ManualClock
) -> None:
    job = await create_job(
        make_desk(database, clock), TENANT, NewJob(definition=once(clock.now() + SECOND))
    )
    assert (job.state, job.next_fire_at) == (JobState.ACTIVE, None)
    assert job.coming_fire_at == clock.now() + SECOND
    assert len(await parcelled(database)) == 1


async def test_a_schedule_may_allow_only_so_many_fires(
    database: Database, clock: ManualClock
) -> None:
    definition = every(2, schedule={"max_fires": 3, "start_at": (clock.now() + SECOND).isoformat()})
    job = await create_job(make_desk(database, clock), TENANT, NewJob(definition=definition))
    assert (job.state, job.fires, job.next_fire_at) == (JobState.ACTIVE, 3, None)
    assert len(await runs_of(database, job.id)) == 3


async def test_a_fixed_delay_plans_one_fire_and_waits_for_its_end(
    database: Database, clock: ManualClock
) -> None:
    definition = every(2, schedule={"mode": "fixed_delay"})
    job = await create_job(make_desk(database, clock), TENANT, NewJob(definition=definition))
    assert (job.state, job.fires, job.next_fire_at) == (JobState.ACTIVE, 1, None)


async def test_a_job_that_would_be_over_before_it_began_is_refused(
    database: Database, clock: ManualClock
) -> None:
    with pytest.raises(BadSchedule) as caught:
        await create_job(
            make_desk(database, clock), TENANT, NewJob(definition=once(clock.now() - HOUR))
        )
    assert caught.value.code == "time_in_past"


async def test_a_manual_job_waits_without_a_fire(database: Database, clock: ManualClock) -> None:
    definition = Definition(schedule={"type": "manual"}, handler="a")
    job = await create_job(make_desk(database, clock), TENANT, NewJob(definition=definition))
    assert (job.state, job.next_fire_at) == (JobState.ACTIVE, None)


async def test_a_name_is_unique_in_its_tenant_and_group(
    database: Database, clock: ManualClock
) -> None:
    await add_tenant(database)
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60), name="nightly"))
    assert job.shard == shard_of_key(desk.shards, str(TENANT), "default", "nightly")
    await create_job(desk, TENANT, NewJob(definition=every(60), name="nightly", group="b"))
    await create_job(desk, OTHER, NewJob(definition=every(60), name="nightly"))
    with pytest.raises(AlreadyExists, match="'nightly' exists already in the group 'default'"):
        await create_job(desk, TENANT, NewJob(definition=every(4), name="nightly"))
    assert await parcelled(database) == []


async def test_many_jobs_are_created_together_or_not_at_all(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    new = [NewJob(definition=every(60), name=f"job {number}") for number in range(20)]
    jobs = await create_jobs(desk, TENANT, [*new, NewJob(definition=every(5))])
    assert [job.name for job in jobs[:20]] == [one.name for one in new]
    assert len({job.shard for job in jobs}) > 1
    with pytest.raises(AlreadyExists):
        await create_jobs(desk, TENANT, [NewJob(definition=every(60), name="fresh"), new[3]])
    rows = await fetch(database, "SELECT count(*) AS n FROM betimes.jobs")
    assert rows[0]["n"] == 21


async def test_an_error_in_a_batch_points_at_its_item(
    database: Database, clock: ManualClock
) -> None:
    new = [NewJob(definition=every(60)), NewJob(definition=every(60, priority=12))]
    with pytest.raises(Invalid) as caught:
        await create_jobs(make_desk(database, clock), TENANT, new)
    assert caught.value.pointer == "/items/1/priority"


async def test_the_shard_of_an_unnamed_job_can_be_chosen(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)), shard=desk.next_shard())
    assert job.shard == 0
    assert job.created_at - clock.now() == timedelta(0)
