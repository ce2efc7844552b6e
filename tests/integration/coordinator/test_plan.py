"""Every fire becomes one run or one recorded decision, whoever dies in between."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from betimes.coordinator.plan import Pass
from betimes.coordinator.service import Coordinator
from betimes.domain.errors import FencedOut, UnknownOutcome
from betimes.domain.states import JobState, RunState
from betimes.schedule import Budget
from betimes.store.plan import DueJob, Step
from held_kit import CALLS_MAX, watched_loop
from integration.coordinator.conftest import SETTINGS, World, ahead

MINUTE = timedelta(minutes=1)


async def plan(coordinator: Coordinator) -> int:
    await coordinator.elector.tick()
    return await coordinator.planner.tick()


async def test_a_job_is_planned_through_the_horizon_and_then_left_alone(world: World) -> None:
    """Once per half horizon, not once per fire."""
    job = await world.insert_job("every 10s")
    coordinator = await world.coordinator()
    start = world.clock.now()

    planned = ahead(start, 10)
    assert await plan(coordinator) == planned
    await world.live(60, coordinator)
    fires = await world.fires(job)
    assert fires == [start + timedelta(seconds=10 * n) for n in range(1, planned + 1)]

    await world.live(120, coordinator)
    assert len(await world.fires(job)) == planned + 15


async def test_a_run_due_within_the_margin_gets_its_parcel_at_once(world: World) -> None:
    job = await world.insert_job("every 4s")
    await plan(await world.coordinator())
    parcels = await world.parcels()
    states = await world.fetch(
        "SELECT id, state, due_at FROM betimes.runs WHERE job_id = $1 ORDER BY id", job
    )
    soon = world.clock.now() + SETTINGS.margin
    for run, state, due in states:
        near = isinstance(due, datetime) and due <= soon
        assert state == (RunState.QUEUED if near else RunState.SCHEDULED)
        assert (run in parcels) == near
    assert len(parcels) == 2


async def test_a_job_that_cannot_be_evaluated_does_not_stop_its_shard(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours in one schedule: it is set aside with the reason, the others fire."""
    broken, other = await world.insert_job("every 10s"), await world.insert_job("every 10s")
    step = Pass.step

    def fails(self: Pass, job: DueJob, budget: Budget) -> Step:
        if job.id == broken:
            raise OverflowError("date value out of range")
        return step(self, job, budget)

    monkeypatch.setattr(Pass, "step", fails)
    await plan(await world.coordinator())
    assert await world.fires(other)
    ((state, reason),) = await world.fetch(
        "SELECT state, state_reason ->> 'detail' FROM betimes.jobs WHERE id = $1", broken
    )
    assert (state, reason) == (JobState.AUTO_PAUSED, "it cannot be evaluated: OverflowError")


async def test_nothing_is_planned_or_published_twice_over_a_long_time(world: World) -> None:
    """Ten minutes of half seconds, two coordinators, one of which dies and one of which sleeps."""
    start = world.clock.now()
    # Nobody executes anything here: a policy that minds would drop nearly all of them.
    jobs = [
        await world.insert_job(
            {
                "type": "interval",
                "every": f"PT{period}S",
                "anchor": start.isoformat(),
                "overlap": "allow",
            },
            shard=period % 4,
        )
        for period in (7, 11, 13)
    ]
    first, second = await world.coordinator(), await world.coordinator()
    await world.live(100, first, second)
    await world.live(100, second)
    await world.live(60, first, second)
    for job, period in zip(jobs, (7, 11, 13), strict=True):
        fires = await world.fires(job)
        assert fires == [start + timedelta(seconds=period * n) for n in range(1, len(fires) + 1)]
        assert fires[-1] > world.clock.now() + 2 * MINUTE
    published = await world.parcels()
    lead = world.clock.now() + SETTINGS.lead
    due = await world.fetch("SELECT id FROM betimes.runs WHERE due_at <= $1", lead)
    assert {run for (run,) in due} <= set(published), "a due run has no parcel"


async def test_a_job_without_further_fires_is_completed(world: World) -> None:
    job = await world.insert_job({"type": "once", "at": world.seconds(60).isoformat()})
    await plan(await world.coordinator())
    assert await world.fires(job) == [world.seconds(60)]
    rows = await world.fetch("SELECT state, next_fire_at, revision, fires FROM betimes.jobs")
    assert rows == [(3, None, 1, 1)]


async def test_an_edit_meanwhile_wins(world: World) -> None:
    """The planner computed from a revision that is no longer the current one."""
    job = await world.insert_job("every 10s")
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    planning = coordinator.planner._planning
    real = planning.commit

    async def edited_first(*arguments, **options):  # type: ignore[no-untyped-def]
        await world.fetch("UPDATE betimes.jobs SET revision = 2")
        return await real(*arguments, **options)

    object.__setattr__(coordinator.planner, "_planning", _With(planning, commit=edited_first))
    assert await coordinator.planner.tick() == 0
    assert await world.fires(job) == []


