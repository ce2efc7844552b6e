"""A coordinator that is far from its database, or slow, does less, never nothing, and flaps never.

The loops run as in production, each round trip takes its time on the test's clock.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from betimes.coordinator.pace import ONE_BY_ONE, PacePolicy
from betimes.coordinator.service import Coordinator
from betimes.rhythm import Stopping
from betimes.store.database import Database
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from far_kit import FarDatabase, Trips, far_database, pass_time
from integration.coordinator.conftest import World

SHARDS = 64
PERIOD = 10
NEAR = 5.0
WARM_UP = 30.0
WATCHED = 180.0


@dataclass
class Scene:
    """A cell of 64 shards with a job in each, and nodes at their distances."""

    world: World
    trips: Trips
    told: Counter[str]
    distances: tuple[float, ...]
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
            await self.finish()
            await pass_time(self.world.clock, 1.0, self.trips)

    async def finish(self) -> None:
        """What was visible half a second ago is done."""
        await self.world.fetch(
            "WITH gone AS (DELETE FROM betimes.parcels WHERE held = 0 AND visible_at <= $1 "
            "RETURNING shard, run_ids) UPDATE betimes.runs SET state = 4, "
            "first_started_at = due_at, finished_at = due_at FROM gone "
            "WHERE runs.shard = gone.shard AND runs.id = ANY (gone.run_ids) AND state < 4",
            self.world.clock.now() - timedelta(milliseconds=500),
        )

    async def behind(self) -> float:
        """How many seconds the cursor that is furthest behind lies before now."""
        ((oldest,),) = await self.world.fetch("SELECT min(published_through) FROM betimes.shards")
        assert isinstance(oldest, datetime), "a shard was never published"
        return (self.world.clock.now() - oldest).total_seconds()

    async def overdue(self, seconds: float) -> int:
        """Runs that were due so long ago and are in no parcel, and jobs that were not planned."""
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

    def part(self) -> None:
        """From here on each node is at its distance."""
        for (_, far), seconds in zip(self.nodes, self.distances, strict=True):
            far.seconds = seconds

    def held(self) -> list[int]:
        return [len(coordinator.holdings) for coordinator, _ in self.nodes]


@asynccontextmanager
async def a_scene(
    database: Database,
    dsn: str,
    clock: ManualClock,
    *seconds: float,
    policy: PacePolicy | None = None,
    runs: bool = True,
) -> AsyncIterator[Scene]:
    told: Counter[str] = Counter()
    telemetry = Telemetry(clock=clock, handlers=[lambda event: told.update([event.name])])
    world = World(database, clock, telemetry)
    await world.fetch(
        "INSERT INTO betimes.shards (shard) SELECT generate_series(0, $1) ON CONFLICT DO NOTHING",
        SHARDS - 1,
    )
    await world.fetch("UPDATE betimes.cluster SET shards = $1", SHARDS)
    for shard in range(SHARDS):
        await world.insert_job(f"every {PERIOD}s", shard=shard)
    scene = Scene(world, Trips(), told, seconds)
    stopping = Stopping()
    async with AsyncExitStack() as stack:
        for _ in seconds:
            far = await stack.enter_async_context(far_database(dsn, clock, trips=scene.trips))
            there = World(far, clock, telemetry, numbers=world.numbers)
            coordinator = await there.coordinator(policy=policy)
            scene.nodes.append((coordinator, far))
        tasks = [
            asyncio.create_task(coordinator.run(stopping))  # noqa: TID251 -- ended below
            for coordinator, _ in scene.nodes
            if runs
        ]
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
        await scene.live(NEAR)
        scene.part()
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


async def test_a_coordinator_that_is_hardly_there_does_not_flap(
    database: Database, dsn: str, clock: ManualClock
) -> None:
    """Half a second for each request: late, and little by little."""
    async with a_scene(database, dsn, clock, 0.5) as scene:
        await scene.live(NEAR)
        scene.part()
        await scene.live(90)
        assert scene.held() == [SHARDS]
        lost, ended = scene.lost, await scene.ended()
        await scene.live(90)
        assert scene.lost == lost == 0
        assert scene.acquired == SHARDS
        assert await scene.ended() > ended
        assert await scene.behind() < 60


async def test_shards_move_to_who_can_serve_them_and_stay(
    database: Database, dsn: str, clock: ManualClock
) -> None:
    async with a_scene(database, dsn, clock, 0.5, 0.0) as scene:
        await scene.live(NEAR)
        assert scene.held() == [SHARDS // 2] * 2
        scene.part()
        await scene.live(120)
        far, near = scene.held()
        assert far + near == SHARDS
        assert far <= SHARDS // 8
        lost, acquired = scene.lost, scene.acquired
        await scene.live(60)
        assert (scene.lost, scene.acquired) == (lost, acquired), "shards go back and forth"
        assert scene.lost == 0
        assert await scene.behind() < 20  # the one that was left to it
        assert await scene.overdue(20) == 0
        # It comes near again, and is given its part again.
        scene.nodes[0][1].seconds = 0.0
        await scene.live(120)
        assert scene.held() == [SHARDS // 2] * 2


async def test_without_the_pace_a_far_coordinator_publishes_nothing(
    database: Database, dsn: str, clock: ManualClock
) -> None:
    """What it is for: the same distance with each shard by itself, renewed at the end of a pass."""
    async with a_scene(database, dsn, clock, 0.1, policy=ONE_BY_ONE) as scene:
        await scene.live(NEAR)
        scene.part()
        await scene.live(WARM_UP)
        lost = scene.lost
        await scene.live(60)
        assert scene.lost >= lost + SHARDS


async def count(scene: Scene, duty: Callable[[], Awaitable[object]]) -> int:
    """How many round trips a duty makes in one pass."""
    before = scene.trips.total
    await duty()
    return scene.trips.total - before


@pytest.mark.parametrize(
    ("kind", "publishing"),
    [
        pytest.param("idle", 0, id="idle"),
        pytest.param("bare", 3, id="runs"),
        pytest.param("bound", 5, id="runs that mind each other"),
    ],
)
async def test_a_pass_asks_about_all_shards_at_once(
    database: Database, dsn: str, clock: ManualClock, kind: str, publishing: int
) -> None:
    """The budget of round trips with 64 shards; one more is one more for everybody who is far."""
    async with a_scene(database, dsn, clock, 0.0, runs=False) as scene:
        ((coordinator, _),) = scene.nodes
        for _ in range(4 * PERIOD):  # taken, brought along, planned, and one run each is over
            clock.advance(0.5)
            await scene.world.alive(coordinator.node)
            await coordinator.tick()
            await scene.finish()
        await scene.world.fetch("UPDATE betimes.jobs SET next_fire_at = NULL")
        await scene.world.fetch("DELETE FROM betimes.runs WHERE state < 4")
        await scene.world.fetch("DELETE FROM betimes.parcels")
        if kind != "idle":
            for shard in range(SHARDS):
                await scene.world.insert_runs([scene.world.seconds(5.9)], shard=shard)
        if kind == "bound":
            await scene.world.fetch(
                "UPDATE betimes.runs SET overlap = 1, job_id = jobs.id FROM betimes.jobs "
                "WHERE runs.shard = jobs.shard AND runs.state = 0"
            )
        clock.advance(5)
        await scene.world.alive(coordinator.node)
        spent = {
            "elector": await count(scene, coordinator.elector.tick),
            "zones": await count(scene, coordinator.zones.tick),
            "planner": await count(scene, coordinator.planner.tick),
            "publisher": await count(scene, coordinator.publisher.tick),
            "sweeper": await count(scene, coordinator.sweeper.tick),
            "deadlines": await count(scene, coordinator.deadlines.tick),
        }
        assert spent == {
            "elector": 2,
            "zones": 0,
            "planner": 1,
            "publisher": 3 + publishing,
            "sweeper": 2,
            "deadlines": 1,
        }
        assert len(await scene.world.parcels()) == (SHARDS if publishing else 0)
