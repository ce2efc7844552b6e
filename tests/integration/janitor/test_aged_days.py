"""A day is dropped under a lock: whatever is written to it before counts, and little moves."""

import asyncio
from typing import Any

import pytest

from betimes.domain.ids import shard_of
from betimes.domain.run import NewRun
from betimes.ops.dead_letters import redrive_one
from betimes.ops.enqueue import enqueue_run
from betimes.ops.runs import cancel_run, retry_run
from betimes.store import partitions as days
from betimes.store.database import Database
from betimes.store.partitions import Partition, Partitions
from betimes.store.pool import Lane
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from integration.janitor.test_aged_runs import (
    DAY,
    a_dead_letter,
    days_of,
    housekeeping,
    keeper,
)
from line_kit import Line
from ops_kit import TENANT, fetch, make_desk, run_row


async def first_day_of(partitions: Partitions, clock: ManualClock) -> Partition:
    """The day of 35 days ago."""
    return next(
        partition
        for partition in await partitions.aged(clock.now().date(), keep_days={"runs": 30})
        if partition.day == (clock.now() - 35 * DAY).date()
    )


@pytest.mark.parametrize("moment", ["before", "between", "after"])
async def test_a_run_revived_while_its_day_is_dropped_is_kept(
    database: Database, clock: ManualClock, moment: str
) -> None:
    """Before the day is scanned, between scan and drop, and after it."""
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    dead = await a_dead_letter(desk, database, clock)
    cancelled = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    await cancel_run(desk, TENANT, cancelled)
    clock.advance(35 * DAY)
    partitions = Partitions(database)
    aged = await first_day_of(partitions, clock)

    async def revive() -> None:
        await redrive_one(desk, TENANT, dead)
        if moment != "after":
            await retry_run(desk, TENANT, cancelled)

    if moment == "before":
        await revive()
    assert (await partitions.scan(aged))[1]
    if moment == "between":
        await revive()
    assert await partitions.drop(aged) == (1 if moment == "after" else 2)
    if moment == "after":
        await revive()
    await line.live(3)
    expected = {dead} if moment == "after" else {dead, cancelled}
    assert {start.run for start in line.started} == expected


async def test_a_day_that_was_made_anew_is_scanned_anew(
    database: Database, clock: ManualClock
) -> None:
    """What is known of a day is of no use for another one of the same name."""
    desk = make_desk(database, clock)
    await housekeeping(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    clock.advance(35 * DAY)
    partitions = Partitions(database)
    aged = await first_day_of(partitions, clock)
    await fetch(
        database,
        "INSERT INTO betimes.aged_days (parent, day, next_block, scanned)"
        " VALUES ('runs', $1, 100, true)",
        aged.day,
    )
    assert await partitions.drop(aged) is None
    assert (await partitions.scan(aged))[1]
    assert await partitions.drop(aged) == 1
    assert await run_row(database, run) is not None


async def test_a_drop_waits_for_whoever_revives_a_run(
    database: Database, clock: ManualClock
) -> None:
    """The drop asks under its lock: what commits while it waits counts."""
    desk = make_desk(database, clock)
    await housekeeping(database, clock)
    cancelled = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    await cancel_run(desk, TENANT, cancelled)
    clock.advance(35 * DAY)
    partitions = Partitions(database)
    aged = await first_day_of(partitions, clock)
    assert (await partitions.scan(aged))[1]
    async with asyncio.TaskGroup() as group, database.connection(Lane.ENGINE) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "UPDATE betimes.runs SET state = 1, finished_at = NULL WHERE id = $1", cancelled
        )
        dropping = group.create_task(partitions.drop(aged))
        while not await fetch(
            database, "SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"
        ):
            assert not dropping.done()
        await transaction.commit()
    assert dropping.result() == 1
    assert await run_row(database, cancelled) is not None


async def test_a_day_with_more_to_keep_than_may_move_stays_and_is_pruned(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "MOVED_MAX", 2)
    monkeypatch.setattr(days.Partitions.drop, "__kwdefaults__", {"most": 2})
    desk, line = make_desk(database, clock), await Line.make(database, clock)
    await housekeeping(database, clock)
    first_day = str(clock.now().date())
    ended = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    await line.live(2)
    waiting = [await enqueue_run(desk, TENANT, NewRun(handler="h")) for _ in range(3)]
    clock.advance(35 * DAY)
    recorder = Recorder()
    telemetry = Telemetry(clock=clock, handlers=[recorder])
    await keeper(database, clock, telemetry).tick()
    await housekeeping(database, clock)
    assert first_day in await days_of(database, "runs")
    assert "partition.kept" in [event.name for event in recorder.events]
    assert await run_row(database, ended) is None
    await line.live(3)
    assert {start.run for start in line.started} >= set(waiting)
    await housekeeping(database, clock)
    assert first_day not in await days_of(database, "runs")


async def test_a_large_day_is_scanned_in_slices_and_only_its_open_runs_move(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "SLICE_BLOCKS", 1)
    desk = make_desk(database, clock)
    await housekeeping(database, clock)
    waiting = [await enqueue_run(desk, TENANT, NewRun(handler="h"))]
    await fetch(
        database,
        "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, state, queue, finished_at)"
        " SELECT shard, (left(id::text, 24) || lpad(to_hex(number + 1000000), 12, '0'))::uuid,"
        " tenant_id, due_at, 4, queue, due_at FROM betimes.runs, generate_series(1, 2000) AS number"
        " WHERE id = $1",
        waiting[0],
    )
    waiting.append(await enqueue_run(desk, TENANT, NewRun(handler="h")))
    clock.advance(35 * DAY)
    aged = await Partitions(database).aged(clock.now().date(), keep_days={"runs": 30})
    day = next(partition for partition in aged if partition.bytes > 100_000)
    taken, scanned = await Partitions(database).scan(day, slices=5)
    assert (taken, scanned) == (5, False)
    assert await Partitions(database).drop(day) is None, "it is not scanned yet"
    taken, scanned = await Partitions(database).scan(day)
    assert scanned
    assert taken > 10
    assert await Partitions(database).drop(day) == 2
    rows = await fetch(database, "SELECT id FROM betimes.runs ORDER BY id")
    assert [row["id"] for row in rows] == sorted(waiting)


async def test_a_day_of_events_stays_until_they_were_handed_out(
    database: Database, clock: ManualClock
) -> None:
    """The dispatcher was away for longer than events are kept."""
    await housekeeping(database, clock)
    began: Any = clock.now()
    first_day = str(began.date())
    await fetch(
        database,
        "INSERT INTO betimes.routings (tenant_id, routed_through) VALUES ($1, $2)",
        TENANT,
        began - DAY,
    )
    desk = make_desk(database, clock)
    run = await enqueue_run(desk, TENANT, NewRun(handler="h"))
    await fetch(
        database,
        "INSERT INTO betimes.outbox (shard, id, tenant_id, type, subject, body, created_at,"
        " arrived_at) VALUES ($1, $2, $3, 'run.succeeded', 'x', '{}', $4, $4)",
        shard_of(run),
        run,
        TENANT,
        began,
    )
    clock.advance(9 * DAY)
    await housekeeping(database, clock)
    assert first_day in await days_of(database, "outbox")
    await fetch(database, "UPDATE betimes.routings SET routed_through = $1", began)
    await housekeeping(database, clock)
    assert first_day not in await days_of(database, "outbox")