async def test_the_loss_of_a_reply_neither_loses_nor_doubles(world: World) -> None:
    job = await world.insert_job("every 10s")
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    planning = coordinator.planner._planning
    real = planning.commit
    losses = iter([True])

    async def forgetful(*arguments, **options):  # type: ignore[no-untyped-def]
        answer = await real(*arguments, **options)
        if next(losses, False):
            raise UnknownOutcome("the reply was lost")
        return answer

    object.__setattr__(coordinator.planner, "_planning", _With(planning, commit=forgetful))
    with pytest.raises(UnknownOutcome):
        await coordinator.planner.tick()
    await coordinator.planner.tick()
    assert len(await world.fires(job)) == ahead(world.clock.now(), 10)
    assert len(await world.parcels()) == 1


async def test_a_stale_owner_plans_nothing(world: World) -> None:
    """The epoch guard alone: the stale owner still trusts its term."""
    job = await world.insert_job("every 10s")
    stale = await world.coordinator()
    await stale.elector.tick()
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    fresh = await world.coordinator()
    await fresh.elector.tick()
    for held in stale.holdings:
        held.term = held.term.renewed(asked_at=world.clock.monotonic(), ttl=99, margin=0)
    assert await stale.planner.tick() == 0
    assert await world.fires(job) == []
    assert world.telemetry.reading("betimes_lease_lost_total", kind="shard") >= 1


async def test_the_primary_key_alone_stops_a_second_run(world: World) -> None:
    """With the epoch and the revision knocked out, the same occurrence is still the same row."""
    job = await world.insert_job("every 10s")
    coordinator = await world.coordinator()
    before = (await world.fetch("SELECT next_fire_at FROM betimes.jobs"))[0][0]
    await plan(coordinator)
    await world.fetch("UPDATE betimes.jobs SET next_fire_at = $1", before)
    world.clock.advance(0.001)
    await coordinator.planner.tick()
    assert len(await world.fires(job)) == ahead(world.clock.now(), 10)
    assert len(await world.parcels()) == 1


async def test_missed_fires_are_run_or_recorded(world: World) -> None:
    """Default catch-up: the latest of the last hour runs, everything else is on record."""
    start = world.clock.now()
    job = await world.insert_job("every 10m")
    world.clock.advance(timedelta(hours=5, minutes=1))
    await plan(await world.coordinator())
    late = [fire for fire in await world.fires(job) if fire < world.clock.now()]
    assert late == [start + timedelta(hours=5)]
    rows = await world.fetch(
        "SELECT code, fires, fire_at, until_at FROM betimes.decisions ORDER BY 3"
    )
    assert [(code, fires) for code, fires, _, _ in rows] == [
        ("CATCHUP_WINDOW_EXCEEDED", 24),
        ("CATCHUP_COALESCED", 5),
    ]


async def test_a_fire_that_dst_takes_away_is_recorded(world: World) -> None:
    """02:30 on 29 March 2026 does not exist in Stockholm, and the job says skip."""
    world.clock.advance(datetime.fromisoformat("2026-03-29T00:58:00+00:00") - world.clock.now())
    job = await world.insert_job(
        {
            "type": "cron",
            "expr": "*/30 2 29 3 *",
            "timezone": "Europe/Stockholm",
            "dst": {"gap": "skip"},
        },
        next_fire_at=datetime.fromisoformat("2026-03-29T00:59:00+00:00"),
    )
    await plan(await world.coordinator())
    assert await world.fires(job) == []
    rows = await world.fetch("SELECT code, detail FROM betimes.decisions ORDER BY fire_at")
    assert {code for code, _ in rows} == {"DST_GAP_SKIPPED"}
    assert json.loads(str(rows[0][1]))["local"].startswith("2026-03-29T02:")


async def test_what_dst_takes_away_between_two_fires_is_recorded_with_the_second(
    world: World,
) -> None:
    """A daily job: the night without 02:30 lies far beyond the horizon of the fire before it."""
    world.clock.advance(datetime(2026, 3, 27, 12, tzinfo=UTC) - world.clock.now())
    job = await world.insert_job(
        {
            "type": "cron",
            "expr": "30 2 * * *",
            "timezone": "Europe/Stockholm",
            "dst": {"gap": "skip"},
        }
    )
    coordinator = await world.coordinator()
    rows: list[tuple[object, ...]] = []
    for day, hour in ((28, 1), (29, 1), (30, 0)):
        world.clock.advance(datetime(2026, 3, day, hour, 29, tzinfo=UTC) - world.clock.now())
        await coordinator.elector.tick()
        await plan(coordinator)
        rows = await world.fetch("SELECT fire_at, code FROM betimes.decisions")
        assert len(rows) == (1 if day == 30 else 0)
    assert rows == [(datetime(2026, 3, 29, 1, 30, tzinfo=UTC), "DST_GAP_SKIPPED")]
    fires = await world.fires(job)
    assert [fire.day for fire in fires] == [28, 30]


