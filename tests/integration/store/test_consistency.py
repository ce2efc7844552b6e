"""The checker finds what cannot be, says it in a sentence, and is silent otherwise."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from betimes.domain.ids import JobId
from betimes.ops import NewJob, create_job
from betimes.store.consistency import PAGE, Checker
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import MINUTE, SECOND, TENANT, every, make_desk


@pytest.fixture
async def line(database: Database, clock: ManualClock) -> Line:
    return await Line.make(database, clock)


async def a_job(line: Line) -> JobId:
    desk = make_desk(line.database, line.clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    await line.coordinate(21)
    return job.id


async def write(line: Line, statement: str, *arguments: object) -> None:
    async with line.database.connection(Lane.ENGINE) as connection:
        await connection.execute(statement, *arguments)


async def decide(
    line: Line, job: JobId, first: float, last: float | None = None, fires: int = 1, code: str = "A"
) -> None:
    """A decision about fires so many seconds from now."""
    now = line.clock.now() - timedelta(seconds=line.clock.now().timestamp() % 20)
    await write(
        line,
        "INSERT INTO betimes.decisions (shard, job_id, fire_at, until_at, fires, tenant_id,"
        " decided_at, revision, code) SELECT shard, id, $2, $3, $4, tenant_id, $2, revision, $5"
        " FROM betimes.jobs WHERE id = $1",
        job,
        now + first * SECOND,
        None if last is None else now + last * SECOND,
        fires,
        code,
    )


async def kinds(line: Line) -> list[str]:
    checked = await Checker(line.database).check(now=line.clock.now())
    return [one.kind for one in checked.found]


async def test_a_line_at_work_has_nothing_to_complain_about(line: Line) -> None:
    job = await a_job(line)
    await decide(line, job, -400, -340, 4)
    await line.live(50)
    await line.coordinate(40)
    checked = await Checker(line.database).check(now=line.clock.now())
    assert checked.found == []
    # One of ours, and one about a fire that gave way to the one before it.
    assert (checked.decisions, checked.is_partial) == (2, False)
    assert checked.runs > 0


@pytest.mark.parametrize("last", [None, 20], ids=["one fire", "a range"])
async def test_a_fire_with_a_run_and_a_decision(line: Line, last: float | None) -> None:
    job = await a_job(line)
    await decide(line, job, 0, last, 1 if last is None else 2)
    checked = await Checker(line.database).check(now=line.clock.now())
    (found,) = checked.found
    assert found.kind == "run_and_decision"
    assert "was recorded as A, and has the run run_" in found.sentence


async def test_a_fire_that_was_skipped_has_both_and_may(line: Line) -> None:
    job = await a_job(line)
    await decide(line, job, 0, code="OVERLAP_SKIPPED")
    await write(line, "UPDATE betimes.runs SET state = 7, finished_at = $1", line.clock.now())
    assert await kinds(line) == []


async def test_two_decisions_about_one_fire(line: Line) -> None:
    job = await a_job(line)
    await decide(line, job, -400, -340, 4, code="JOB_PAUSED")
    await decide(line, job, -360, -320, 3, code="CATCHUP_NONE")
    checked = await Checker(line.database).check(now=line.clock.now())
    (found,) = checked.found
    assert found.kind == "decided_twice"
    assert "JOB_PAUSED and CATCHUP_NONE" in found.sentence


async def test_what_a_calendar_took_away_may_lie_amid_others(line: Line) -> None:
    job = await a_job(line)
    await decide(line, job, -400, -340, 4)
    await decide(line, job, -370, code="CALENDAR_EXCLUDED")
    assert await kinds(line) == []


async def test_a_range_that_counts_wrong(line: Line) -> None:
    job = await a_job(line)
    await decide(line, job, -400, -340, 6)
    checked = await Checker(line.database).check(now=line.clock.now())
    (found,) = checked.found
    assert "counts 6 fires" in found.sentence
    assert "by its schedule there are 4" in found.sentence
    await write(line, "UPDATE betimes.jobs SET revision = 2")
    assert await kinds(line) == [], "the schedule of an old revision is not counted"


async def test_a_run_in_a_parcel_that_is_not_published(line: Line) -> None:
    await a_job(line)
    await write(
        line,
        "UPDATE betimes.runs SET state = 0"
        " WHERE id IN (SELECT unnest(run_ids) FROM betimes.parcels)",
    )
    assert await kinds(line) == [], "the cursor has passed it"
    await write(line, "UPDATE betimes.shards SET published_through = $1", line.clock.now() - MINUTE)
    assert set(await kinds(line)) == {"unpublished"}


async def test_a_run_in_two_parcels(line: Line) -> None:
    await a_job(line)
    await write(
        line,
        "INSERT INTO betimes.parcels (shard, id, tenant_id, queue, rank, visible_at, run_ids)"
        " SELECT shard, gen_random_uuid(), tenant_id, queue, rank, visible_at, run_ids"
        " FROM betimes.parcels LIMIT 1",
    )
    assert await kinds(line) == ["parcelled_twice"] * 2


async def test_a_parcel_without_its_run(line: Line) -> None:
    await a_job(line)
    await write(line, "DELETE FROM betimes.runs")
    assert await kinds(line) == [], "a verb may have replaced it just now"
    line.clock.advance(400)
    checked = await Checker(line.database).check(now=line.clock.now())
    assert {(one.kind, one.is_harmful) for one in checked.found} == {("run_gone", False)}


async def test_it_says_when_it_has_not_seen_everything(line: Line) -> None:
    job = await a_job(line)
    await write(
        line,
        "INSERT INTO betimes.decisions (shard, job_id, fire_at, tenant_id, decided_at, revision,"
        " code) SELECT shard, id, $2::timestamptz - n * interval '20 s', tenant_id, $2, 1, 'A'"
        " FROM betimes.jobs, generate_series(10, $3) AS n WHERE id = $1",
        job,
        line.clock.now(),
        2 * PAGE + 10,
    )
    checked = await Checker(line.database, pages=1).check(now=line.clock.now())
    assert (checked.decisions, checked.is_partial) == (PAGE, True)
    whole = await Checker(line.database).check(now=line.clock.now())
    assert (whole.decisions, whole.is_partial) == (2 * PAGE + 1, False)


async def test_it_locks_nothing_and_writes_nothing(line: Line) -> None:
    """A read-only transaction that stands still lets it pass, and so does one that writes."""
    await a_job(line)
    async with line.database.connection(Lane.API) as connection, connection.transaction():
        for table in ("jobs", "runs", "parcels", "shards"):
            await connection.execute(f"SELECT FROM betimes.{table} FOR UPDATE")
        found: Sequence[str] = await kinds(line)
    assert found == []
