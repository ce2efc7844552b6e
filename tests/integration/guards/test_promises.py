"""Guards of the remaining promises: durable, never overlooked, never backwards, bounded, linear."""

import asyncio
import os
import signal
from datetime import timedelta
from typing import Any

import pytest

from betimes.app.dice import Dice
from betimes.config.settings import DatabaseSettings
from betimes.coordinator import plan as planning_steps
from betimes.coordinator.service import Coordinator
from betimes.domain.errors import VersionMismatch
from betimes.domain.ids import ShardId, to_us
from betimes.domain.leased import Source
from betimes.domain.states import RunState
from betimes.embedded.process import leftovers_of
from betimes.ops import update
from betimes.ops.create import NewJob, create_job
from betimes.schedule.catchup import CatchupPlan
from betimes.store.database import Database
from betimes.store.migrate import migrate
from betimes.store.parcels import Parcels
from betimes.store.pool import Lane
from betimes.testing import ManualClock
from embedded_kit import Place, RealClock
from integration.coordinator.conftest import SETTINGS, World
from integration.guards.conftest import IN_PLACE, KNOCKED_OUT, judged, promise, without
from integration.guards.test_workers import TTL, lease, reaper
from ops_kit import TENANT, every, make_desk
from worker_kit import QUEUE, a_worker, enqueue, state_of, worker_id
from worker_kit import TENANT as WORKERS_TENANT

SHARD = ShardId(1)
FORGETFUL = {"synchronous_commit": "off", "wal_writer_delay": "10s"}


async def an_owner(world: World) -> Coordinator:
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    return coordinator


@pytest.mark.db
async def test_what_is_acknowledged_is_on_disk(place: Place, guard: str) -> None:
    """I1: every process of the server is killed right after the answer."""
    wishes = {"unsafe_no_fsync": False, "settings": {} if guard == IN_PLACE else FORGETFUL}
    async with place.server(**wishes) as server:
        clock, settings = RealClock(), DatabaseSettings()
        await migrate(server.dsn(), settings, shards=4, clock=clock)
        database = await Database.open(settings, dsn=server.dsn(), clock=clock, roll=Dice().roll)
        place.query(server.dsn(), "CHECKPOINT")
        await create_job(
            make_desk(database, clock),
            TENANT,
            NewJob(definition=every(60)),
        )
        for pid in leftovers_of(place.cluster):
            os.kill(pid, signal.SIGKILL)
        await asyncio.wait_for(server.watch(), timeout=10)
        await database.close()
        await server.start()
        with judged(guard):
            there = place.query(server.dsn(), "SELECT count(*) FROM betimes.jobs")
            promise(there == "1", "an acknowledged job was lost")


async def test_what_comes_in_behind_the_reader_is_not_overlooked(world: World, guard: str) -> None:
    """I5: what is due later than the margin may be inserted without a parcel.

    So the publisher must not have read so far ahead that it never looks there again.
    """
    owner = await an_owner(world)
    if guard == KNOCKED_OUT:
        owner.publisher._ahead_ms = 60_000
    await owner.publisher.tick()
    (run,) = await world.insert_runs([world.seconds(SETTINGS.margin.total_seconds() + 1)])
    with judged(guard):
        for _ in range(24):
            world.clock.advance(0.5)
            await owner.planner.tick()
            await owner.publisher.tick()
        promise(run in await world.parcels(), "a due run has no parcel")


async def test_the_mark_of_a_shard_never_goes_back(world: World, guard: str) -> None:
    """I6: an old answer about an idle shard arrives after a newer one."""
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    renew, ttl, now = owner.elector._shards.renew, SETTINGS.lease_ttl, world.clock.now()
    pattern = r"greatest\(shards\.published_through, free\.published_through\)"
    await renew([(held.claim, world.seconds(2))], ttl=ttl, now=now)
    with (
        judged(guard),
        without(guard, "shards", "renew_shards", pattern, "free.published_through"),
    ):
        await renew([(held.claim, world.seconds(1))], ttl=ttl, now=now)
        statement = "SELECT published_through FROM betimes.shards WHERE shard = $1"
        rows = await world.fetch(statement, SHARD)
        promise(rows == [(world.seconds(2),)], "the mark of a shard went back")


