"""When the zone rules change, future fires are computed anew, once, and by the owner only."""

from betimes.coordinator.service import Coordinator
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
