"""Runs whose target is HTTP, through a worker and the database."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from betimes.domain.ids import to_us
from betimes.domain.outcome import ErrorFacts, Failed, Outcome, Succeeded
from betimes.domain.states import RunState
from betimes.ops.leases import HeldLease
from betimes.ops.reports import Report, report
from betimes.ops.runs import cancel_run
from betimes.store.database import Database
from betimes.target.answer import Patience
from betimes.target.delivery import Delivery
from betimes.target.url import UrlPolicy
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from betimes.worker.builtin import builtin_handlers
from betimes.worker.running import Stop
from ops_kit import make_desk
from target_kit import DEV, FakeTarget, a_client, a_target, some_gates
from worker_kit import (
    TENANT,
    Bench,
    a_worker,
    enqueue,
    read_run,
    rows,
    state_of,
    worker_id,
)


async def open_to_all(_: UUID) -> UrlPolicy:
    return DEV


@asynccontextmanager
async def a_delivering_worker(
    database: Database, clock: ManualClock, **settings: Any
) -> AsyncIterator[Bench]:
    """A worker that delivers."""
    async with a_client() as client:
        delivery = Delivery(
            client=client,
            clock=RealClock(),
            policies=open_to_all,
            patience=Patience(),
            gates=some_gates(),
        )
        handlers = builtin_handlers(clock).also("http", delivery.deliver)
        async with a_worker(database, clock, handlers=handlers, **settings) as bench:
            yield bench


async def until_idle(bench: Bench) -> None:
    """Until every delivery has come back and is written."""
    while len(bench.parts.executor.running):
        await asyncio.gather(*(one.task for one in bench.parts.executor.running))
    await bench.parts.reporter.flush()


async def deliver(database: Database, clock: ManualClock, target: FakeTarget, **more: Any) -> Any:
    """One run to one target; its id after the first attempt."""
    options = {"target": {"type": "http", "url": target.url(), **more}}
    (run,) = await enqueue(database, clock.now(), [None], payload=b"{}", options=options)  # type: ignore[list-item]
    async with a_delivering_worker(database, clock) as bench:
        assert await bench.once() == 1
        await until_idle(bench)
    return run


async def test_a_run_is_delivered(database: Database, clock: ManualClock) -> None:
    """The answer is the result of the run."""
    async with a_target(body=b"thanks") as target:
        run = await deliver(database, clock, target)
    row = await read_run(database, run)
    assert row["state"] == RunState.SUCCEEDED
    assert json.loads(row["result"])["body"] == "thanks"
    assert target.received[0].body == b"{}"


async def test_a_failed_attempt_leaves_evidence_and_is_tried_again(
    database: Database, clock: ManualClock
) -> None:
    """With the pause that the target asked for."""
    nasty = b"no\x00t \xff now"
    async with a_target(status=503, headers={"retry-after": "60"}, body=nasty) as target:
        run = await deliver(database, clock, target)
    row = await read_run(database, run)
    assert (row["state"], row["attempt"]) == (RunState.RETRY_WAIT, 1)
    (attempt,) = await rows(database, "SELECT * FROM betimes.attempts WHERE run_id = $1", run)
    http = json.loads(attempt["http"])
    assert (http["status"], http["address"]) == (503, "127.0.0.1")
    assert attempt["next_retry_at"] == clock.now() + timedelta(seconds=60)


async def test_a_permanent_answer_ends_the_run(database: Database, clock: ManualClock) -> None:
    """It lies among the dead letters, with its evidence."""
    async with a_target(status=404) as target:
        run = await deliver(database, clock, target)
    assert await state_of(database, run) is RunState.DEAD
    (letter,) = await rows(database, "SELECT handler, error FROM betimes.dead_letters")
    assert letter["handler"] == "http"
    assert json.loads(letter["error"])["type"] == "Http404"


async def test_runs_that_wait_for_a_broken_target_keep_their_attempts(
    database: Database, clock: ManualClock
) -> None:
    """Five find out that nobody is there; the sixth is not even sent, and nothing is counted."""
    async with a_target() as target:
        pass
    options = {"target": {"type": "http", "url": target.url()}}
    nobody: list[Any] = [None]
    async with a_delivering_worker(database, clock) as bench:
        for _ in range(5):
            await enqueue(database, clock.now(), nobody, options=options)
            await bench.poll_once()
            await until_idle(bench)
        (run,) = await enqueue(database, clock.now(), nobody, options=options)
        await bench.poll_once()
        await until_idle(bench)
    row = await read_run(database, run)
    assert (row["state"], row["attempt"], row["reason"]) == (
        RunState.RETRY_WAIT,
        0,
        "BREAKER_OPEN",
    )
    assert await rows(database, "SELECT FROM betimes.attempts WHERE run_id = $1", run) == []
    (parcel,) = await rows(database, "SELECT * FROM betimes.parcels WHERE run_ids = $1", [run])
    wait = (parcel["visible_at"] - clock.now()).total_seconds()
    assert 1 < wait < 10


async def test_runs_that_wait_for_the_same_target_come_back_together(
    database: Database, clock: ManualClock
) -> None:
    """In one parcel, not each in its own, under a fence that no lease of theirs has reached."""
    async with a_target() as target:
        pass
    options = {"target": {"type": "http", "url": target.url()}}
    async with a_delivering_worker(database, clock) as bench:
        await enqueue(database, clock.now(), [None] * 5, options=options)  # type: ignore[list-item]
        await bench.poll_once()
        await until_idle(bench)
        failed = await rows(database, "SELECT cardinality(run_ids) AS runs FROM betimes.parcels")
        assert [row["runs"] for row in failed] == [1] * 5, "what has failed travels alone"
        runs = await enqueue(database, clock.now(), [None] * 20, options=options)  # type: ignore[list-item]
        await bench.poll_once()
        await until_idle(bench)
    waiting = await rows(
        database,
        "SELECT run_ids, fence, lane FROM betimes.parcels WHERE run_ids && $1::uuid[]",
        runs,
    )
    # At full seconds; how many of them depends on how fast this machine asks.
    assert len(waiting) <= len(runs) / 2
    assert sorted(run for row in waiting for run in row["run_ids"]) == sorted(runs)
    assert {(row["fence"], row["lane"]) for row in waiting} == {(1, 1)}


async def test_who_waits_for_a_turn_holds_no_place(database: Database, clock: ManualClock) -> None:
    """Eight runs at ten a second through two places: all are leased once, and none goes back."""
    async with a_target() as target, a_client() as client:
        delivery = Delivery(
            client=client,
            clock=RealClock(),
            policies=open_to_all,
            patience=Patience(),
            gates=some_gates(rate=10.0),
        )
        handlers = builtin_handlers(clock).also("http", delivery.deliver)
        options = {"target": {"type": "http", "url": target.url()}}
        runs = await enqueue(database, clock.now(), [None] * 8, options=options)  # type: ignore[list-item]
        async with a_worker(database, clock, handlers=handlers, slots=2) as bench:
            while await state_of(database, runs[-1]) is not RunState.SUCCEEDED:
                await bench.poll_once()
                await until_idle(bench)
            assert bench.parts.slots.idle
    found = [await read_run(database, run) for run in runs]
    assert {(row["state"], row["attempt"]) for row in found} == {(RunState.SUCCEEDED, 1)}
    assert await rows(database, "SELECT FROM betimes.parcels") == []
    assert {row["fence"] for row in found} == {1}, "nobody was put back into the queue"


async def accepted(database: Database, clock: ManualClock, target: FakeTarget, runs: int) -> Any:
    """Runs that a target has accepted and will report about later, in one parcel."""
    options = {"target": {"type": "http", "url": target.url()}}
    nobody: list[Any] = [None] * runs
    return await enqueue(database, clock.now(), nobody, options=options)


async def parked(bench: Bench, count: int) -> None:
    """Until so many attempts wait for their targets without a place."""
    while sum(one.context.parked for one in bench.parts.executor.running) < count:
        await RealClock().sleep(0.01)


async def test_who_waits_for_a_report_holds_no_place(
    database: Database, clock: ManualClock
) -> None:
    """Four places carry ten runs whose target reports later; each is still leased."""
    async with a_target(status=202, headers={"betimes-async": "true"}) as target:
        runs = await accepted(database, clock, target, 10)
        async with a_delivering_worker(database, clock, slots=4) as bench:
            for waiting in (4, 8, 10):
                assert await bench.once() > 0
                await parked(bench, waiting)
            slots = bench.parts.slots
            assert (slots.free, len(bench.parts.executor.running)) == (slots.total, 10)
            for one in bench.parts.executor.running:
                bench.parts.executor.running.stop(one, Stop.CANCEL)
            await until_idle(bench)
            assert slots.free == slots.total, "each place was given back once"
    assert {await state_of(database, run) for run in runs} == {RunState.CANCELLED}


@pytest.mark.parametrize(
    ("outcome", "state", "attempt"),
    [
        (Succeeded(b'"done"'), RunState.SUCCEEDED, 1),
        (Failed(ErrorFacts("Theirs", "it broke")), RunState.RETRY_WAIT, 1),
        (Failed(ErrorFacts("Theirs", "it broke"), retryable=False), RunState.DEAD, 1),
    ],
)
async def test_what_a_target_reports_ends_the_attempt_here(
    database: Database, clock: ManualClock, outcome: Outcome, state: RunState, attempt: int
) -> None:
    """Also a failure that is tried again, while others of its parcel go on."""
    desk = make_desk(database, clock)
    async with a_target(status=202, headers={"betimes-async": "true"}) as target:
        first, second = await accepted(database, clock, target, 2)
        async with a_delivering_worker(database, clock) as bench:
            assert await bench.once() == 2
            await parked(bench, 2)
            running = bench.parts.executor.running.get(first)
            assert running is not None
            leased = running.parcel.leased
            lease = HeldLease(
                run=first,
                parcel=leased.id,
                worker=worker_id(1),
                fence=leased.fence,
                attempt=1,
                started_us=to_us(running.context.started_at),
                plain=True,
                shard=leased.shard,
            )
            found = await report(
                desk, TENANT, [Report(lease=lease, outcome=outcome)], roll=lambda: 0.5
            )
            (settled,) = found.settled
            assert settled.state is state
            assert await bench.parts.watch.tick() == 1
            await asyncio.wait([running.task])
            assert bench.parts.executor.running.get(first) is None
            assert bench.parts.executor.running.get(second) is not None
            await bench.parts.reporter.flush()
            row = await read_run(database, first)
            assert (row["state"], row["attempt"]) == (state, attempt)
            assert await bench.parts.watch.tick() == 0
            other = bench.parts.executor.running.get(second)
            assert other is not None
            bench.parts.executor.running.stop(other, Stop.CANCEL)
            await until_idle(bench)
    assert await state_of(database, second) is RunState.CANCELLED
    held = await rows(database, "SELECT FROM betimes.parcels WHERE worker_id IS NOT NULL")
    assert held == [], "the parcel went with its last run"


async def test_a_request_under_way_ends_within_seconds_of_its_cancellation(
    database: Database, clock: ManualClock
) -> None:
    """Two looks a second apart: neither the heartbeat nor a grace is waited for."""

    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    async with a_target(behave=never) as target:
        (run,) = await accepted(database, clock, target, 1)
        async with (
            a_delivering_worker(database, clock, heartbeat_every=timedelta(minutes=1)) as bench,
            asyncio.TaskGroup() as group,
        ):
            watching = group.create_task(bench.parts.watch.run())
            assert await bench.once() == 1
            await target.arrived.wait()
            await cancel_run(make_desk(database, clock), TENANT, run)
            running = bench.parts.executor.running.get(run)
            assert running is not None
            for _ in range(3):
                clock.advance(1)
                await asyncio.wait([running.task], timeout=1)
            assert running.task.done()
            await bench.parts.reporter.flush()
            watching.cancel()
    assert await state_of(database, run) is RunState.CANCELLED
