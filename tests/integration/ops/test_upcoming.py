"""Due soon: what exists and what will, in one order, page by page."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from betimes.domain.errors import Invalid, NotFound
from betimes.domain.job import AfterCompletion
from betimes.domain.run import NewRun
from betimes.ops import NewJob, create_job, enqueue_run
from betimes.ops.end import delete_job, delete_spent
from betimes.ops.manual import skip_next
from betimes.ops.queues import pause_queue
from betimes.ops.read import get_job, get_named_job, get_revisions, list_jobs
from betimes.ops.upcoming import SoonKind, list_upcoming, predicted
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.store.upcoming import Pace
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import HOUR, MINUTE, OTHER, SECOND, TENANT, add_tenant, every, make_desk, once, runs_of


async def test_runs_and_fires_are_merged_in_the_order_of_their_dueness(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    now = clock.now()
    job = await create_job(desk, TENANT, NewJob(definition=every(60, queue="mail")))
    slow = await create_job(desk, TENANT, NewJob(definition=every(3600)))
    run = await enqueue_run(desk, TENANT, NewRun(handler="a", delay=90 * SECOND))
    await line.coordinate(2)
    page = await list_upcoming(desk, TENANT, within=HOUR)
    dues = [item.due_at for item in page.items]
    assert dues == sorted(dues)
    assert [item.id for item in page.items if item.job is None] == [run]
    mine = [item for item in page.items if item.job == job.id]
    assert [item.due_at for item in mine] == [now + n * MINUTE for n in range(1, len(mine) + 1)]
    assert [item.kind for item in mine[:5]] == [SoonKind.RUN] * 5
    assert {item.kind for item in mine[5:]} == {SoonKind.FIRE}
    assert len(page.items) == 50
    only = await list_upcoming(desk, TENANT, within=HOUR, queue="mail", limit=3)
    assert {item.job for item in only.items} == {job.id}
    alone = await list_upcoming(desk, TENANT, within=HOUR, job=slow.id)
    assert [item.due_at for item in alone.items] == [now + HOUR]


@pytest.mark.parametrize("schedule", [{}, {"jitter": "PT2M"}, {"window": "PT1M"}])
async def test_pages_fit_together_while_the_planner_works(
    database: Database, clock: ManualClock, schedule: dict[str, str]
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    until = clock.now() + 30 * MINUTE
    for seconds in (45, 60, 600):
        await create_job(desk, TENANT, NewJob(definition=every(seconds, schedule=schedule)))
    whole = await list_upcoming(desk, TENANT, until=until, limit=1_000)
    assert whole.next is None
    page = await list_upcoming(desk, TENANT, until=until, limit=7)
    seen = list(page.items)
    await line.coordinate(1)
    while page.next is not None:
        page = await list_upcoming(desk, TENANT, until=until, after=page.next, limit=7)
        seen += page.items
    assert [item.id for item in seen] == [item.id for item in whole.items]
    assert len(seen) > 60


async def test_skipped_fires_are_listed_as_such(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    await skip_next(desk, TENANT, job.id)
    page = await list_upcoming(desk, TENANT, limit=2)
    assert [(item.will_run, item.reason) for item in page.items] == [
        (False, "SKIPPED_BY_USER"),
        (True, None),
    ]


async def test_others_see_nothing(database: Database, clock: ManualClock) -> None:
    await add_tenant(database)
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60), name="mine"))
    await enqueue_run(desk, TENANT, NewRun(handler="a", delay=MINUTE))
    assert (await list_upcoming(desk, OTHER)).items == []
    assert (await list_jobs(desk, OTHER)).jobs == []
    with pytest.raises(NotFound):
        await get_job(desk, OTHER, job.id)
    with pytest.raises(NotFound, match="'mine'"):
        await get_named_job(desk, OTHER, "mine")
    with pytest.raises(Invalid, match="at most 7 days"):
        await list_upcoming(desk, TENANT, within=timedelta(days=8))


async def test_jobs_are_read_listed_and_remembered(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    made = [await create_job(desk, TENANT, NewJob(definition=every(60))) for _ in range(5)]
    named = await create_job(desk, TENANT, NewJob(definition=every(60), name="n", group="g"))
    assert await get_named_job(desk, TENANT, "n", group="g") == named
    page = await list_jobs(desk, TENANT, limit=4)
    rest = await list_jobs(desk, TENANT, limit=4, after=page.next or named.id)
    assert {job.id for job in [*page.jobs, *rest.jobs]} == {job.id for job in [*made, named]}
    edited = await update_job(desk, TENANT, named.id, every(30, payload=b"2"))
    assert await get_job(desk, TENANT, named.id) == edited
    await delete_job(desk, TENANT, named.id)
    revisions = await get_revisions(desk, TENANT, named.id)
    assert [one.revision for one in revisions] == [2, 1]
    assert [one.definition.payload for one in revisions] == [b"2", None]
    await create_job(desk, TENANT, NewJob(definition=every(60), name="n", group="g"))


async def test_a_one_off_that_is_done_goes_if_it_was_asked_to(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    going = once(clock.now() + 5 * SECOND, after_completion=AfterCompletion.DELETE)
    job = await create_job(desk, TENANT, NewJob(definition=going))
    kept = await create_job(desk, TENANT, NewJob(definition=once(clock.now() + 5 * SECOND)))
    assert await delete_spent(desk, job.shard) == []
    await line.live(4)
    await line.coordinate(2)
    await line.lease()
    await line.fail()
    assert await delete_spent(desk, job.shard) == [], "a retry is still to come"
    await line.live(10)
    assert await delete_spent(desk, job.shard) == [job.id]
    assert await delete_spent(desk, kept.shard) == []
    assert [one.id for one in (await list_jobs(desk, TENANT)).jobs] == [kept.id]


async def test_starts_are_predicted_from_what_waited_lately_and_waits_now(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60, queue="mail")))
    (first,) = (await list_upcoming(desk, TENANT, limit=1)).items
    assert first.predicted_start == first.due_at, "nobody has waited"
    await line.coordinate(65)
    assert await line.lease() == 1
    await line.finish()
    (row,) = [one for one in await runs_of(database, job.id) if one["finished_at"]]
    lag = row["first_started_at"] - row["due_at"]
    assert lag > timedelta(0)
    (second,) = (await list_upcoming(desk, TENANT, limit=1)).items
    assert second.predicted_start == second.due_at + lag
    await pause_queue(desk, TENANT, "mail", reason="", until=second.due_at + HOUR)
    (braked,) = (await list_upcoming(desk, TENANT, limit=1)).items
    assert (braked.will_run, braked.predicted_start) == (False, second.due_at + HOUR + lag)
    await pause_queue(desk, TENANT, "mail", reason="", until=None)
    (stopped,) = (await list_upcoming(desk, TENANT, limit=1)).items
    assert stopped.predicted_start is None


def test_what_waits_goes_first() -> None:
    """At the pace of the last ends; without any, nobody can say."""
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    pace = Pace(lag=2 * SECOND, ended=10, since=now - 20 * SECOND, waiting=30)
    assert predicted(now + SECOND, pace, now) == now + 60 * SECOND
    assert predicted(now + HOUR, pace, now) == now + HOUR + 2 * SECOND
    assert predicted(now, replace(pace, waiting=0), now) == now + 2 * SECOND
    assert predicted(now, replace(pace, ended=0, since=None), now) is None
