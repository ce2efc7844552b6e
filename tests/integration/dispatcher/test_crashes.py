"""A dispatcher that is killed anywhere loses nothing and invents nothing."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from betimes.domain.ids import to_text
from betimes.domain.notice import DeliveryState
from betimes.ops.desk import Desk
from notify_kit import an_endpoint, an_event, deliveries
from target_kit import FakeTarget, a_target

SCRIPT = Path(__file__).parents[2] / "crash_dispatcher.py"
EVENTS = 12


@asynccontextmanager
async def a_process(dsn: str, place: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SCRIPT),
        dsn,
        place,
        stdout=asyncio.subprocess.PIPE,
        cwd=SCRIPT.parent,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def all_got(target: FakeTarget, wanted: set[str]) -> None:
    """Return when every event has arrived."""
    while {one.headers["webhook-id"] for one in target.received} < wanted:
        target.arrived.clear()
        await target.arrived.wait()


@pytest.mark.parametrize("place", ["handing", "handed", "sent", "marking", "marked"])
async def test_killed_there_and_taken_over(desk: Desk, dsn: str, place: str) -> None:
    async with a_target() as target:
        endpoint = await an_endpoint(desk, target.url(), concurrency=2)
        wanted = {to_text("evt", await an_event(desk)) for _ in range(EVENTS)}
        async with a_process(dsn, place) as process:
            assert await process.wait() == -signal.SIGKILL
        before = len(target.received)
        if place in ("sent", "marking"):
            # They have answered, and nobody knows it.
            assert before > 0
            waiting = [one.state for one in await deliveries(desk, endpoint)]
            assert waiting == [DeliveryState.WAITING] * EVENTS
        async with a_process(dsn, "never"):
            await all_got(target, wanted)
            while any(
                one.state is DeliveryState.WAITING for one in await deliveries(desk, endpoint)
            ):
                pass
        got = [one.headers["webhook-id"] for one in target.received]
        assert set(got) == wanted
        # Sent again is only what was under way, under the same id and with the same bytes.
        assert len(got) - EVENTS <= (2 if place in ("sent", "marking") else 0)
        assert len({(one.headers["webhook-id"], one.body) for one in target.received}) == EVENTS
        assert all(one.state is DeliveryState.DELIVERED for one in await deliveries(desk, endpoint))
