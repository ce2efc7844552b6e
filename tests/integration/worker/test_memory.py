"""Runs leave nothing behind in the memory of a worker, however many there were."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from betimes.store.database import Database
from betimes.store.partitions import Partitions
from betimes.target import delivery as delivering
from betimes.target.answer import Patience
from betimes.target.delivery import Delivery
from betimes.target.url import UrlPolicy
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from betimes.worker import plans
from betimes.worker.builtin import builtin_handlers
from target_kit import DEV, FakeTarget, a_client, a_target, some_gates
from worker_kit import Bench, a_worker, enqueue

WARM, MORE, LEFT_MAX = 300, 1_500, 60
"""Objects that may be left after `MORE` runs: a few of the machinery, none of each run."""


def ours() -> Counter[str]:
    """Live objects of our own classes."""
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    return Counter(
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in kinds
        if str(kind.__module__).startswith("betimes.")
    )


async def open_to_all(_: UUID) -> UrlPolicy:
    return DEV


@asynccontextmanager
async def a_delivering_worker(database: Database, clock: ManualClock) -> AsyncIterator[Bench]:
    async with a_client() as client:
        one = Delivery(
            client=client,
            clock=RealClock(),
            policies=open_to_all,
            patience=Patience(),
            gates=some_gates(),
        )
        handlers = builtin_handlers(clock).also("http", one.deliver)
        async with a_worker(database, clock, handlers=handlers, slots=100) as bench:
            yield bench


async def work_off(bench: Bench) -> None:
    while await bench.poll_once():
        while len(bench.parts.executor.running):
            await asyncio.gather(*(one.task for one in bench.parts.executor.running))
        await bench.parts.reporter.flush()


def growth(before: Counter[str], after: Counter[str]) -> int:
    return (after - before).total()


async def test_plain_runs_leave_nothing(database: Database, clock: ManualClock) -> None:
    await Partitions(database).ensure(clock.now().date(), ahead_days=1)
    async with a_worker(database, clock, slots=500) as bench:
        await enqueue(database, clock.now(), ["noop"] * WARM)
        await work_off(bench)
        before = ours()
        for _ in range(MORE // 100):
            await enqueue(database, clock.now(), ["noop"] * 100)
            await work_off(bench)
        after = ours()
    assert growth(before, after) <= LEFT_MAX, (after - before).most_common(5)


async def test_runs_that_all_say_something_else_leave_what_fits(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ad-hoc runs with tags of their own, or a trace: each was kept as a kind of its own."""
    monkeypatch.setattr(plans, "AD_HOC_BYTES_MAX", 100_000)
    await Partitions(database).ensure(clock.now().date(), ahead_days=1)
    number = 0

    async def batch(bench: Bench, count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            await enqueue(database, clock.now(), ["noop"], options={"tags": {"n": str(number)}})
        await work_off(bench)

    async with a_worker(database, clock, slots=500) as bench:
        await batch(bench, WARM)
        before = ours()
        await batch(bench, WARM)
        after = ours()
    assert growth(before, after) <= LEFT_MAX, (after - before).most_common(5)


async def test_deliveries_leave_what_fits(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "AD_HOC_BYTES_MAX", 100_000)
    monkeypatch.setattr(delivering, "PREPARED_BYTES_MAX", 100_000)
    await Partitions(database).ensure(clock.now().date(), ahead_days=1)
    number = 0

    async def batch(bench: Bench, target: FakeTarget, count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            options = {"target": {"type": "http", "url": target.url(f"/{number}")}}
            nobody: list[Any] = [None]
            await enqueue(database, clock.now(), nobody, options=options)
        await work_off(bench)
        target.received.clear()

    async with a_target() as target, a_delivering_worker(database, clock) as bench:
        await batch(bench, target, WARM)
        before = ours()
        await batch(bench, target, WARM)
        after = ours()
    assert growth(before, after) <= LEFT_MAX, (after - before).most_common(5)
