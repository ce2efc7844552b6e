"""The clock of the database is set back by a minute, or forward by an hour, while we work."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

import pytest

from betimes.domain import ids
from betimes.domain.ids import JobId, RunId, ShardId
from betimes.ops import NewJob, create_job
from betimes.ops.change_run import Change, change_run
from betimes.ops.gap import Missed
from betimes.ops.pause import pause_job, resume_job
from betimes.ops.runs import cancel_run
from betimes.ops.update import update_job
from betimes.store.database import Database
from betimes.store.shards import Shards
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from integration.coordinator.conftest import SETTINGS, TENANT, World
from ops_kit import every, make_desk

BACK = timedelta(seconds=66)
FORWARD = timedelta(hours=1)


class SetClock(ManualClock):
    """One whose time can be set; what measures patience goes on."""

    def set_by(self, by: timedelta) -> None:
        self._now += by


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def world(database: Database, clock: SetClock) -> World:
    return World(database, clock, Telemetry(clock=clock))


async def marks(world: World) -> list[tuple[object, ...]]:
    return await world.fetch(
        "SELECT shard, epoch, published_through, swept_through FROM betimes.shards ORDER BY shard"
    )


async def test_a_minute_that_comes_twice_loses_nothing(world: World, clock: SetClock) -> None:
    """Runs that are due before the cursor and beyond the margin: nobody would come to them."""
    owner = await world.coordinator()
    job = await world.insert_job("every 5s", shard=2)
    await world.live(70, owner)
    before = await marks(world)
    clock.set_by(-BACK)
    await world.live(2, owner)
    dues = [world.seconds(number) for number in (11, 20, 30, 45, 60, 63, 64.5, 66, 67, 68.9, 80)]
    runs = dict(zip(await world.insert_runs(dues, shard=1), dues, strict=True))
    seen: dict[object, datetime] = {}
    for _ in range(2 * 100):
        await world.live(0.5, owner)
        for run, visible_at in (await world.parcels()).items():
            assert visible_at == ids.time_of(run), "nothing is early"
            seen.setdefault(run, clock.now())
        after = await marks(world)
        assert all(new >= old for new, old in zip(after, before, strict=True))
        before = after
    assert {run: due for run, due in runs.items() if seen.get(run, due) > due} == {}
    assert set(runs) <= set(seen)
    assert len(owner.holdings) == 4
    assert len(await world.fires(job)) == len(set(await world.fires(job)))
    late = [run for run, at in seen.items() if at > ids.time_of(run) + timedelta(seconds=70)]  # type: ignore[arg-type]
    assert not late


async def test_a_new_owner_in_the_second_minute_knows_of_it(world: World, clock: SetClock) -> None:
    owner = await world.coordinator()
    await world.live(70, owner)
    await owner.elector.hand_over()
    clock.set_by(-BACK)
    heir = await world.coordinator()
    await world.live(1, heir)
    (run,) = await world.insert_runs([world.seconds(30)], shard=1)
    await world.live(29, heir)
    assert run in await world.parcels()


async def test_an_hour_that_never_came_is_caught_up_with(world: World, clock: SetClock) -> None:
    owner = await world.coordinator()
    job = await world.insert_job("every 10m", shard=1)
    runs = await world.insert_runs([world.seconds(900)], shard=2)
    await world.live(20, owner)
    before = await marks(world)
    clock.set_by(FORWARD)
    await world.live(15, owner)
    assert len(owner.holdings) == 4
    assert set(runs) <= set(await world.parcels())
    assert all(new >= old for new, old in zip(await marks(world), before, strict=True))
    held = owner.holdings.get(ShardId(1))
    assert held is not None
    ((behind,),) = await world.fetch("SELECT next_fire_at FROM betimes.jobs WHERE id = $1", job)
    assert behind >= clock.now()  # type: ignore[operator]


PERIOD = timedelta(seconds=5)
OFTEN = every(5, schedule={"overlap": "allow"})
MISSED = pytest.mark.parametrize("missed", list(Missed))


async def accounts(world: World, job: JobId) -> Counter[datetime]:
    """How many rows and decisions each fire has; a decision is told in the row it ended, too."""
    rows = await world.fetch("SELECT fire_at FROM betimes.runs WHERE job_id = $1", job)
    counted = Counter(cast("list[tuple[datetime]]", rows))
    decided = await world.fetch(
        "SELECT fire_at, coalesce(until_at, fire_at) FROM betimes.decisions WHERE job_id = $1", job
    )
    for first, last in cast("list[tuple[datetime, datetime]]", decided):
        counted.update((first + PERIOD * step,) for step in range((last - first) // PERIOD + 1))
    return Counter({fire: many for (fire,), many in counted.items()})


async def check_accounts(world: World, job: JobId, since: datetime) -> None:
    """Each fire since then has one account up to now, and none has two."""
    counted = await accounts(world, job)
    twice = {fire.time(): many for fire, many in counted.items() if many > 1}
    assert not twice, "fires with two accounts"
    fire = since + PERIOD - timedelta(seconds=since.timestamp() % 5)
    lost = []
    while fire <= world.clock.now() - timedelta(seconds=1):
        lost += [] if counted[fire] else [fire.time()]
        fire += PERIOD
    assert not lost, "fires without an account"


@MISSED
@pytest.mark.parametrize("hangs", [False, True], ids=["published", "hanging"])
@pytest.mark.parametrize("back", [3, 20, 66, 900])
async def test_a_pause_in_a_minute_that_comes_twice(
    world: World, clock: SetClock, missed: Missed, back: int, *, hangs: bool
) -> None:
    """Paused and resumed before, so that fires have run under ids that no planner gives them."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    began = clock.now()

    async def live(seconds: float) -> None:
        if hangs:
            clock.advance(seconds)
        else:
            await world.live(seconds, owner)

    await world.live(30, owner)
    for _ in range(2):
        await pause_job(desk, TENANT, job.id)
        await live(7)
        await resume_job(desk, TENANT, job.id, missed=missed)
        await live(9)
    clock.set_by(timedelta(seconds=-back))
    for pause in (1, 4, 12):
        await pause_job(desk, TENANT, job.id)
        await live(pause)
        await resume_job(desk, TENANT, job.id, missed=missed)
        await live(3)
    await world.live(max(0.0, (began - clock.now()).total_seconds()) + back + 60, owner)
    await check_accounts(world, job.id, began)


