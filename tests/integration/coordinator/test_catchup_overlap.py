"""What is caught up with and minds other runs of its job."""

from datetime import timedelta

from integration.coordinator.conftest import World
from integration.coordinator.test_catchup import catch_up, every_minute


async def test_late_runs_that_mind_each_other_stand_in_line(world: World) -> None:
    """Those that may go wait for their verdict; the others for approval."""
    job = await world.insert_job(every_minute() | {"overlap": "skip"})
    world.clock.advance(timedelta(minutes=5))
    await catch_up(world, catchup_unapproved=2)
    rows = await world.fetch(
        "SELECT line, held, cardinality(run_ids) FROM betimes.parcels WHERE lane = 2 ORDER BY held"
    )
    assert [(held, runs) for _, held, runs in rows[:3]] == [(2, 1), (2, 1), (3, 1)]
    assert {line for line, _, _ in rows} == {job}