async def test_an_outage_does_not_come_back_as_a_flood(
    world: World, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I7: without a word about it, the latest of the missed fires runs and the rest is recorded."""
    job = await world.insert_job("every 60s")
    world.clock.advance(timedelta(hours=2))
    missed_until = world.clock.now() - planning_steps.LATE_AFTER
    if guard == KNOCKED_OUT:

        def everything(schedule: Any, last: Any, now: Any, **_: Any) -> CatchupPlan:
            missed = schedule.instants(to_us(last), to_us(now), 1_000)
            return CatchupPlan(tuple(schedule.fire(one) for one in missed), ())

        monkeypatch.setattr(planning_steps, "plan_catchup", everything)
    owner = await an_owner(world)
    for _ in range(3):
        await owner.planner.tick()
    with judged(guard):
        missed = [fire for fire in await world.fires(job) if fire <= missed_until]
        promise(len(missed) <= 1, "every missed fire came back")


async def test_epochs_rise_with_every_grant(world: World, guard: str) -> None:
    """I9, of shards."""
    first, second = await world.coordinator(), await world.coordinator()
    ttl, now = SETTINGS.lease_ttl, world.clock.now()
    later = now + ttl + timedelta(seconds=1)
    pattern = r"epoch = epoch \+ 1"
    with judged(guard), without(guard, "shards", "acquire_shards", pattern, "epoch = epoch"):
        (before,) = await first.elector._shards.acquire([SHARD], ttl=ttl, now=now)
        (after,) = await second.elector._shards.acquire([SHARD], ttl=ttl, now=later)
        promise(after.epoch > before.epoch, "two owners were granted the same epoch")


async def test_fences_rise_with_every_lease(
    database: Database, clock: ManualClock, guard: str
) -> None:
    """I9, of parcels."""
    await enqueue(database, clock.now(), ["noop"])
    pattern = r"fence = parcels\.fence \+ 1"
    with (
        judged(guard),
        without(guard, "parcels", "lease_parcels", pattern, "fence = parcels.fence"),
    ):
        before = await lease(database, clock)
        clock.advance(TTL + timedelta(seconds=1))
        assert await reaper(database, clock).tick() == 1
        after = await lease(database, clock)
        promise(after.fence > before.fence, "two leases have the same fence")


async def test_who_leaves_hands_its_shards_over(
    world: World, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I12: a clean end costs nobody the rest of a lease."""
    leaving, heir = await an_owner(world), await world.coordinator()
    if guard == KNOCKED_OUT:

        async def keep(*_: Any) -> None:
            """The variant: the process just ends."""

        monkeypatch.setattr(leaving.elector, "_release", keep)
    await leaving.elector.hand_over()
    await world.alive(leaving.node, draining=True)
    with judged(guard):
        await heir.elector.tick()
        promise(SHARD in heir.holdings, "the shards wait for leases that nobody needs")


async def test_what_was_abandoned_comes_to_an_end(
    database: Database, clock: ManualClock, guard: str
) -> None:
    """I14: the worker died; somebody must take its parcel back."""
    (run,) = await enqueue(database, clock.now(), ["noop"])
    await lease(database, clock)
    clock.advance(TTL + timedelta(seconds=1))
    due = r"lease_until < (coalesce\(\$\d+::timestamptz, statement_timestamp\(\)\))"
    with (
        judged(guard),
        without(guard, "parcels", "find_shards_to_reap", due, r"\1 IS NULL"),
    ):
        await reaper(database, clock).tick()
        async with a_worker(database, clock, number=2) as bench:
            await bench.poll_once()
        done = await state_of(database, run) is RunState.SUCCEEDED
        promise(done, "a run waits for a dead worker for ever")


async def test_a_paused_queue_gives_nothing(
    database: Database, clock: ManualClock, guard: str
) -> None:
    """I19, of queues."""
    await enqueue(database, clock.now(), ["noop"])
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'one', 'One') "
            "ON CONFLICT DO NOTHING",
            WORKERS_TENANT,
        )
        await connection.execute(
            "INSERT INTO betimes.queues (tenant_id, name, paused_at) VALUES ($1, $2, $3)",
            WORKERS_TENANT,
            QUEUE,
            clock.now(),
        )
    with (
        judged(guard),
        without(guard, "parcels", "lease_parcels", r"queues\.paused_at IS NOT NULL", "false"),
    ):
        leased = await Parcels(database, worker_id()).lease(
            [Source(SHARD, QUEUE, WORKERS_TENANT)],
            slots=10,
            parcels_max=10,
            suspects=False,
            ttl=TTL,
            now=clock.now(),
        )
        promise(not leased.leased, "a paused queue gave something away")


async def test_of_many_writers_of_one_revision_one_wins(
    database: Database, clock: ManualClock, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I20: five edits of the same revision at once."""
    desk = make_desk(database, clock)
    job = await create_job(desk, TENANT, NewJob(definition=every(60)))
    if guard == KNOCKED_OUT:
        monkeypatch.setattr(update, "check_revision", lambda *_: None)
    answers = await asyncio.gather(
        *(
            update.update_job(
                desk, TENANT, job.id, every(60, payload=bytes([number])), expected_revision=1
            )
            for number in range(5)
        ),
        return_exceptions=True,
    )
    with judged(guard):
        refused = [one for one in answers if isinstance(one, VersionMismatch)]
        promise(len(refused) == 4, "an edit was overwritten by one that had not seen it")
