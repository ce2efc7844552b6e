"""A cut between worker and service, and clocks that are wrong: nothing lost, nothing stale kept."""

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from api_kit import Served
from betimes import App, Context, Snooze
from betimes.config.settings import JanitorSettings
from betimes.janitor.reap import Reaper
from betimes.rhythm import Stopping
from betimes.runtime.http_line import http_lines
from betimes.store.reap import Reaping
from betimes.telemetry import Telemetry
from betimes.testing.proxy import FaultProxy
from betimes.testing.real_clock import RealClock
from runtime_kit import Way, eventually, http, working

pytestmark = pytest.mark.timeout(120)


@asynccontextmanager
async def reaping(served: Served) -> AsyncIterator[None]:
    """What the janitor does all the time."""
    clock = RealClock()
    reaper = Reaper(
        reaping=Reaping(served.desk.database, uuid.uuid4),
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(reap_every=timedelta(milliseconds=200)),
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reaper.run(Stopping()))
        yield
        task.cancel()


async def test_a_worker_that_is_cut_off_stops_and_the_run_goes_to_another(
    served: Served, app: App
) -> None:
    """The first worker gives up its attempt by itself; the second one's is the one that counts."""
    began, fences = threading.Semaphore(0), list[int]()
    stopped = threading.Event()

    @app.task
    def dig(ctx: Context) -> int:
        fences.append(ctx.fence)
        began.release()
        while not ctx.cancelled and ctx.fence == 1:
            time.sleep(0.01)
        if ctx.fence == 1:
            stopped.set()
        return ctx.fence

    key = await served.key(kind="wk")
    async with reaping(served), FaultProxy(("127.0.0.1", served.port)) as proxy:
        run = await dig.aenqueue()
        async with working(app, http_lines(f"http://127.0.0.1:{proxy.port}", key)) as first:
            await asyncio.to_thread(began.acquire, timeout=20)
            proxy.change(half_open=True)
            async with working(app, http(served, key)):
                ended = await run.awaited(timeout=30)
                assert await asyncio.to_thread(stopped.wait, 20)
            proxy.heal()
            assert [event.metadata["found"] for event in first.events("worker.lease_lost")] == [
                "silence"
            ]
    assert (ended.result, fences) == (2, [1, 2])


async def test_an_end_reported_too_late_is_refused_as_lease_lost(served: Served, app: App) -> None:
    """Ended in time, told after the lease was somebody else's: the service does not take it."""
    began, go_on = threading.Semaphore(0), threading.Event()
    results: list[int] = []

    @app.task
    def work(ctx: Context) -> int:
        began.release()
        if ctx.fence == 1:
            go_on.wait(20)
        results.append(ctx.fence)
        return ctx.fence

    key = await served.key(kind="wk")
    async with reaping(served), FaultProxy(("127.0.0.1", served.port)) as proxy:
        run = await work.aenqueue()
        lines = http_lines(f"http://127.0.0.1:{proxy.port}", key)
        async with working(app, lines) as first:
            await asyncio.to_thread(began.acquire, timeout=20)
            proxy.change(refuse=True, half_open=True)
            go_on.set()
            async with working(app, http(served, key)):
                ended = await run.awaited(timeout=30)
            proxy.heal()
            for link in list(proxy.links):
                link.reset()

            async def told() -> bool:
                return bool(first.events("worker.lease_lost"))

            await eventually(told)
            (lost,) = first.events("worker.lease_lost")
            assert (lost.metadata["run"], lost.metadata["found"]) == (run.id, "report")
    assert (ended.result, results) == (2, [1, 2])


async def test_a_short_cut_costs_nobody_an_attempt(served: Served, app: App) -> None:
    """Shorter than a lease: the same attempt goes on and its end is taken."""
    began = threading.Semaphore(0)

    @app.task
    async def work(ctx: Context) -> int:
        began.release()
        await asyncio.sleep(1.5)
        return ctx.fence

    key = await served.key(kind="wk")
    async with reaping(served), FaultProxy(("127.0.0.1", served.port)) as proxy:
        run = await work.aenqueue()
        async with working(app, http_lines(f"http://127.0.0.1:{proxy.port}", key)):
            await asyncio.to_thread(began.acquire, timeout=20)
            for link in list(proxy.links):
                link.reset()
            proxy.change(refuse=True)
            await asyncio.sleep(0.5)
            proxy.heal()
            ended = await run.awaited(timeout=30)
    assert ended.result == 1


class Skewed(RealClock):
    """A machine whose wall clock is wrong."""

    def __init__(self, by: timedelta) -> None:
        self._by = by

    def now(self) -> datetime:
        return super().now() + self._by


@pytest.mark.parametrize("minutes", [-5, 5])
async def test_a_wrong_wall_clock_changes_nothing(
    served: Served, app: App, lines: Way, minutes: int
) -> None:
    """Leases, deadlines, pauses and times of log lines go by the clock of the service."""
    began_at: list[datetime] = []

    @app.task(timeout="1m")
    def look(ctx: Context) -> int:
        began_at.append(ctx.started_at)
        assert ctx.deadline is not None
        assert ctx.deadline - ctx.started_at == timedelta(minutes=1)
        ctx.log.info("here")
        if len(began_at) == 1:
            raise Snooze(after=0.5)
        time.sleep(3.0)  # longer than a lease
        return ctx.fence

    async with reaping(served):
        run = await look.aenqueue()
        async with working(app, lines, clock=Skewed(timedelta(minutes=minutes))) as crew:
            ended = await run.awaited(timeout=30)
            assert crew.events("worker.lease_lost") == []
    assert ended.result == 2
    now = RealClock().now()
    assert all(abs(now - one) < timedelta(seconds=60) for one in began_at)
    assert began_at[1] - began_at[0] >= timedelta(seconds=0.4)
    log = await app.async_client.runs.logs(run.id)
    for line in log.items:
        assert abs(now - datetime.fromisoformat(line.at)) < timedelta(seconds=60)
