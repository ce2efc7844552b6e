"""The sweeper finds what cannot be, repairs it, and stays silent otherwise."""

from integration.coordinator.conftest import World

COUNTER = "betimes_runs_unpublished_total"


async def test_a_healthy_line_gives_the_sweeper_nothing_to_do(world: World) -> None:
    coordinator = await world.coordinator()
    await world.insert_job("every 5s")
    await world.live(90, coordinator)
    assert await coordinator.sweeper.tick() == 0
    assert world.telemetry.reading(COUNTER) == 0


async def test_a_run_that_fell_between_is_found_repaired_and_counted(world: World) -> None:
    coordinator = await world.coordinator()
    await world.live(5, coordinator)
    # Against the rule: inserted for the past, without a parcel.
    (run,) = await world.insert_runs([world.seconds(-2)])
    await world.live(40, coordinator)
    assert await world.parcels() == {}

    assert await coordinator.sweeper.tick() == 1
    assert set(await world.parcels()) == {run}
    assert world.telemetry.reading(COUNTER) == 1
    assert await coordinator.sweeper.tick() == 0


async def test_finished_runs_are_not_missed(world: World) -> None:
    coordinator = await world.coordinator()
    await world.live(1, coordinator)
    await world.insert_runs([world.seconds(-2)])
    await world.fetch("UPDATE betimes.runs SET state = 4, finished_at = now()")
    await world.live(40, coordinator)
    assert await coordinator.sweeper.tick() == 0


async def test_a_stale_owner_sweeps_nothing(world: World) -> None:
    coordinator = await world.coordinator()
    await world.live(1, coordinator)
    await world.insert_runs([world.seconds(-60)])
    await world.fetch("UPDATE betimes.shards SET epoch = epoch + 1, owner = gen_random_uuid()")
    assert await coordinator.sweeper.tick() == 0
    assert await world.parcels() == {}
