"""A worker killed at every point of the protocol: no run is lost, no stale word is believed."""

import asyncio
import signal
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import protocol_app
from api_kit import Client, Served
from betimes import App
from betimes.config.settings import JanitorSettings
from betimes.janitor.reap import Reaper
from betimes.rhythm import Stopping
from betimes.store.reap import Reaping
from betimes.telemetry import Telemetry
from betimes.testing.real_clock import RealClock
from kill_kit import Killer, Point, doomed
from runtime_kit import http, working

HELD = b'"lease_id"'
POINTS = [
    Point(says, before, reply if not before else b"")
    for says, reply in (
        (b"POST /v1/workers HTTP", b""),
        (b"/parcels HTTP", HELD),
        (b"/heartbeat HTTP", b""),
        (b"/checkpoint HTTP", b""),
        (b"/progress HTTP", b""),
        (b"/logs HTTP", b""),
        (b"/reports HTTP", b""),
        (b"/leave HTTP", b""),
    )
    for before in (True, False)
]
AT_ONCE = 4

pytestmark = pytest.mark.timeout(280)


async def test_no_run_is_lost_wherever_its_worker_is_killed(
    served: Served, app: App, admin: Client, tmp_path: Path
) -> None:
    key = await served.key(kind="wk")
    protocol_app.app.__dict__.pop("async_client", None)
    protocol_app.app._url, protocol_app.app._api_key = app.url, app.api_key
    turns, killers = asyncio.Semaphore(AT_ONCE), dict[Point, Killer]()
    runs = {
        point: await protocol_app.witnessed.configure(queue=f"q{place}").aenqueue(str(tmp_path))
        for place, point in enumerate(POINTS)
    }

    async def kill(place: int, point: Point) -> None:
        async with (
            turns,
            doomed(
                served.port, point, key=key, place="protocol_app:app", queue=f"q{place}"
            ) as killer,
        ):
            killers[point] = killer
            assert killer.process is not None
            if point.says == b"/leave HTTP":
                await runs[point].awaited(timeout=60)
                killer.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await killer.killed.wait()
            assert await killer.process.wait() == -signal.SIGKILL, str(point)

    async with asyncio.TaskGroup() as group:
        reaping = group.create_task(reap(served))
        async with asyncio.TaskGroup() as killing:
            for place, point in enumerate(POINTS):
                killing.create_task(kill(place, point))
        queues = [f"q{place}" for place in range(len(POINTS))]
        async with working(protocol_app.app, http(served, key), queues=queues, concurrency=32):
            ended = {point: await run.awaited(timeout=60) for point, run in runs.items()}
        reaping.cancel()
    assert {str(point): one.state for point, one in ended.items() if not one.succeeded} == {}
    for point, run in runs.items():
        attempts = (tmp_path / run.id).read_text().split("\n")[:-1]
        assert 1 <= len(attempts) <= 2, (str(point), attempts)
        for lease in killers[point].leases:
            held = f"{lease}.{run.id}"
            await judge(admin, held, point, fence=ended[point].result)
    await protocol_app.app.aclose()


async def judge(admin: Client, lease: str, point: Point, *, fence: int) -> None:
    """The dead worker's word: repeated if it was the one that counted, else refused."""
    told = await admin("POST", f"/v1/leases/{lease}/complete", {"result": "stale"})
    if fence == 1:
        assert told.status == 200, (str(point), told.body)
    else:
        assert (told.status, told.code) == (409, "lease_lost"), (str(point), told.body)


async def reap(served: Served) -> None:
    """What the janitor does all the time."""
    clock = RealClock()
    settings = JanitorSettings(reap_every=timedelta(milliseconds=200))
    await Reaper(
        reaping=Reaping(served.desk.database, uuid.uuid4),
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=settings,
    ).run(Stopping())


@pytest.fixture
async def admin(served: Served) -> Any:
    return await served.admin()
