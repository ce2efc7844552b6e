"""What was missed comes back paced, after what is on time, and above a size only when approved."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from betimes.coordinator.plan import LATE_AFTER
from betimes.coordinator.service import Coordinator
from betimes.domain.errors import IllegalTransition, NotFound, UnknownOutcome
from betimes.domain.ids import ShardId
from betimes.domain.parcel import CATCH_UP_PENALTY, Hold, Lane
from betimes.domain.states import RunState
from betimes.ops.catchups import (
    Verdict,
    carry_out,
    decide_catchup,
    get_catchup,
    list_catchups,
)
from betimes.ops.create import NewJob, create_job
from betimes.ops.desk import Desk
from betimes.ops.explain import explain_job, explain_run
from betimes.store.joining import EpisodeState
from integration.coordinator.conftest import SETTINGS, TENANT, World, ahead
from ops_kit import OTHER, SHARDS, add_tenant, every, make_desk, once

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
ALL = {"policy": "all", "window": "PT12H", "max": 1000}


def every_minute(**catchup: object) -> dict[str, object]:
    return {
        "type": "interval",
        "every": "PT60S",
        "anchor": "1970-01-01T00:00:00Z",
        "catchup": catchup or ALL,
        "overlap": "allow",
    }


async def catch_up(world: World, **settings: int) -> Coordinator:
    """A coordinator that has planned and settled everything there is."""
    coordinator = await world.coordinator(replace(SETTINGS, **settings))  # type: ignore[arg-type]
    await coordinator.elector.tick()
    await settle(world, coordinator)
    return coordinator


async def settle(world: World, coordinator: Coordinator) -> None:
    for _ in range(3):
        await coordinator.planner.tick()
    assert await world.fetch("SELECT job_id FROM betimes.gaps") == []


async def carry_out_all(desk: Desk) -> int:
    return sum([await carry_out(desk, ShardId(shard)) for shard in range(SHARDS)])


async def late_parcels(world: World) -> list[tuple[datetime, datetime, int, int, int]]:
    return await world.fetch(  # type: ignore[return-value]
        "SELECT visible_at, rank, priority, held, cardinality(run_ids) FROM betimes.parcels "
        "WHERE lane = $1 ORDER BY visible_at, id",
        int(Lane.CATCH_UP),
    )


async def test_missed_fires_wait_in_a_lane_of_their_own_paced_and_ranked_later(
    world: World,
) -> None:
    job = await world.insert_job(every_minute())
    world.clock.advance(HOUR)
    now = world.clock.now()
    await catch_up(world, catchup_per_second=10)

    missed = [fire for fire in await world.fires(job) if fire <= now - LATE_AFTER]
    assert len(missed) == 59
    late = await late_parcels(world)
    assert sum(runs for *_, runs in late) == 59
    assert all(held == 0 for _, _, _, held, _ in late)
    for visible_at, rank, priority, _, _ in late:
        assert rank == visible_at - priority * timedelta(seconds=10) + CATCH_UP_PENALTY
    visible = 0
    for visible_at, *_, runs in late:
        visible += runs
        allowed = (visible_at - now).total_seconds() * 10 + 1
        assert visible <= allowed + 1e-6, "more became visible than the pace allows"
    assert late[-1][0] <= now + timedelta(seconds=6)


async def test_late_runs_are_handed_out_after_what_is_on_time(world: World) -> None:
    """By rank, within the penalty; after it they have aged."""
    job = await world.insert_job(every_minute())
    world.clock.advance(timedelta(minutes=5))
    coordinator = await catch_up(world)
    fresh = await world.insert_job("every 4s")
    await world.live(20, coordinator)
    rows = await world.fetch(
        "SELECT runs.job_id, parcels.lane FROM betimes.parcels "
        "JOIN betimes.runs ON runs.id = ANY (parcels.run_ids) "
        "WHERE parcels.visible_at <= $1 ORDER BY parcels.rank, runs.id",
        world.clock.now(),
    )
    lanes = [int(str(lane)) for _, lane in rows]
    assert {found for found, _ in rows} == {job, fresh}
    assert lanes == sorted(lanes), "late work stands before work that is on time"
    assert Lane.CATCH_UP in lanes


async def test_what_is_on_time_is_planned_before_a_gap_is_settled(world: World) -> None:
    """Nothing of a long gap is computed before the fires of now are runs."""
    behind = await world.insert_job(every_minute())
    world.clock.advance(10 * HOUR)
    fresh = await world.insert_job("every 10s")
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    order: list[str] = []
    planning, catching = coordinator.planner._planning, coordinator.planner._catching
    commit, settle_gaps = planning.commit, catching.settle

    async def note_commit(claim, steps, **options):  # type: ignore[no-untyped-def]
        order.extend("behind" if step.job.id == behind else "fresh" for step in steps)
        return await commit(claim, steps, **options)

    async def note_settle(*arguments, **options):  # type: ignore[no-untyped-def]
        now = world.clock.now()
        assert any(fire > now for fire in await world.fires(behind)), "the gap came first"
        order.append("settled")
        return await settle_gaps(*arguments, **options)

    coordinator.planner._planning = _With(planning, commit=note_commit)  # type: ignore[assignment]
    coordinator.planner._catching = _With(catching, settle=note_settle)  # type: ignore[assignment]
    await coordinator.planner.tick()
    assert order == ["fresh", "behind", "settled"]
    assert len(await world.fires(fresh)) == ahead(world.clock.now(), 10)


async def test_a_lost_reply_while_settling_neither_loses_nor_doubles(world: World) -> None:
    job = await world.insert_job(every_minute())
    world.clock.advance(HOUR)
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    catching, losses = coordinator.planner._catching, iter([True])
    settle_gaps = catching.settle

    async def forgetful(*arguments, **options):  # type: ignore[no-untyped-def]
        answer = await settle_gaps(*arguments, **options)
        if next(losses, False):
            raise UnknownOutcome("the reply was lost")
        return answer

    coordinator.planner._catching = _With(catching, settle=forgetful)  # type: ignore[assignment]
    with pytest.raises(UnknownOutcome):
        await coordinator.planner.tick()
    await coordinator.planner.tick()
    fires = await world.fires(job)
    assert len(fires) == len(set(fires)) == 60 + ahead(world.clock.now(), 60)
    await world.parcels()
    assert await world.fetch("SELECT runs FROM betimes.catchups") == [(59,)]


async def test_a_stale_owner_settles_nothing(world: World) -> None:
    """The epoch guard alone: the gap is there, and the stale owner still trusts its term."""
    await world.insert_job(every_minute())
    world.clock.advance(HOUR)
    stale = await world.coordinator()
    await stale.elector.tick()
    planner = stale.planner
    held = list(stale.holdings)
    catching = planner._catching
    planner._catching = _With(catching, shards_behind=_nobody)  # type: ignore[assignment]
    await planner.tick()
    await world.fetch("UPDATE betimes.shards SET epoch = epoch + 1")
    planner._catching = catching
    assert await planner._settle(held) == 0
    assert len(await world.fetch("SELECT job_id FROM betimes.gaps")) == 1


async def _nobody(*_: object, **__: object) -> list[int]:
    return []


async def test_above_a_size_the_rest_waits_until_somebody_approves(world: World) -> None:
    job = await world.insert_job(every_minute())
    desk = make_desk(world.database, world.clock)
    world.clock.advance(HOUR)
    await catch_up(world, catchup_unapproved=20, catchup_per_second=4)
    late = await late_parcels(world)
    assert sum(runs for *_, held, runs in late if not held) == 20
    assert sum(runs for *_, held, runs in late if held == 3) == 39

    (seen,) = await list_catchups(desk, TENANT, before=None, most=10)
    found = await get_catchup(desk, TENANT, seen.catchup.id)
    assert found.catchup.state is EpisodeState.WAITING
    assert (found.catchup.runs, found.catchup.held) == (59, 39)
    assert [(one.queue, one.runs) for one in found.by_queue] == [("q", 39)]
    assert [(one.job, one.runs) for one in found.by_job] == [(job, 39)]
    assert found.catchup.first_fire_at == min(await world.fires(job))
    assert found.drained_at == found.catchup.paced_through + timedelta(seconds=39 / 4)

    before = found.catchup.paced_through
    await decide_catchup(desk, TENANT, found.catchup.id, Verdict.APPROVE, actor="me")
    assert await carry_out_all(desk) == 39
    assert await carry_out_all(desk) == 0
    late = await late_parcels(world)
    assert all(not held for *_, held, _ in late)
    released = [(visible, runs) for visible, *_, runs in late if visible >= before]
    assert sum(runs for _, runs in released) == 39
    assert released[-1][0] - before <= timedelta(seconds=39 / 4)
    after = (await get_catchup(desk, TENANT, found.catchup.id)).catchup
    assert (after.state, after.held, after.released) == (EpisodeState.APPROVED, 0, 39)


async def test_what_is_dropped_is_recorded_fire_by_fire(world: World) -> None:
    job = await world.insert_job(every_minute())
    desk = make_desk(world.database, world.clock)
    world.clock.advance(HOUR)
    await catch_up(world, catchup_unapproved=20)
    (seen,) = await list_catchups(desk, TENANT, before=None, most=10)
    fires = set(await world.fires(job))
    await decide_catchup(desk, TENANT, seen.catchup.id, Verdict.DROP, reason="too old")
    await decide_catchup(desk, TENANT, seen.catchup.id, Verdict.DROP, reason="too old")
    assert await carry_out_all(desk) == 39
    left = set(await world.fires(job))
    rows = await world.fetch("SELECT fire_at, code FROM betimes.decisions")
    assert {code for _, code in rows} == {"CATCHUP_DROPPED"}
    assert {fire for fire, _ in rows} == fires - left
    assert len(rows) == 39
    assert not [1 for *_, held, _ in await late_parcels(world) if held]
    why = await explain_job(desk, TENANT, job, at=min(fires - left))
    assert [one.code for one in why.reasons] == ["CATCHUP_DROPPED"]
    with pytest.raises(IllegalTransition):
        await decide_catchup(desk, TENANT, seen.catchup.id, Verdict.APPROVE)


async def test_a_run_that_waits_for_approval_says_so(world: World) -> None:
    await world.insert_job(every_minute())
    desk = make_desk(world.database, world.clock)
    world.clock.advance(HOUR)
    await catch_up(world, catchup_unapproved=20, catchup_per_second=1)
    rows = await world.fetch("SELECT held, run_ids[1] FROM betimes.parcels WHERE lane = 2")
    held = next(run for held, run in rows if held == 3)
    why = await explain_run(desk, TENANT, held)  # type: ignore[arg-type]
    assert "CATCHUP_AWAITS_APPROVAL" in [one.code for one in why.reasons if one.blocking]
    world.clock.advance(0)
    paced = max(
        await world.fetch(
            "SELECT visible_at, run_ids[1] FROM betimes.parcels WHERE lane = 2 AND held = 0"
        )
    )[1]
    why = await explain_run(desk, TENANT, paced)  # type: ignore[arg-type]
    assert "CATCHUP_PACED" in [one.code for one in why.reasons]


async def test_what_joins_an_episode_that_waits_waits_as_well(world: World) -> None:
    await world.insert_job(every_minute(), shard=1)
    world.clock.advance(HOUR)
    coordinator = await catch_up(world, catchup_unapproved=20)
    await world.fetch("UPDATE betimes.tenants SET quotas = '{\"catchup_runs\": 1000}'")
    await world.insert_job(
        every_minute(), shard=2, next_fire_at=world.clock.now() - timedelta(minutes=3)
    )
    await settle(world, coordinator)
    assert await world.fetch("SELECT runs, held, state FROM betimes.catchups") == [(62, 42, 1)]


async def test_a_new_outage_is_a_new_episode(world: World) -> None:
    """The count without approval begins anew; turns go on after those given out before."""
    job = await world.insert_job(every_minute())
    desk = make_desk(world.database, world.clock)
    for _ in range(2):
        world.clock.advance(HOUR)
        await catch_up(world, catchup_unapproved=100, catchup_per_second=1)
    seen = [one.catchup for one in await list_catchups(desk, TENANT, before=None, most=10)]
    # The second one finds runs that were planned ahead, but nobody published: not missed.
    assert [(one.state, one.held) for one in seen] == [
        (EpisodeState.OPEN, 0),
        (EpisodeState.OVER, 0),
    ]
    assert len(await world.fires(job)) == len(set(await world.fires(job)))
    assert seen[0].paced_through > seen[1].paced_through


async def test_tenants_share_the_pace_and_quotas_override_it(world: World) -> None:
    await add_tenant(world.database)
    first = await world.insert_job(every_minute(), shard=1)
    second = await world.insert_job(every_minute(), shard=2)
    await world.fetch("UPDATE betimes.jobs SET tenant_id = $1 WHERE id = $2", OTHER, second)
    world.clock.advance(HOUR)
    now = world.clock.now()
    await world.fetch(
        "UPDATE betimes.tenants SET quotas = '{\"catchup_runs\": 10}' WHERE id = $1", OTHER
    )
    await catch_up(world, catchup_per_second=10)
    rows = await world.fetch("SELECT tenant_id, per_second, runs, held FROM betimes.catchups")
    assert sorted(rows, key=str) == [(TENANT, 5.0, 59, 0), (OTHER, 5.0, 59, 49)]
    late = await world.fetch(
        "SELECT max(visible_at) FROM betimes.parcels WHERE lane = 2 AND held = 0 GROUP BY "
        "tenant_id ORDER BY 1"
    )
    assert [round((at - now).total_seconds()) for (at,) in late] == [2, 12]  # type: ignore[operator]
    assert first != second


async def test_a_one_off_that_was_missed_runs_late_and_is_complete(world: World) -> None:
    desk = make_desk(world.database, world.clock)
    at = world.clock.now() + timedelta(minutes=10)
    job = await create_job(desk, TENANT, NewJob(definition=once(at)))
    world.clock.advance(timedelta(minutes=30))
    await catch_up(world)
    assert await world.fires(job.id) == [at]
    rows = await world.fetch("SELECT state, fires FROM betimes.jobs")
    assert rows == [(3, 1)]
    states = await world.fetch("SELECT state FROM betimes.runs")
    assert states == [(RunState.QUEUED,)]


async def test_a_foreign_catchup_cannot_be_seen(world: World) -> None:
    desk = make_desk(world.database, world.clock)
    await add_tenant(world.database)
    await world.insert_job(every_minute())
    world.clock.advance(HOUR)
    await catch_up(world, catchup_unapproved=1)
    (seen,) = await list_catchups(desk, TENANT, before=None, most=10)
    assert await list_catchups(desk, OTHER, before=None, most=10) == []
    for one in (seen.catchup.id, UUID(int=7)):
        with pytest.raises(NotFound):
            await decide_catchup(desk, OTHER, one, Verdict.APPROVE)
        with pytest.raises(NotFound):
            await get_catchup(desk, OTHER, one)


async def test_late_runs_keep_the_terms_of_their_job(world: World) -> None:
    """A concurrency key and a fairness bucket hold for what is late as well."""
    desk = make_desk(world.database, world.clock)
    options = {"concurrency": {"key": "db", "limit": 1}, "fairness_key": "k"}
    definition = every(60, schedule={"catchup": ALL, "overlap": "allow"}, options=options)
    job = await create_job(desk, TENANT, NewJob(definition=definition))
    world.clock.advance(timedelta(minutes=5))
    await catch_up(world, catchup_unapproved=2)
    rows = await world.fetch(
        "SELECT parcels.gate, parcels.fair = runs.fair, cardinality(run_ids), parcels.held "
        "FROM betimes.parcels JOIN betimes.runs ON runs.id = parcels.run_ids[1] "
        "WHERE lane = 2 AND runs.job_id = $1 AND runs.gate = parcels.gate ORDER BY 4",
        job.id,
    )
    assert [row[3] for row in rows] == [0, 0, 3, 3]
    assert {row[:3] for row in rows} == {("db", True, 1)}


async def test_what_was_approved_still_minds_the_runs_of_its_job(world: World) -> None:
    """Late runs of a job that does not overlap stand in its line, approved or not."""
    desk = make_desk(world.database, world.clock)
    await create_job(desk, TENANT, NewJob(definition=every(60, schedule={"catchup": ALL})))
    world.clock.advance(timedelta(minutes=6))
    await catch_up(world, catchup_unapproved=2)
    (seen,) = await list_catchups(desk, TENANT, before=None, most=1)
    await decide_catchup(desk, TENANT, seen.catchup.id, Verdict.APPROVE)
    assert await carry_out_all(desk) == seen.catchup.held > 0
    rows = await world.fetch(
        "SELECT held, line IS NOT NULL, cardinality(run_ids) FROM betimes.parcels WHERE lane = 2"
    )
    assert set(rows) == {(int(Hold.VERDICT), True, 1)}
    assert len(rows) == seen.catchup.runs


class _With:
    """An object with one method replaced."""

    def __init__(self, real: object, **replaced: object) -> None:
        self.__dict__.update(replaced)
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)
