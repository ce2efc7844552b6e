"""A coordinator that is far from its database, or slow, does less, never nothing, and flaps never.

The loops run as in production, each round trip takes its time on the test's clock.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from betimes.coordinator.service import Coordinator
from betimes.domain.ids import ShardId
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from far_kit import FarDatabase, Trips, far_database, pass_time
from integration.coordinator.conftest import World

SHARDS = 64
PERIOD = 10
WARM_UP = 60.0
WATCHED = 120.0


@dataclass
class Scene:
    """A cell of 64 shards with a job in each, and nodes at their distances."""

    world: World
    trips: Trips
    told: Counter[str]
    nodes: list[tuple[Coordinator, FarDatabase]] = field(default_factory=list)
    silent: set[int] = field(default_factory=set)

    @property
    def lost(self) -> int:
        return self.told["shard.lost"]

    @property
    def acquired(self) -> int:
        return self.told["shard.acquired"]

    async def live(self, seconds: float) -> None:
        """Everybody works; runs end half a second after they have become visible."""
        for _ in range(int(seconds)):
            for number, (coordinator, _) in enumerate(self.nodes):
                if number not in self.silent:
                    await self.world.alive(coordinator.node)
            await self.world.fetch(
                "WITH gone AS (DELETE FROM betimes.parcels WHERE held = 0 AND visible_at <= $1 "
                "RETURNING shard, run_ids) UPDATE betimes.runs SET state = 4, "
                "first_started_at = due_at, finished_at = due_at FROM gone "
                "WHERE runs.shard = gone.shard AND runs.id = ANY (gone.run_ids) AND state < 4",
                self.world.clock.now() - timedelta(milliseconds=500),
            )
            await pass_time(self.world.clock, 1.0, self.trips)

    async def behind(self) -> float:
        """How many seconds the cursor that is furthest behind lies before now."""
        ((oldest,),) = await self.world.fetch("SELECT min(published_through) FROM betimes.shards")
        assert oldest is not None, "a shard was never published"
        return (self.world.clock.now() - oldest).total_seconds()  # type: ignore[operator]

    async def overdue(self, seconds: float) -> int:
        """Runs, or fires that did not become any, that were due so long ago and are in no parcel."""
        before = self.world.clock.now() - timedelta(seconds=seconds)
        ((runs,),) = await self.world.fetch(
            "SELECT count(*) FROM betimes.runs WHERE state = 0 AND due_at < $1 AND NOT EXISTS "
            "(SELECT FROM betimes.parcels WHERE runs.id = ANY (run_ids))",
            before,
        )
        ((jobs,),) = await self.world.fetch(
            "SELECT count(*) FROM betimes.jobs WHERE next_fire_at < $1", before
        )
        return int(str(runs)) + int(str(jobs))

    async def ended(self) -> int:
        ((runs,),) = await self.world.fetch("SELECT count(*) FROM betimes.runs WHERE state = 4")
        return int(str(runs))

    def held(self) -> list[int]:
        return [len(coordinator.holdings) for coordinator, _ in self.nodes]


@asynccontextmanager
async def a_scene(
    database: Database, dsn: str, clock: ManualClock, *seconds: float
) -> AsyncIterator[Scene]:
    told: Counter[str] = Counter()
    telemetry = Telemetry(
        clock=clock,
        handlers=[
            lambda event: (
                told.update([event.name]),
                print(clock.monotonic(), event)
                if event.level in ("warning", "error")
                and told[str(event.metadata.get("why")) + event.name] < 12
                else None,
            )
        ],
    )
    world = World(database, clock, telemetry)
    await world.fetch(
        "INSERT INTO betimes.shards (shard) SELECT generate_series(0, $1) ON CONFLICT DO NOTHING",
        SHARDS - 1,
    )
    await world.fetch("UPDATE betimes.cluster SET shards = $1", SHARDS)
    for shard in range(SHARDS):
        await world.insert_job(f"every {PERIOD}s", shard=shard)
    scene = Scene(world, Trips(), told)
    stopping = Stopping()
    async with AsyncExitStack() as stack:
        for distance in seconds:
            far = await stack.enter_async_context(far_database(dsn, clock, trips=scene.trips))
            coordinator = await World(far, clock, telemetry, numbers=world.numbers).coordinator()
            scene.nodes.append((coordinator, far))
            far.seconds = distance
        tasks = [asyncio.create_task(coordinator.run(stopping)) for coordinator, _ in scene.nodes]
        try:
            yield scene
        finally:
            for task in tasks:
                task.cancel()
            for _, far in scene.nodes:
                far.seconds = 0.0
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert not [one for one in done if isinstance(one, Exception)]


@pytest.mark.parametrize("milliseconds", [20, 100, 250])
async def test_a_far_coordinator_serves_all_its_shards(
    database: Database, dsn: str, clock: ManualClock, milliseconds: int
) -> None:
    async with a_scene(database, dsn, clock, milliseconds / 1000) as scene:
        await scene.live(WARM_UP)
        lost, ended = scene.lost, await scene.ended()
        behind = []
        for _ in range(int(WATCHED / 10)):
            await scene.live(10)
            behind.append(await scene.behind())
        assert scene.lost == lost, "a shard was lost after the warm-up"
        assert scene.held() == [SHARDS]
        assert max(behind) < 60 * milliseconds / 1000 + 1
        assert await scene.overdue(60 * milliseconds / 1000 + 1) == 0
        assert await scene.ended() - ended >= SHARDS * (WATCHED / PERIOD - 3)
