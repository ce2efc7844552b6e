"""Stale workers are refused, lost replies are recognised, heartbeats do not get in the way."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from betimes.domain.errors import UnknownOutcome
from betimes.domain.states import RunState
from betimes.store import database as database_module
from betimes.store import finish
from betimes.store.database import Database
from betimes.store.partitions import Partitions
from betimes.store.pool import Connection
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from betimes.worker.builtin import builtin_handlers
from worker_kit import (
    MINUTE,
    SECOND,
    Bench,
    a_worker,
    enqueue,
    parcels,
    read_run,
    reap,
    rows,
    settle_down,
    state_of,
    worker_id,
)


async def outlive(first: Bench, second: Bench, clock: ManualClock) -> None:
    """The first worker leases and freezes; its lease is reaped, and the second one leases."""
    await first.poll_once()
    clock.advance(MINUTE)
    assert await reap(first.database, clock.now()) == 1
    assert await second.poll_once() == 1


async def finish_late(first: Bench) -> None:
    """The first worker comes back and reports."""
    await settle_down()
    await first.parts.reporter.flush()


def late(clock: ManualClock) -> Handlers:
    """A handler that takes half a minute, and then fails."""
    handlers = builtin_handlers(clock)

    async def fail_late(_: Context) -> None:
        await clock.sleep(30)
        raise TimeoutError("too late anyway")

    handlers.add("fail late", fail_late)
    return handlers


@pytest.mark.parametrize("handler", ["sleep", "fail late"])
async def test_a_stale_worker_is_refused_and_changes_nothing(
    database: Database, clock: ManualClock, handler: str
) -> None:
    """I11: by the fast path and by the slower endings alike."""
    (run,) = await enqueue(database, clock.now(), [handler], payload=b'{"seconds": 30}')
    async with (
        a_worker(database, clock, number=1, handlers=late(clock)) as first,
        a_worker(database, clock, number=2, handlers=late(clock)) as second,
    ):
        await outlive(first, second, clock)
        before = await read_run(database, run), await parcels(database)
        await finish_late(first)
        assert (await read_run(database, run), await parcels(database)) == before
        assert first.counted("betimes_lease_lost_total", kind="parcel") == 1
        assert first.counted("betimes_runs_total", outcome="succeeded") == 0
        clock.advance(MINUTE)
        await finish_late(second)
    row = await read_run(database, run)
    state = RunState.SUCCEEDED if handler == "sleep" else RunState.RETRY_WAIT
    assert (row["state"], row["worker_id"], row["fence"]) == (state, worker_id(2), 2)


async def test_without_the_fence_the_stale_worker_would_win(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Knock-out: the guard of the statement and the check of each report are what refuses."""
    query = finish.SQL["lock_parcels"]
    guard = " AND ((id, fence) IN"
    assert guard in " ".join(query.text.split())
    unguarded = " ".join(query.text.split()).partition(" AND worker_id IS NOT DISTINCT FROM")[0]
    unused = " AND $3::uuid IS NOT NULL AND $4::integer[] IS NOT NULL FOR UPDATE"
    monkeypatch.setitem(finish.SQL, query.name, replace(query, text=unguarded + unused))
    monkeypatch.setattr(finish.Held, "valid", staticmethod(lambda told, _: list(told)))
    (run,) = await enqueue(database, clock.now(), ["sleep"], payload=b'{"seconds": 30}')
    async with (
        a_worker(database, clock, number=1) as first,
        a_worker(database, clock, number=2) as second,
    ):
        await outlive(first, second, clock)
        await finish_late(first)
        row = await read_run(database, run)
        assert (row["state"], row["worker_id"], row["fence"]) == (4, worker_id(1), 1)


@pytest.mark.parametrize("handler", ["noop", "fail"])
async def test_a_commit_whose_reply_was_lost_is_recognised(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, handler: str
) -> None:
    """Repeating the report changes nothing, and the lease does not count as lost."""
    forgotten = 0
    commit = database_module._commit

    async def forgetful(connection: Connection) -> None:
        nonlocal forgotten
        await commit(connection)
        forgotten += 1
        if forgotten == 1:
            raise UnknownOutcome("the reply was lost")

    runs = await enqueue(database, clock.now(), [handler, "sleep"])
    async with a_worker(database, clock) as bench:
        await bench.parts.lookout.tick()
        await settle_down()
        monkeypatch.setattr(database_module, "_commit", forgetful)
        async with asyncio.TaskGroup() as group:
            flush = group.create_task(bench.parts.reporter.flush())
            while not flush.done():
                clock.advance(SECOND / 100)
                await asyncio.sleep(0.001)  # noqa: TID251 -- lets the database answer
        assert flush.result() == 1
        assert forgotten == 2
        assert bench.counted("betimes_lease_lost_total", kind="parcel") == 0
        held = [row for row in await parcels(database) if row["worker_id"] is not None]
        again = [row for row in await parcels(database) if row["worker_id"] is None]
        assert len(held) == 1
        assert [row["run_ids"] for row in again] == ([[runs[0]]] if handler == "fail" else [])
        assert len(await rows(database, "SELECT FROM betimes.attempts")) == len(again)
    state = RunState.SUCCEEDED if handler == "noop" else RunState.RETRY_WAIT
    assert await state_of(database, runs[0]) is state


async def test_heartbeats_during_finishes_lose_nothing(
    database: Database, clock: ManualClock
) -> None:
    """Renewing and finishing the same parcels at the same time, again and again."""
    await Partitions(database).ensure(clock.now().date(), ahead_days=2)
    async with a_worker(database, clock, slots=2000) as bench:
        done = asyncio.Event()

        async def renew() -> None:
            while not done.is_set():
                await bench.parts.parcels.renew(ttl=timedelta(seconds=30), now=clock.now())

        async with asyncio.TaskGroup() as group:
            group.create_task(renew())
            for _ in range(30):
                for _ in range(4):
                    await enqueue(database, clock.now(), ["noop"] * 64)
                await bench.poll_once()
            done.set()
        assert bench.counted("betimes_lease_lost_total", kind="parcel") == 0
    left = await rows(database, "SELECT state, count(*) FROM betimes.runs GROUP BY state")
    assert [tuple(row) for row in left] == [(RunState.SUCCEEDED, 30 * 4 * 64)]
    assert await parcels(database) == []


async def test_who_was_frozen_among_its_runs_begins_no_other(
    database: Database, clock: ManualClock
) -> None:
    """Several runs of one parcel are carried by one task; the freeze falls between two of them."""
    started: list[int] = []
    handlers = Handlers()

    async def freeze(_: Context) -> None:
        started.append(len(started))
        if len(started) == 1:
            clock.advance(MINUTE)

    handlers.add("freeze", freeze)
    await enqueue(database, clock.now(), ["freeze"] * 3)
    async with a_worker(database, clock, handlers=handlers) as bench:
        assert await bench.once() == 3
        assert started == [0]
        assert bench.parts.slots.idle
