"""Runs whose target is HTTP, through a worker and the database."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.target.answer import Patience
from betimes.target.delivery import Delivery
from betimes.target.url import UrlPolicy
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from betimes.worker.builtin import builtin_handlers
from target_kit import DEV, FakeTarget, a_client, a_target, some_gates
from worker_kit import Bench, a_worker, enqueue, read_run, rows, state_of


async def open_to_all(_: UUID) -> UrlPolicy:
    return DEV


@asynccontextmanager
async def a_delivering_worker(database: Database, clock: ManualClock) -> AsyncIterator[Bench]:
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
        async with a_worker(database, clock, handlers=handlers) as bench:
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
