"""The clock of the database is set back by a minute, or forward by an hour, while we work."""

from datetime import datetime, timedelta

import pytest

from betimes.domain import ids
from betimes.domain.ids import ShardId
from betimes.store.database import Database
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from integration.coordinator.conftest import World

BACK = timedelta(seconds=66)
FORWARD = timedelta(hours=1)


class SetClock(ManualClock):
    """One whose time can be set; what measures patience goes on."""

    def set_by(self, by: timedelta) -> None:
        self._now += by


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def world(database: Database, clock: SetClock) -> World:
    return World(database, clock, Telemetry(clock=clock))


async def marks(world: World) -> list[tuple[object, ...]]:
    return await world.fetch(
        "SELECT shard, epoch, published_through, swept_through FROM betimes.shards ORDER BY shard"
    )


async def test_a_minute_that_comes_twice_loses_nothing(world: World, clock: SetClock) -> None:
    """Runs that are due before the cursor and beyond the margin: nobody would come to them."""
    owner = await world.coordinator()
    job = await world.insert_job("every 5s", shard=2)
    await world.live(70, owner)
    before = await marks(world)
    clock.set_by(-BACK)
    await world.live(2, owner)
    dues = [world.seconds(number) for number in (11, 20, 30, 45, 60, 63, 64.5, 66, 67, 68.9, 80)]
    runs = dict(zip(await world.insert_runs(dues, shard=1), dues, strict=True))
    seen: dict[object, datetime] = {}
    for _ in range(2 * 100):
        await world.live(0.5, owner)
        for run, visible_at in (await world.parcels()).items():
            assert visible_at == ids.time_of(run), "nothing is early"
            seen.setdefault(run, clock.now())
        after = await marks(world)
        assert all(new >= old for new, old in zip(after, before, strict=True))
        before = after
    assert {run: due for run, due in runs.items() if seen.get(run, due) > due} == {}
    assert set(runs) <= set(seen)
    assert len(owner.holdings) == 4
    assert len(await world.fires(job)) == len(set(await world.fires(job)))
    late = [run for run, at in seen.items() if at > ids.time_of(run) + timedelta(seconds=70)]  # type: ignore[arg-type]
    assert not late


async def test_a_new_owner_in_the_second_minute_knows_of_it(world: World, clock: SetClock) -> None:
    owner = await world.coordinator()
    await world.live(70, owner)
    await owner.elector.hand_over()
    clock.set_by(-BACK)
    heir = await world.coordinator()
    await world.live(1, heir)
    (run,) = await world.insert_runs([world.seconds(30)], shard=1)
    await world.live(29, heir)
    assert run in await world.parcels()


async def test_an_hour_that_never_came_is_caught_up_with(world: World, clock: SetClock) -> None:
    owner = await world.coordinator()
    job = await world.insert_job("every 10m", shard=1)
    runs = await world.insert_runs([world.seconds(900)], shard=2)
    await world.live(20, owner)
    before = await marks(world)
    clock.set_by(FORWARD)
    await world.live(15, owner)
    assert len(owner.holdings) == 4
    assert set(runs) <= set(await world.parcels())
    assert all(new >= old for new, old in zip(await marks(world), before, strict=True))
    held = owner.holdings.get(ShardId(1))
    assert held is not None
    ((behind,),) = await world.fetch("SELECT next_fire_at FROM betimes.jobs WHERE id = $1", job)
    assert behind >= clock.now()  # type: ignore[operator]
