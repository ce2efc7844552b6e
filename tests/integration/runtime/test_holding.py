"""What a worker holds: through computing handlers, in processes, and while its lease is its own."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import protocol_app
from api_kit import Served
from betimes import App, Context
from runtime_kit import Way, eventually, http, working

BUSY_SECONDS = 5.0
"""Two and a half lease times."""


@pytest.fixture
def processes(app: App) -> Iterator[App]:
    """The app of another module, on this test's service."""
    protocol_app.app.__dict__.pop("async_client", None)
    protocol_app.app._url, protocol_app.app._api_key = app.url, app.api_key
    yield protocol_app.app
    protocol_app.app.__dict__.pop("async_client", None)


async def test_handlers_in_processes_speak_and_are_heard(processes: App, lines: Way) -> None:
    run = await protocol_app.compute.aenqueue([1, 2, 3])
    async with working(processes, lines):
        ended = await run.awaited(timeout=30)
    assert ended.result == 6
    assert ended.run.progress == {"percent": 100, "message": None}
    log = await processes.async_client.runs.logs(run.id)
    assert [line.message for line in log.items] == ["computing"]
    await processes.aclose()


async def test_a_process_that_dies_fails_its_own_attempt_only(
    processes: App, served: Served
) -> None:
    lines = http(served, await served.key(kind="wk"))
    runs = [await protocol_app.die_once.aenqueue(), await protocol_app.compute.aenqueue([4])]
    async with working(processes, lines):
        ended = [await run.awaited(timeout=30) for run in runs]
    assert [one.result for one in ended] == [2, 4]
    await processes.aclose()


async def test_a_process_is_killed_when_its_time_is_up_and_told_when_cancelled(
    processes: App, served: Served
) -> None:
    lines = http(served, await served.key(kind="wk"))
    spinning = await protocol_app.spin.aenqueue()
    waiting = await protocol_app.until_told.aenqueue()
    async with working(processes, lines):
        ended = await spinning.awaited(timeout=30)

        async def began() -> Any:
            return (await processes.async_client.runs.logs(waiting.id)).items

        await eventually(began)
        await processes.async_client.runs.cancel(waiting.id)
        other = await waiting.awaited(timeout=30)
    assert ended.run.error is not None
    assert (ended.state, ended.run.error.type) == ("dead", "TimedOut")
    assert other.state == "cancelled"
    await processes.aclose()


async def test_computing_in_a_thread_costs_no_lease(app: App, lines: Way) -> None:
    fences: list[int] = []

    @app.task
    def burn(ctx: Context) -> int:
        fences.append(ctx.fence)
        end = time.monotonic() + BUSY_SECONDS
        count = 0
        while time.monotonic() < end:
            count += 1
        return ctx.fence

    run = await burn.aenqueue()
    async with working(app, lines) as crew:
        ended = await run.awaited(timeout=40)
        assert crew.events("worker.lease_lost") == []
    assert (ended.result, fences) == (1, [1])


async def test_computing_on_the_loop_costs_no_lease(served: Served, app: App) -> None:
    """Longer than a lease, while the main loop itself stands still: the heartbeat goes on."""
    blocked = threading.Event()

    @app.task
    async def block(ctx: Context) -> int:
        blocked.set()
        time.sleep(3.0)  # noqa: ASYNC251
        return ctx.fence

    # In a thread with a loop of its own: the server must not stand still with it.
    lines = http(served, await served.key(kind="wk"))
    run = await block.aenqueue()
    lost: list[Any] = []

    def work() -> None:
        async def live() -> None:
            async with working(app, lines) as crew:
                await asyncio.to_thread(blocked.wait, 20)
                await asyncio.sleep(4.0)
                lost.extend(crew.events("worker.lease_lost"))

        asyncio.run(live())

    await asyncio.to_thread(work)
    ended = await run.awaited(timeout=10)
    assert (ended.result, lost) == (1, [])
