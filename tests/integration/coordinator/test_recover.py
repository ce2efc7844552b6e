"""What is in a parcel is published: nobody takes it back, and nobody publishes it again.

A run that is planned and that no publisher has come to is in no parcel, whoever lost the shard in
between and however late the publisher is.
"""

from datetime import timedelta
from typing import Any

import pytest

from betimes.coordinator.service import Coordinator
from integration.coordinator.conftest import SETTINGS, World

PERIOD = timedelta(seconds=5)
COUNTER = "betimes_runs_unpublished_total"
AWAY = 92


def often(policy: str, overlap: str = "allow", **more: object) -> dict[str, object]:
    return {
        "type": "interval",
        "every": "PT5S",
        "anchor": "1970-01-01T00:00:00Z",
        "catchup": {"policy": policy, "window": "PT1H", "max": 1000},
        "overlap": overlap,
        **more,
    }


async def next_epoch(world: World) -> Coordinator:
    """Somebody takes over all shards; nothing is planned, recovered or published yet."""
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    assert len(coordinator.holdings) > 0
    return coordinator


async def lease_everything(world: World) -> set[object]:
    """A worker takes whatever is visible; returns the runs it executes now."""
    rows = await world.fetch(
        "UPDATE betimes.parcels SET worker_id = gen_random_uuid(), fence = fence + 1,"
        " deliveries = deliveries + 1, lease_until = $1, leased_at = $2"
        " WHERE worker_id IS NULL AND visible_at <= $2 RETURNING run_ids",
        world.clock.now() + timedelta(hours=1),
        world.clock.now(),
    )
    return {run for (runs,) in rows for run in runs}  # type: ignore[attr-defined]


async def stored(world: World) -> set[object]:
    return {run for (run,) in await world.fetch("SELECT id FROM betimes.runs")}


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
async def test_what_is_executed_is_not_taken_back_by_the_next_epoch(
    world: World, policy: str
) -> None:
    """Unpublished, looked at by the sweeper, leased, and then the shard changes hands again."""
    await world.insert_job(often(policy))
    await world.live(20, await world.coordinator())
    world.clock.advance(AWAY)

    second = await next_epoch(world)
    await second.sweeper.tick()
    executed = await lease_everything(world)
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))

    await world.live(30, await world.coordinator())
    assert executed <= await stored(world), "a run was taken back while it was executed"
    held: Any = await world.fetch("SELECT unnest(run_ids), fence FROM betimes.parcels")
    assert {run for run, fence in held if fence > 0} == executed
    assert len(await world.parcels()) == len(held), "a run is in two parcels"


async def test_the_sweeper_leaves_alone_what_the_publisher_has_not_come_to(world: World) -> None:
    """The publisher is late by a minute: that is no run that fell between."""
    await world.insert_job(often("all"))
    await world.live(20, await world.coordinator())
    world.clock.advance(AWAY)

    late = await next_epoch(world)
    assert await late.sweeper.tick() == 0
    assert world.telemetry.reading(COUNTER) == 0


async def test_a_late_publisher_makes_one_parcel_of_each_run(world: World) -> None:
    """What it has read and not published when the sweeper comes by stays its own."""
    runs = await world.insert_runs([world.seconds(60 + number) for number in range(5)])
    coordinator = await world.coordinator()
    await world.live(56, coordinator)
    await coordinator.publisher.tick()  # read ahead, not due
    world.clock.advance(45)
    await world.alive(coordinator.node)
    await coordinator.elector.tick()  # lost, and acquired again
    await coordinator.sweeper.tick()
    await coordinator.publisher.tick()
    assert set(await world.parcels()) == set(runs)


async def test_the_sweeper_comes_back_to_what_was_not_published_yet(world: World) -> None:
    """It has not looked at what lies beyond the cursor, so it does not say so."""
    await world.live(20, await world.coordinator())
    world.clock.advance(AWAY)
    late = await next_epoch(world)
    assert await late.sweeper.tick() == 0
    # Against the rule: inserted without a parcel where the publisher passes a moment later.
    due = world.seconds(-60)
    await world.live(1, late)
    (run,) = await world.insert_runs([due])
    assert await late.sweeper.tick() == 1
    assert set(await world.parcels()) == {run}
