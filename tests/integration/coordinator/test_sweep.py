"""The sweeper finds what cannot be, repairs it, and stays silent otherwise."""

from datetime import timedelta

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
    await world.live(40, coordinator, without=["sweeper"])
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


async def test_what_is_repaired_takes_the_overlap_decision(world: World) -> None:
    """While an earlier run of the job is under way, a fire that fell between is skipped."""
    coordinator = await world.coordinator()
    await world.insert_job({"type": "interval", "every": "PT10S", "overlap": "skip"})
    await world.live(12, coordinator)
    (first,) = await world.parcels()
    lease = world.clock.now() + timedelta(hours=1)
    await world.fetch(
        "UPDATE betimes.parcels SET worker_id = gen_random_uuid(), lease_until = $1", lease
    )
    await world.live(9, coordinator)
    ((second,),) = await world.fetch("SELECT id FROM betimes.runs WHERE state = 7")
    await world.fetch(
        "UPDATE betimes.runs SET state = 1, finished_at = NULL, reason = NULL, blocked_by = NULL"
        " WHERE id = $1",
        second,
    )
    await world.fetch("DELETE FROM betimes.decisions")
    await world.live(40, coordinator, without=["sweeper"])
    assert await coordinator.sweeper.tick() == 1
    rows = await world.fetch("SELECT state, blocked_by FROM betimes.runs WHERE id = $1", second)
    assert rows == [(7, first)]
    found = await world.fetch("SELECT code FROM betimes.decisions WHERE fire_at <= $1", lease)
    assert {code for (code,) in found} == {"OVERLAP_SKIPPED"}
