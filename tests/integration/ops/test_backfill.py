"""Backfills meet the live planner in the same rows, keep a pace, and know their bounds."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.errors import IllegalTransition, Invalid, TooLarge
from betimes.domain.states import RunState, Trigger
from betimes.ops import NewJob, create_job
from betimes.ops.backfill import Order, backfill_job
from betimes.ops.end import cancel_job
from betimes.store.database import Database
from betimes.testing import ManualClock
from line_kit import Line
from ops_kit import HOUR, MINUTE, SECOND, TENANT, every, fetch, make_desk, parcelled, runs_of


async def test_only_missing_fires_are_filled(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(20)))
    began = clock.now()
    await line.live(65)
    assert len(await line.executed(job.id)) == 3
    span: dict[str, Any] = {"begin": began - MINUTE, "end": clock.now()}
    dry = await backfill_job(desk, TENANT, job.id, **span, dry_run=True)
    assert dry.times == [began - n * 20 * SECOND for n in (3, 2, 1, 0)]
    assert dry.runs == []
    filled = await backfill_job(desk, TENANT, job.id, **span, rate_per_second=1)
    assert filled.times == dry.times
    again = await backfill_job(desk, TENANT, job.id, **span)
    assert (again.times, again.runs) == ([], [])
    await line.live(10)
    assert len(set(await line.executed(job.id))) == len(line.started) == 7
    rows = await runs_of(database, job.id)
    assert sorted(row["trigger"] for row in rows if row["state"] == RunState.SUCCEEDED) == [
        *[Trigger.SCHEDULE] * 3,
        *[Trigger.BACKFILL] * 4,
    ]


async def test_the_pace_and_the_order(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    now = clock.now()
    filled = await backfill_job(
        desk,
        TENANT,
        job.id,
        begin=now - 4 * MINUTE,
        end=now,
        rate_per_second=0.5,
        order=Order.NEWEST,
    )
    assert filled.times == [now - n * MINUTE for n in range(5)]
    rows = await fetch(database, "SELECT visible_at, run_ids, lane FROM betimes.parcels ORDER BY 1")
    assert [row["run_ids"] for row in rows] == [[run] for run in filled.runs]
    assert [row["visible_at"] - now for row in rows] == [2 * n * SECOND for n in range(5)]
    assert {row["lane"] for row in rows} == {2}


async def test_fires_run_again_once_per_operation(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    span: dict[str, Any] = {"begin": clock.now() - 2 * MINUTE, "end": clock.now()}
    first = await backfill_job(desk, TENANT, job.id, **span)
    again: dict[str, Any] = {"only_missing": False, "operation": "op 1"}
    over = await backfill_job(desk, TENANT, job.id, **span, **again)
    assert set(over.runs).isdisjoint(first.runs)
    assert (await backfill_job(desk, TENANT, job.id, **span, **again)).runs == over.runs
    assert sorted(await parcelled(database)) == sorted([*first.runs, *over.runs])


async def test_bounds(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    now = clock.now()
    with pytest.raises(TooLarge) as caught:
        await backfill_job(desk, TENANT, job.id, begin=now - HOUR, end=now, max_runs=60)
    assert caught.value.code == "backfill_too_large"
    assert "at most 60 fires in the span, got 61" in caught.value.sentence
    with pytest.raises(Invalid, match="expected a span that is over"):
        await backfill_job(desk, TENANT, job.id, begin=now, end=now + SECOND)
    with pytest.raises(Invalid, match="expected an end not before"):
        await backfill_job(desk, TENANT, job.id, begin=now, end=now - SECOND)
    with pytest.raises(Invalid, match="expected an operation id"):
        await backfill_job(desk, TENANT, job.id, begin=now, end=now, only_missing=False)
    await cancel_job(desk, TENANT, job.id)
    with pytest.raises(IllegalTransition):
        await backfill_job(desk, TENANT, job.id, begin=now, end=now)


async def test_many_fires_go_in_several_transactions(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    now = clock.now()
    filled = await backfill_job(
        desk,
        TENANT,
        job.id,
        begin=now - timedelta(minutes=2_499),
        end=now,
        max_runs=5_000,
        rate_per_second=1_000,
    )
    assert len(filled.runs) == 2_500
    rows = await fetch(database, "SELECT max(visible_at) AS last FROM betimes.parcels")
    assert timedelta(seconds=2.4) < rows[0]["last"] - now < timedelta(seconds=2.6)


async def test_only_so_many_are_under_way_at_once(database: Database, clock: ManualClock) -> None:
    desk = make_desk(database, clock)
    line = await Line.make(database, clock)
    free = every(60, schedule={"overlap": "allow"})
    job = await create_job(desk, TENANT, NewJob(definition=free))
    span: dict[str, Any] = {"begin": clock.now() - 5 * MINUTE, "end": clock.now()}
    filled = await backfill_job(
        desk, TENANT, job.id, **span, rate_per_second=1000, max_concurrency=2, operation="a"
    )
    assert len(filled.runs) == 6
    await line.coordinate(1)
    rounds = []
    for _ in range(4):
        rounds.append(await line.lease())
        await line.finish()
    assert rounds == [2, 2, 2, 0]


async def test_the_limit_of_a_backfill_is_not_beside_that_of_the_job(
    database: Database, clock: ManualClock
) -> None:
    desk = make_desk(database, clock)
    keyed = every(60, options={"concurrency": {"key": "db", "limit": 3}})
    job = await create_job(desk, TENANT, NewJob(definition=keyed))
    span: dict[str, Any] = {"begin": clock.now() - 5 * MINUTE, "end": clock.now()}
    with pytest.raises(Invalid, match="whose concurrency key 'db' limits its runs") as caught:
        await backfill_job(desk, TENANT, job.id, **span, max_concurrency=2)
    assert caught.value.pointer == "/max_concurrency"