async def test_a_schedule_that_cannot_be_read_is_set_aside_and_stops_nobody(world: World) -> None:
    bad = await world.insert_job("every 10s")
    good = await world.insert_job("every 10s")
    await world.fetch(
        """UPDATE betimes.jobs SET schedule = '{"type": "cron", "expr": "x"}' WHERE id = $1""", bad
    )
    await plan(await world.coordinator())
    assert len(await world.fires(good)) == ahead(world.clock.now(), 10)
    rows = await world.fetch("SELECT state, next_fire_at FROM betimes.jobs WHERE id = $1", bad)
    assert rows == [(2, None)]


async def test_jitter_moves_the_start_and_not_the_identity(world: World) -> None:
    job = await world.insert_job({"type": "interval", "every": "PT30S", "jitter": "PT20S"}, shard=2)
    await plan(await world.coordinator())
    rows = await world.fetch(
        "SELECT fire_at, due_at FROM betimes.runs WHERE job_id = $1 ORDER BY fire_at", job
    )
    delays = {due - fire for fire, due in rows}  # type: ignore[operator]
    assert len(rows) == ahead(world.clock.now(), 30, shard=2)
    assert len(delays) > 5
    assert all(timedelta(0) <= delay < timedelta(seconds=20) for delay in delays)


async def test_fenced_out_is_an_error_of_its_own(world: World) -> None:
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    held = next(iter(coordinator.holdings))
    await world.fetch("UPDATE betimes.shards SET epoch = epoch + 1")
    with pytest.raises(FencedOut):
        await coordinator.planner._planning.commit(
            held.claim, [], tzdata="test", now=world.clock.now()
        )


class _With:
    """An object with one method replaced."""

    def __init__(self, real: object, **replaced: object) -> None:
        self.__dict__.update(replaced)
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)


async def test_the_jobs_of_a_popular_minute_are_planned_a_shard_at_a_time(world: World) -> None:
    """What all have at noon is not one pass with everything in it: each shard has its own turn."""
    shards = [int(str(shard)) for (shard,) in await world.fetch("SELECT shard FROM betimes.shards")]
    noon = world.clock.now() + SETTINGS.horizon * 2
    schedule: dict[str, object] = {"type": "once", "at": noon.isoformat()}
    for shard in [*shards, *shards]:
        await world.insert_job(schedule, shard=shard, next_fire_at=noon)
    coordinator = await world.coordinator()
    turns = []
    while world.clock.now() <= noon - SETTINGS.horizon / 2 + timedelta(seconds=1):
        turns.append(await plan(coordinator))
        world.clock.advance(1)
        await world.alive(coordinator.node)
    assert len(shards) > 1
    assert sorted(turns)[-len(shards) - 1 :] == [0, *[2] * len(shards)]


EXPENSIVE = (
    '{"type": "rrule", "expr": "FREQ=SECONDLY;INTERVAL=99991;BYHOUR=3;BYMINUTE=7;BYSECOND=9;'
    'COUNT=100000", "anchor": "2026-01-01T00:00:00", "timezone": "UTC"}'
)


async def test_a_schedule_that_costs_too_much_is_set_aside_and_stops_nobody(world: World) -> None:
    """Its owner sees why; the shard goes on with the others, and gives the loop away meanwhile."""
    bad = [await world.insert_job("every 10s") for _ in range(5)]
    good = await world.insert_job("every 10s")
    await world.fetch(
        f"UPDATE betimes.jobs SET schedule = '{EXPENSIVE}' WHERE id = ANY($1::uuid[])", bad
    )
    await plan(await world.coordinator())
    assert len(await world.fires(good)) == ahead(world.clock.now(), 10)
    rows = await world.fetch(
        "SELECT state, next_fire_at, state_reason::text FROM betimes.jobs WHERE id = ANY($1)", bad
    )
    assert len(rows) == 5
    for state, next_fire_at, reason in rows:
        assert (state, next_fire_at) == (2, None)
        assert "expected a schedule that can be evaluated in 8000 steps" in str(reason)


async def test_a_stored_rule_with_a_large_count_holds_the_loop_for_a_moment(world: World) -> None:
    """Once a day for years: the planner asks for the next one, and walks to the last of none."""
    rule = "FREQ=SECONDLY;COUNT=3000;BYHOUR=21;BYMINUTE=30;BYSECOND=2"
    job = await world.insert_job({"type": "rrule", "expr": rule}, next_fire_at=world.clock.now())
    coordinator = await world.coordinator()
    with watched_loop() as held:
        await plan(coordinator)
    assert held.most <= CALLS_MAX
    ((behind,),) = await world.fetch(
        "SELECT count(*) FROM betimes.jobs WHERE id = $1 AND next_fire_at <= $2",
        job,
        world.clock.now(),
    )
    assert behind == 0, "it was planned"
