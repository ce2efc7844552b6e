"""What is caught up with and minds other runs of its job."""

from datetime import timedelta

import pytest

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


@pytest.mark.parametrize("waits_for", ["approval", "its turn"])
async def test_what_waits_for_approval_or_its_turn_is_in_no_fires_way(
    world: World, waits_for: str
) -> None:
    """While a backlog waits, fires of now go on."""
    await world.insert_job(every_minute() | {"overlap": "skip"})
    world.clock.advance(timedelta(minutes=90))
    unapproved = 0 if waits_for == "approval" else 100
    coordinator = await catch_up(world, catchup_unapproved=unapproved)
    later = "UPDATE betimes.parcels SET visible_at = visible_at + interval '1 h' WHERE held = 2"
    await world.fetch(later)
    began = world.clock.now()
    # A fire of this very minute is under way already; it ends.
    await world.live(5, coordinator)
    await world.fetch(
        "UPDATE betimes.runs SET state = 4, finished_at = now(), first_started_at = now()"
        " WHERE id IN (SELECT unnest(run_ids) FROM betimes.parcels WHERE lane = 0)"
        " AND due_at <= $1",
        began,
    )
    next_fire = began.replace(second=0, microsecond=0) + timedelta(minutes=1)
    await world.live((next_fire - world.clock.now()).total_seconds() + 1, coordinator)
    held = await world.fetch("SELECT held FROM betimes.parcels WHERE lane = 2")
    assert {hold for (hold,) in held} == {3 if waits_for == "approval" else 2}
    assert len(held) > 50
    rows = await world.fetch("SELECT reason FROM betimes.runs WHERE fire_at = $1", next_fire)
    assert rows == [(None,)]
    offered = await world.fetch("SELECT held FROM betimes.parcels WHERE lane = 0")
    assert (0,) in offered


async def test_a_long_line_does_not_hide_what_runs_before_it(world: World) -> None:
    """More late runs than one look back reads, and behind all of them one that has not ended."""
    job = await world.insert_job(every_minute() | {"overlap": "skip"})
    coordinator = await world.coordinator()
    await world.live(61, coordinator)
    ((first,),) = await world.fetch(
        "UPDATE betimes.parcels SET worker_id = gen_random_uuid(), fence = 1, deliveries = 1,"
        " lease_until = now() + interval '1 y' WHERE visible_at <= $1 RETURNING id",
        world.clock.now(),
    )
    await coordinator.elector.hand_over()
    world.clock.advance(timedelta(minutes=89, seconds=30))
    heir = await catch_up(world, catchup_unapproved=1_000)
    await world.live(5, heir)
    late = "SELECT count(*), sum((held = 0)::int) FROM betimes.parcels WHERE line = $1"
    ((waiting, offered),) = await world.fetch(late, job)
    assert waiting > 64  # type: ignore[operator]
    assert not offered, "offered while an earlier run is under way"
    await world.fetch(
        "UPDATE betimes.runs SET state = 4, finished_at = now(), first_started_at = now()"
        " WHERE id = $1",
        first,
    )
    await world.fetch("DELETE FROM betimes.parcels WHERE id = $1", first)
    await world.live(5, heir)
    ((_, offered),) = await world.fetch(late, job)
    assert offered
