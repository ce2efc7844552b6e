"""Fires that were planned before everybody was away are missed like those that were not."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from betimes.domain.ids import JobId
from betimes.domain.parcel import Lane
from integration.coordinator.conftest import SETTINGS, World

PERIOD = timedelta(seconds=5)
GRACE = SETTINGS.lease_ttl + timedelta(seconds=5)
SHORT, LONG = timedelta(seconds=92), timedelta(minutes=12)


def often(policy: str, overlap: str = "allow", **more: object) -> dict[str, object]:
    return {
        "type": "interval",
        "every": "PT5S",
        "anchor": "1970-01-01T00:00:00Z",
        "catchup": {"policy": policy, "window": "PT1H", "max": 1000},
        "overlap": overlap,
        **more,
    }


async def outage(world: World, lasting: timedelta) -> tuple[datetime, datetime]:
    """Somebody plans and publishes, nobody is there for a while, another one takes over."""
    first = await world.coordinator()
    await world.live(20, first)
    began = world.clock.now()
    world.clock.advance(lasting)
    back = world.clock.now()
    second = await world.coordinator()
    await world.live(5, second)
    assert await world.fetch("SELECT job_id FROM betimes.gaps") == []
    return began, back


async def accounts(world: World, job: JobId) -> tuple[set[datetime], dict[datetime, str]]:
    """The fires that are runs, and those that are decisions with their codes."""
    decided: dict[datetime, str] = {}
    rows: Any = await world.fetch(
        "SELECT fire_at, coalesce(until_at, fire_at), code FROM betimes.decisions"
        " WHERE job_id = $1",
        job,
    )
    for first, last, code in rows:
        fire = first
        while fire <= last:
            assert fire not in decided
            decided[fire] = code
            fire += PERIOD
    return set(await world.fires(job)), decided


@pytest.mark.parametrize("lasting", [SHORT, LONG], ids=["within the horizon", "beyond it"])
@pytest.mark.parametrize("policy", ["none", "latest", "all"])
async def test_the_policy_decides_about_planned_fires_as_well(
    world: World, policy: str, lasting: timedelta
) -> None:
    job = await world.insert_job(often(policy))
    started = world.clock.now()
    began, back = await outage(world, lasting)
    runs, decided = await accounts(world, job)
    assert not runs & decided.keys(), "a fire is a run or a decision"
    missed = {fire for fire in runs if began + PERIOD < fire <= back - GRACE - PERIOD}
    told = {fire for fire in decided if began < fire <= back}
    expected = int((back - GRACE - began) / PERIOD)
    if policy == "all":
        assert len(missed) >= expected - 3
        assert not told
    else:
        # What came just before the end runs as usual; it is the latest.
        assert not missed
        assert len(told) >= expected - 3
    fire = started - timedelta(seconds=started.timestamp() % 5) + PERIOD
    while fire <= back:
        assert fire in runs or fire in decided, f"{fire} is lost"
        fire += PERIOD
    (row,) = await world.fetch("SELECT fires FROM betimes.jobs WHERE id = $1", job)
    assert row == (len(runs),)


async def test_late_runs_are_paced_in_their_lane(world: World) -> None:
    job = await world.insert_job(often("all", overlap="skip"))
    began, back = await outage(world, SHORT)
    rows: Any = await world.fetch(
        "SELECT lane, count(*) FROM betimes.parcels AS parcels"
        " JOIN betimes.runs ON runs.id = ANY (parcels.run_ids)"
        " WHERE job_id = $1 AND fire_at > $2 AND fire_at <= $3 GROUP BY lane",
        job,
        began + PERIOD,
        back - GRACE - PERIOD,
    )
    assert [lane for lane, _ in rows] == [Lane.CATCH_UP]
    (episode,) = await world.fetch("SELECT runs FROM betimes.catchups")
    assert episode[0] >= sum(count for _, count in rows) >= 10


async def test_a_takeover_misses_nothing(world: World) -> None:
    """What is late by no more than a takeover takes simply runs."""
    job = await world.insert_job(often("none"))
    began, back = await outage(world, SETTINGS.lease_ttl + timedelta(seconds=2))
    runs, decided = await accounts(world, job)
    assert not decided
    fire = began - timedelta(seconds=began.timestamp() % 5) + PERIOD
    while fire <= back:
        assert fire in runs
        fire += PERIOD


async def test_a_delay_after_the_end_is_never_taken_back(world: World) -> None:
    """Its next fire follows the end of its run: without that there would never be another."""
    job = await world.insert_job(often("none", mode="fixed_delay"), next_fire_at=world.seconds(60))
    await outage(world, SHORT)
    ((run,),) = await world.fetch("SELECT id FROM betimes.runs WHERE job_id = $1", job)
    assert run in await world.parcels()


@pytest.mark.parametrize("lasting", [timedelta(minutes=4), LONG], ids=["within", "beyond"])
async def test_of_all_that_was_missed_only_the_latest_runs(
    world: World, lasting: timedelta
) -> None:
    """Whether it was planned or not: it is one outage."""
    job = await world.insert_job(often("latest") | {"every": "PT60S"})
    world.clock.advance(20)
    began, back = await outage(world, lasting)
    late = [fire for fire in await world.fires(job) if began < fire <= back]
    assert late == [max(late)]
    assert back - late[0] < timedelta(seconds=60)


async def test_what_somebody_wanted_by_hand_runs_late(world: World) -> None:
    (run,) = await world.insert_runs([world.seconds(60)])
    await outage(world, LONG)
    assert run in await world.parcels()