@MISSED
async def test_a_pause_before_what_was_begun_leaves_it_alone(
    world: World, clock: SetClock, missed: Missed
) -> None:
    """Somebody had it and was lost, and the clock was set back: it is due later than now again."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    await world.live(30, owner)
    await world.fetch(
        "UPDATE betimes.parcels SET fence = 1, deliveries = 1 WHERE visible_at <= $1 RETURNING id",
        clock.now(),
    )
    begun = {run for run, at in (await world.parcels()).items() if at <= clock.now()}
    clock.set_by(timedelta(seconds=-66))
    await pause_job(desk, TENANT, job.id)
    await world.live(4, owner)
    await resume_job(desk, TENANT, job.id, missed=missed)
    await world.live(4, owner)
    rows = await world.fetch("SELECT id FROM betimes.runs WHERE state < 4")
    assert begun
    assert begun <= {run for (run,) in rows}


@pytest.mark.parametrize("is_paused", [False, True])
async def test_an_edit_in_a_minute_that_comes_twice(
    world: World, clock: SetClock, *, is_paused: bool
) -> None:
    """Neither what has run comes again under the new revision, nor what lies before the job."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    began = clock.now()
    await world.live(22, owner)
    await pause_job(desk, TENANT, job.id)
    await resume_job(desk, TENANT, job.id, missed=Missed.RUN_ALL)
    await world.live(9, owner)
    if is_paused:
        await pause_job(desk, TENANT, job.id)
    clock.set_by(timedelta(seconds=-66))
    await world.live(2, owner)
    await update_job(desk, TENANT, job.id, replace(OFTEN, priority=7))
    await world.live(2, owner)
    if is_paused:
        await resume_job(desk, TENANT, job.id, missed=Missed.RUN_ALL)
    await world.live(120, owner)
    await check_accounts(world, job.id, began)
    early = [fire for fire in await accounts(world, job.id) if fire <= began]
    assert not early


