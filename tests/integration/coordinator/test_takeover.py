"""Coordinators come, die and freeze at the worst moments: no shard is without an owner for long."""

import random  # noqa: TID251 -- seeded: a failure comes back
from dataclasses import dataclass, field

import pytest

from betimes.coordinator.service import Coordinator
from integration.coordinator.conftest import SETTINGS, World

SHARDS = 64
STEP = 0.5
BOUND = SETTINGS.lease_ttl.total_seconds() + 2.0


@dataclass
class Crowd:
    """Coordinators that may be killed or frozen; a frozen one says and does nothing."""

    world: World
    at_work: list[Coordinator] = field(default_factory=list)
    served_at: dict[int, float] = field(default_factory=dict)
    worst: float = 0.0

    async def join(self) -> Coordinator:
        newcomer = await self.world.coordinator()
        self.at_work.append(newcomer)
        return newcomer

    def kill(self, victim: Coordinator) -> None:
        """Or freeze: from here on nothing is heard of it."""
        self.at_work.remove(victim)

    async def live(self, seconds: float) -> None:
        for _ in range(int(seconds / STEP)):
            self.world.clock.advance(STEP)
            for coordinator in self.at_work:
                await self.world.alive(coordinator.node)
                await coordinator.elector.tick()
                await coordinator.planner.tick()
                await coordinator.publisher.tick()
            await self._look()

    async def _look(self) -> None:
        now = self.world.clock.monotonic()
        rows = await self.world.fetch(
            "SELECT shard, owner FROM betimes.shards WHERE lease_until >= $1",
            self.world.clock.now(),
        )
        awake = {coordinator.node for coordinator in self.at_work}
        for shard, owner in rows:
            if owner in awake:
                self.served_at[int(str(shard))] = now
        for shard in range(SHARDS):
            self.worst = max(self.worst, now - self.served_at.get(shard, 0.0))


@pytest.fixture
async def crowd(world: World) -> Crowd:
    await world.fetch(
        "INSERT INTO betimes.shards (shard) SELECT generate_series(0, $1) ON CONFLICT DO NOTHING",
        SHARDS - 1,
    )
    await world.fetch("UPDATE betimes.cluster SET shards = $1", SHARDS)
    return Crowd(world)


@pytest.mark.parametrize("frozen_after", [1.0, 5.0, 9.0])
async def test_who_was_to_take_over_is_gone_as_well(crowd: Crowd, frozen_after: float) -> None:
    """Its heartbeat is young: it still has a part, and takes nothing of it."""
    first, second, _ = [await crowd.join() for _ in range(3)]
    await crowd.live(5)
    crowd.kill(first)
    await crowd.live(frozen_after)
    crowd.kill(second)
    await crowd.live(BOUND + 10)
    assert crowd.worst <= BOUND
    assert len(crowd.at_work[0].holdings) == SHARDS


async def test_newcomers_that_die_at_once_keep_nobody_waiting(crowd: Crowd) -> None:
    """A node that crashes and is restarted over and over, each time under a new name."""
    survivor, victim = await crowd.join(), await crowd.join()
    await crowd.live(5)
    crowd.kill(victim)
    for _ in range(10):
        await crowd.live(2)
        await crowd.world.coordinator()  # said that it is there, and died
    assert crowd.worst <= BOUND
    assert len(survivor.holdings) == SHARDS


@pytest.mark.parametrize("seed", range(4))
async def test_shards_have_an_owner_however_coordinators_come_and_go(
    crowd: Crowd, seed: int
) -> None:
    dice = random.Random(seed)
    for _ in range(3):
        await crowd.join()
    for _ in range(10):
        await crowd.live(dice.choice([0.5, 1.0, 3.0, 6.0, 9.5]))
        if len(crowd.at_work) > 1 and dice.random() < 0.6:
            crowd.kill(dice.choice(crowd.at_work))
        if len(crowd.at_work) < 4 and dice.random() < 0.6:
            await crowd.join()
    await crowd.live(BOUND)
    assert crowd.worst <= BOUND
    await crowd.live(30)
    shares = [len(coordinator.holdings) for coordinator in crowd.at_work]
    assert sum(shares) == SHARDS
    assert max(shares) - min(shares) <= 1, "when it is calm, the parts are equal again"
