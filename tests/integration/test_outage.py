"""Ten minutes without a database, by the test's clock: nobody gives up, nobody hammers."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from betimes.app.presence import Presence
from betimes.config.settings import JanitorSettings
from betimes.domain.errors import Unavailable
from betimes.domain.states import RunState
from betimes.janitor.reap import Reaper
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.store.reap import Reaping
from betimes.telemetry import Recorder, Telemetry
from betimes.testing import ManualClock
from integration.coordinator.conftest import World
from integration.test_presence import a_node
from worker_kit import a_worker, enqueue, run_id, settle_down, state_of

STEP_SECONDS = 0.25
OUTAGE = timedelta(minutes=10)
RECOVERED = timedelta(seconds=3)
ATTEMPTS_PER_SECOND_MAX = 20.0
"""Of a coordinator, a worker, a janitor and a presence together."""


class Outage:
    """A database that can go away; counts who asks meanwhile."""

    def __init__(self, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.away = False
        self.attempts = 0
        self._real: Any = database._acquire
        monkeypatch.setattr(database, "_acquire", self._acquire)

    async def _acquire(self, lane: Any) -> Any:
        if self.away:
            self.attempts += 1
            raise Unavailable("the database is away")
        return await self._real(lane)


async def pass_time(clock: ManualClock, seconds: float, database: Database | None = None) -> None:
    """Step by step; with a database, everybody gets the time to really talk to it."""
    for _ in range(int(seconds / STEP_SECONDS)):
        clock.advance(STEP_SECONDS)
        await settle_down()
        for _ in range(20 if database else 0):
            async with asyncio.timeout(5):
                await World(database, clock, Telemetry(clock=clock)).fetch("SELECT 1")  # type: ignore[arg-type]


async def test_after_ten_minutes_everybody_is_back_within_three_seconds(
    database: Database, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(database, clock, Telemetry(clock=clock))
    coordinator = await world.coordinator()
    outage, stopping = Outage(database, monkeypatch), Stopping()
    reaper = Reaper(
        reaping=Reaping(database, lambda: run_id(clock.now())),
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(),
    )
    async with a_worker(database, clock) as bench, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(coordinator.run(stopping)),
            group.create_task(bench.parts.lookout.run(stopping, loops=2)),
            group.create_task(reaper.run(stopping)),
            group.create_task(
                Presence(node=a_node(database, clock, number=1, recorder=Recorder())).run(stopping)
            ),
        ]
        await pass_time(clock, 3, database)
        assert len(coordinator.holdings) == 4

        outage.away = True
        await pass_time(clock, OUTAGE.total_seconds() - 60)
        outage.attempts = 0
        await pass_time(clock, 60)
        assert 0 < outage.attempts / 60 <= ATTEMPTS_PER_SECOND_MAX
        assert not any(task.done() for task in tasks), "somebody gave up"

        outage.away = False
        (run,) = await enqueue(database, clock.now(), ["noop"])
        returned_at = clock.now()
        await pass_time(clock, RECOVERED.total_seconds(), database)
        await bench.parts.reporter.flush()
        assert len(coordinator.holdings) == 4
        assert await state_of(database, run) is RunState.SUCCEEDED
        rows = await world.fetch("SELECT max(heartbeat_at) FROM betimes.nodes")
        assert rows[0][0] > returned_at, "the presence is not back"  # type: ignore[operator]
        for task in tasks:
            task.cancel()
