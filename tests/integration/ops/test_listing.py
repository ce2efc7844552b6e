"""A filter of jobs means the same in every order: it is about what is shown."""

from datetime import datetime, timedelta

import pytest

from betimes.domain.errors import Invalid
from betimes.domain.job import Job
from betimes.domain.states import JobState
from betimes.ops import listing
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.listing import find_jobs, find_jobs_sorted
from betimes.store.database import Database
from betimes.store.listing import JobFilter
from betimes.testing import ManualClock
from ops_kit import HOUR, TENANT, every, make_desk, once

SORTS = [None, "name", "next_fire_at", "updated_at"]


async def found(desk: Desk, chosen: JobFilter, sort: str | None) -> list[Job]:
    if sort is None:
        return await find_jobs(desk, TENANT, chosen, after=None, newest_first=False, limit=10)
    rows = await find_jobs_sorted(desk, TENANT, chosen, by=sort, at=None, upwards=True, limit=10)
    return [job for _, job in rows]


def fire_of(job: Job) -> datetime:
    """The next fire, as it is shown."""
    fire = job.coming_fire_at or job.next_fire_at
    assert fire is not None
    return fire


async def make_jobs(desk: Desk, clock: ManualClock) -> list[Job]:
    """One whose only fire is planned already, one whose first is, one far ahead."""
    for name, definition in (
        ("soon", once(clock.now() + timedelta(seconds=5))),
        ("often", every(7)),
        ("late", once(clock.now() + HOUR)),
    ):
        await create_job(desk, TENANT, NewJob(definition=definition, name=name))
    return await found(desk, JobFilter(), None)


@pytest.mark.parametrize("sort", SORTS)
async def test_a_filter_means_the_same_in_every_order(
    database: Database, clock: ManualClock, sort: str | None
) -> None:
    desk = make_desk(database, clock)
    shown = await make_jobs(desk, clock)
    assert {job.state for job in shown} == {JobState.ACTIVE}
    for state in JobState:
        fit = {job.name for job in shown if job.state is state}
        assert {job.name for job in await found(desk, JobFilter(states=[state]), sort)} == fit
    # Between the fire that is planned of the second job and the first one that is not.
    edge = clock.now() + timedelta(seconds=7)
    early = {job.name for job in shown if fire_of(job) < edge}
    assert "soon" in early
    before = await found(desk, JobFilter(fire_before=edge), sort)
    assert {job.name for job in before} == early
    after = await found(desk, JobFilter(fire_after=edge), sort)
    assert {job.name for job in after} == {job.name for job in shown if fire_of(job) > edge}


async def test_jobs_are_sorted_by_the_fire_they_show(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    shown = await make_jobs(desk, clock)
    by_fire = sorted(shown, key=fire_of)
    rows = await found(desk, JobFilter(), "next_fire_at")
    assert [job.name for job in rows] == [job.name for job in by_fire] == ["soon", "often", "late"]


async def test_more_than_can_be_judged_is_refused_even_if_none_of_it_fits(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk(database, clock)
    await make_jobs(desk, clock)
    monkeypatch.setattr(listing, "SORTED_MAX", 2)
    with pytest.raises(Invalid, match="at most 2 jobs"):
        await found(desk, JobFilter(fire_after=clock.now() + 1_000 * HOUR), "name")
    assert await found(desk, JobFilter(states=[JobState.PAUSED]), "name") == []