@pytest.mark.parametrize("how", ["cancelled", "moved"])
async def test_an_edit_keeps_the_fires_before_one_that_somebody_has_touched(
    world: World, clock: SetClock, how: str
) -> None:
    """A run far ahead that was cancelled or moved says nothing about the fires before it."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    began = clock.now()
    await world.live(5, owner)
    planned = await world.fetch(
        "SELECT id FROM betimes.runs WHERE job_id = $1 AND state = 0 ORDER BY id DESC", job.id
    )
    last = cast("RunId", planned[0][0])
    if how == "cancelled":
        await cancel_run(desk, TENANT, last)
    else:
        await change_run(desk, TENANT, last, Change(due_at=world.seconds(45)))
    await update_job(desk, TENANT, job.id, replace(OFTEN, priority=7))
    await world.live(100, owner)
    await check_accounts(world, job.id, began)


async def test_an_edit_where_decisions_come_again(world: World, clock: SetClock) -> None:
    """Fires that were decided are not planned by an edit in a time that has been before."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    began = clock.now()
    await world.live(12, owner)
    await pause_job(desk, TENANT, job.id)
    await world.live(60, owner)
    await resume_job(desk, TENANT, job.id, missed=Missed.SKIP)
    clock.set_by(timedelta(seconds=-40))
    await update_job(desk, TENANT, job.id, replace(OFTEN, priority=7))
    await world.live(120, owner)
    await check_accounts(world, job.id, began)


