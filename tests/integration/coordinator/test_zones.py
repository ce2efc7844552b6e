"""When the zone rules change, future fires are computed anew, once, and by the owner only."""

from typing import Any

from betimes.coordinator.service import Coordinator
from betimes.ops.evaluating import Turn
from integration.coordinator.conftest import World

DAILY: dict[str, object] = {"type": "cron", "expr": "0 9 * * *", "timezone": "America/Vancouver"}


async def with_rules(world: World, tzdata: str) -> Coordinator:
    world.tzdata = tzdata
    return await world.coordinator()


async def test_a_stale_next_fire_is_replaced(world: World) -> None:
    """As if an older release of the rules had put nine o'clock an hour later."""
    job = await world.insert_job(DAILY)
    right = (await world.fetch("SELECT next_fire_at FROM betimes.jobs"))[0][0]
    old = await with_rules(world, "2025b")
    await old.tick()
    await world.fetch("UPDATE betimes.jobs SET next_fire_at = next_fire_at + interval '1 hour'")
    await old.elector.hand_over()
    await world.alive(old.node, draining=True)

    fresh = await with_rules(world, "2026f")
    await fresh.tick()

    rows = await world.fetch("SELECT next_fire_at, tzdata, revision FROM betimes.jobs")
    assert rows == [(right, "2026f", 1)]
    assert await world.fetch("SELECT DISTINCT tzdata FROM betimes.shards") == [("2026f",)]
    assert await world.fires(job) == []


async def test_what_has_not_changed_is_left_alone(world: World) -> None:
    await world.insert_job(DAILY)
    before = await world.fetch("SELECT next_fire_at, tzdata, xmin::text FROM betimes.jobs")
    await (await with_rules(world, "2026f")).tick()
    assert await world.fetch("SELECT next_fire_at, tzdata, xmin::text FROM betimes.jobs") == before


async def test_the_walk_is_made_once(world: World) -> None:
    await world.insert_job(DAILY)
    coordinator = await with_rules(world, "2026f")
    await coordinator.tick()
    await world.fetch("UPDATE betimes.jobs SET next_fire_at = next_fire_at + interval '1 hour'")
    assert await coordinator.zones.tick() == 0


async def test_what_is_planned_already_stays(world: World) -> None:
    """The next minutes are runs by now; their fires are not planned a second time."""
    job = await world.insert_job("every 1m")
    first = await with_rules(world, "2025b")
    await first.tick()
    planned = await world.fires(job)
    await first.elector.hand_over()
    await world.alive(first.node, draining=True)
    second = await with_rules(world, "2026f")
    await second.tick()
    assert await world.fires(job) == planned
    world.clock.advance(11)
    await world.live(240, await with_rules(world, "2026f"))
    later = await world.fires(job)
    assert later[: len(planned)] == planned
    assert len(later) == len(set(later))


EXPENSIVE = (
    '{"type": "rrule", "expr": "FREQ=SECONDLY;INTERVAL=99991;BYHOUR=3;BYMINUTE=7;BYSECOND=9;'
    'COUNT=100000", "anchor": "2026-01-01T00:00:00", "timezone": "UTC"}'
)


async def test_schedules_that_cost_too_much_keep_nobody_waiting(world: World) -> None:
    """Each takes its budget at most, others have the event loop in between, the rest is brought."""
    for _ in range(6):
        await world.insert_job(DAILY)
    right = (await world.fetch("SELECT next_fire_at FROM betimes.jobs"))[0][0]
    old = await with_rules(world, "2025b")
    await old.tick()
    await world.fetch("UPDATE betimes.jobs SET next_fire_at = next_fire_at + interval '1 hour'")
    await world.fetch(
        f"UPDATE betimes.jobs SET schedule = '{EXPENSIVE}' WHERE id IN "
        "(SELECT id FROM betimes.jobs ORDER BY id LIMIT 5)"
    )
    await old.elector.hand_over()
    await world.alive(old.node, draining=True)
    fresh = await with_rules(world, "2026f")
    await fresh.elector.tick()
    zones, sleeps = fresh.zones, Counted(fresh.zones._clock)
    zones._clock = sleeps

    assert await zones.tick() == 1
    assert sleeps.turns >= 5
    rows = await world.fetch("SELECT count(*) FROM betimes.jobs WHERE next_fire_at = $1", right)
    assert rows == [(1,)]


class Counted:
    """A clock that counts how often somebody gave the event loop away."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.turns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    async def sleep(self, seconds: float) -> None:
        self.turns += seconds == 0
        await Turn()