async def test_a_resume_long_before_the_cursor_makes_few_runs(
    world: World, clock: SetClock
) -> None:
    """Six hours that come again are the planner's; a transaction is bounded."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=every(1, schedule={"overlap": "allow"})))
    await world.live(3, owner)
    await pause_job(desk, TENANT, job.id)
    clock.advance(6 * 3600)
    await world.live(3, owner)
    clock.set_by(timedelta(hours=-6))
    await resume_job(desk, TENANT, job.id)
    ((made,),) = await world.fetch("SELECT count(*) FROM betimes.runs WHERE job_id = $1", job.id)
    assert made <= 130  # type: ignore[operator]
    resumed = clock.now()
    await world.live(20, owner)
    rows = await world.fetch("SELECT fire_at FROM betimes.runs WHERE job_id = $1", job.id)
    fires = Counter(fire for (fire,) in cast("list[tuple[datetime]]", rows))
    assert max(fires.values()) == 1
    wanted = {resumed.replace(microsecond=0) + timedelta(seconds=step) for step in range(2, 18)}
    assert wanted <= set(fires)


async def test_new_zone_rules_in_a_minute_that_comes_twice(world: World, clock: SetClock) -> None:
    """The next fire lies far ahead of the clock again, and everything before it is planned."""
    desk = make_desk(world.database, clock)
    world.tzdata = "2025b"
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    began = clock.now()
    await world.live(30, owner)
    await pause_job(desk, TENANT, job.id)
    await resume_job(desk, TENANT, job.id)
    await world.live(9, owner)
    await owner.elector.hand_over()
    await world.alive(owner.node, draining=True)
    before = await world.fetch("SELECT next_fire_at, fires FROM betimes.jobs")
    clock.set_by(-timedelta(minutes=10))
    world.tzdata = "2026f"
    heir = await world.coordinator()
    await world.live(2, heir)
    assert await world.fetch("SELECT next_fire_at, fires FROM betimes.jobs") == before
    assert await world.fetch("SELECT DISTINCT tzdata FROM betimes.shards") == [("2026f",)]
    await world.live(700, heir)
    await check_accounts(world, job.id, began)


async def test_new_zone_rules_give_a_job_no_fire_before_it_was_made(
    world: World, clock: SetClock
) -> None:
    desk = make_desk(world.database, clock)
    await create_job(desk, TENANT, NewJob(definition=every(86_400)))
    before = await world.fetch("SELECT next_fire_at FROM betimes.jobs")
    clock.set_by(-timedelta(days=3))
    world.tzdata = "2026f"
    await world.live(2, await world.coordinator())
    assert await world.fetch("SELECT DISTINCT tzdata FROM betimes.shards") == [("2026f",)]
    assert await world.fetch("SELECT next_fire_at FROM betimes.jobs") == before


@pytest.mark.parametrize("heir_is", ["another", "itself"])
async def test_a_lease_is_over_in_its_time_although_the_clock_was_set_back(
    world: World, clock: SetClock, heir_is: str
) -> None:
    """Its end lies an hour ahead again; who has watched it knows that nobody has renewed it."""
    owner, other = await world.coordinator(), await world.coordinator()
    await world.live(6, owner, other)
    held = {one.claim.shard for one in owner.holdings}
    assert held
    clock.set_by(-FORWARD)
    if heir_is == "itself":
        clock.advance(SETTINGS.lease_ttl.total_seconds() * 0.9)  # frozen: trusted no longer
    heir = owner if heir_is == "itself" else other
    await world.live(SETTINGS.lease_ttl.total_seconds() * 1.1 + 4, heir)
    assert held <= {one.claim.shard for one in heir.holdings}


async def test_a_lease_that_is_renewed_stays_after_the_clock_was_set_back(
    world: World, clock: SetClock
) -> None:
    owner, other = await world.coordinator(), await world.coordinator()
    await world.live(6, owner, other)
    held = {one.claim for one in owner.holdings}
    clock.set_by(-FORWARD)
    await world.live(60, owner, other)
    assert {one.claim for one in owner.holdings} == held


@MISSED
async def test_an_edit_of_a_pause_in_a_time_before_the_job(
    world: World, clock: SetClock, missed: Missed
) -> None:
    """What lies before its creation is no fire of it, whatever is done to it in that time."""
    desk = make_desk(world.database, clock)
    owner = await world.coordinator()
    job = await create_job(desk, TENANT, NewJob(definition=OFTEN))
    began = clock.now()
    await world.live(3, owner)
    clock.set_by(-BACK)
    await pause_job(desk, TENANT, job.id)
    await update_job(desk, TENANT, job.id, replace(OFTEN, priority=7))
    await resume_job(desk, TENANT, job.id, missed=missed)
    await world.live(120, owner)
    await check_accounts(world, job.id, began)
    early = [fire for fire in await accounts(world, job.id) if fire <= began]
    assert not early


async def test_a_slow_answer_makes_no_lease_shorter(world: World, clock: SetClock) -> None:
    """How long a lease has to go was true when it was read, not when it was asked for."""
    owner = await world.coordinator()
    await world.live(1, owner)
    assert len(owner.holdings) == 4
    other = await world.coordinator()
    shards, ttl = other.elector._shards, SETTINGS.lease_ttl

    class Slow:
        node = shards.node
        acquire = staticmethod(shards.acquire)

        async def read(self, *, now: datetime | None) -> object:
            clock.advance(ttl * 0.3)
            return await shards.read(now=None if now is None else clock.stated())

    other.elector._shards = cast("Shards", Slow())
    await other.elector.tick()
    other.elector._shards = shards
    clock.advance(ttl * 0.5)
    moves = await other.elector.tick()
    assert not moves.acquire, "the lease of the owner has not run out yet"
    assert not len(other.holdings)
