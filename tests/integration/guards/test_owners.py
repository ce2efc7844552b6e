"""What keeps stale coordinators, repeated commits and half-done steps from doing harm."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from betimes.coordinator import plan as planning_steps
from betimes.coordinator.service import Coordinator
from betimes.domain import ids
from betimes.domain.errors import Unavailable
from betimes.domain.ids import JobId, ShardId
from betimes.domain.parcel import Waiting
from betimes.ops import NewJob, create_job
from betimes.ops.pause import pause_job, resume_job
from betimes.schedule import Budget
from betimes.store import sweep
from betimes.store.plan import Planned, Planning
from betimes.store.pool import Connection, Lane
from betimes.store.publish import Batch
from betimes.store.shards import Claim, HeldShard, hold
from integration.coordinator.conftest import SETTINGS, TENANT, World
from integration.guards.conftest import KNOCKED_OUT, judged, promise, without
from ops_kit import every, make_desk

SHARD = ShardId(1)
EPOCH = r"epoch = (\$\d+::bigint)"
ANY_EPOCH = r"\1 IS NOT NULL"
EPOCHS = r"shards\.epoch = held\.epoch"


class CrashError(Exception):
    """The process died here."""


async def an_owner(world: World) -> Coordinator:
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    return coordinator


async def lost_and_regained(world: World) -> None:
    """Another node had the shards in between: same owner as before, two epochs later."""
    await world.fetch("UPDATE betimes.shards SET epoch = epoch + 2")


async def batch_of(world: World, claim: Claim) -> Batch:
    (run,) = await world.insert_runs([world.seconds(1)], shard=claim.shard)
    waiting = Waiting(run, TENANT, world.seconds(1), 5, "q")
    return Batch(claim, world.seconds(2), [waiting])


async def test_publishing_needs_the_epoch(world: World, guard: str) -> None:
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    batch = await batch_of(world, held.claim)
    await lost_and_regained(world)
    with judged(guard), without(guard, "parcels", "publish_parcels", EPOCHS, "true"):
        done = await owner.publisher._publishing.publish([batch], now=world.clock.now())
        promise(SHARD in done.lost, "a write of an old epoch was accepted")
        promise(not await world.parcels(), "an old epoch has published")


async def test_publishing_under_a_policy_needs_the_epoch(world: World, guard: str) -> None:
    """Runs that mind each other are published by other statements."""
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    batch = await batch_of(world, held.claim)
    job = JobId(batch.runs[0].id)
    batch = replace(batch, runs=[batch.runs[0]._replace(job=job, overlap=1)])
    await lost_and_regained(world)
    with judged(guard), without(guard, "shards", "move_cursors", EPOCHS, "true"):
        done = await owner.publisher._publishing.publish([batch], now=world.clock.now())
        promise(SHARD in done.lost, "a write of an old epoch was accepted")
        promise(not await world.parcels(), "an old epoch has published")


async def test_a_verdict_needs_the_epoch(world: World, guard: str) -> None:
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    (run,) = await world.insert_runs([world.seconds(-1)], shard=SHARD)
    await world.fetch(
        "INSERT INTO betimes.parcels (shard, id, tenant_id, queue, rank, visible_at, run_ids, held,"
        " held_at) VALUES ($1, $2::uuid, $3, 'q', $4, $4, ARRAY[$2::uuid], 2, $4)",
        SHARD,
        run,
        TENANT,
        world.seconds(-1),
    )
    await world.fetch("UPDATE betimes.runs SET job_id = id, overlap = 1")
    await lost_and_regained(world)
    refereeing = owner.referee._refereeing
    with judged(guard), without(guard, "shards", "take_shards", EPOCHS, "true"):
        done = await refereeing.judge([held.claim], most=10, now=world.clock.now())
        promise(SHARD not in done, "a verdict of an old epoch was accepted")


async def test_planning_needs_the_epoch(world: World, guard: str) -> None:
    job = await world.insert_job("every 10s")
    owner = await an_owner(world)
    await lost_and_regained(world)
    with judged(guard), without(guard, "shards", "hold_shard", EPOCH, ANY_EPOCH):
        await owner.planner.tick()
        promise(not await world.fires(job), "an old epoch has planned")


LASTING = r"(?:shards\.)?lease_until >= (coalesce\(\$\d+::timestamptz, statement_timestamp\(\)\))"
ANY_LEASE = r"\1 IS NOT NULL"


async def test_publishing_needs_a_lease_that_lasts(world: World, guard: str) -> None:
    """Nobody has taken the shard yet, so the epoch is of no help."""
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    batch = await batch_of(world, held.claim)
    late = world.clock.now() + SETTINGS.lease_ttl + timedelta(seconds=1)
    with judged(guard), without(guard, "parcels", "publish_parcels", LASTING, ANY_LEASE):
        await owner.publisher._publishing.publish([batch], now=late)
        promise(not await world.parcels(), "somebody past its lease has published")


async def test_planning_needs_a_lease_that_lasts(world: World, guard: str) -> None:
    job = await world.insert_job("every 10s")
    owner = await an_owner(world)
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    for held in owner.holdings:
        held.term = held.term.renewed(asked_at=world.clock.monotonic(), ttl=99, margin=0)
    with judged(guard), without(guard, "shards", "hold_shard", LASTING, ANY_LEASE):
        await owner.planner.tick()
        promise(not await world.fires(job), "somebody past its lease has planned")


async def test_renewing_needs_the_epoch(world: World, guard: str) -> None:
    owner = await an_owner(world)
    await lost_and_regained(world)
    with judged(guard), without(guard, "shards", "renew_shards", EPOCHS, "true"):
        await owner.publisher.tick()
        promise(not len(owner.holdings), "an old epoch was renewed")


async def test_nobody_takes_a_shard_from_the_living(world: World, guard: str) -> None:
    owner = await an_owner(world)
    thief = await world.coordinator()
    pattern = r"lease_until < coalesce\(\$\d+::timestamptz, statement_timestamp\(\)\)"
    with judged(guard), without(guard, "shards", "acquire_shards", pattern, "true"):
        shards = thief.elector._shards
        grants = await shards.acquire([SHARD], ttl=SETTINGS.lease_ttl, now=world.clock.stated())
        promise(not grants, "a shard changed hands while its lease was good")
        promise(SHARD in owner.holdings, "unreachable")


async def test_nobody_takes_a_shard_by_a_lease_that_was_renewed(world: World, guard: str) -> None:
    """Who has seen a lease run out by its own clock names that one, and no other."""
    owner = await an_owner(world)
    thief = await world.coordinator()
    shards = thief.elector._shards
    seen, _ = await shards.read(now=world.clock.stated())
    stale = {one.shard: one.lease_until for one in seen if one.lease_until is not None}
    await world.live(3, owner)
    pattern = r"lease_until = wanted\.stale"
    with judged(guard), without(guard, "shards", "acquire_shards", pattern, "true"):
        grants = await shards.acquire(
            [SHARD], ttl=SETTINGS.lease_ttl, now=world.clock.stated(), stale=stale
        )
        promise(not grants, "a shard changed hands although its lease was renewed")


async def test_a_repeated_commit_of_the_publisher_does_nothing(world: World, guard: str) -> None:
    """The reply was lost, the parcel was executed meanwhile, the commit is repeated."""
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    batch = await batch_of(world, held.claim)
    publishing = owner.publisher._publishing
    await publishing.publish([batch], now=world.clock.now())
    await world.fetch("DELETE FROM betimes.parcels")
    pattern = r"shards\.published_through < held\.through"
    with judged(guard), without(guard, "parcels", "publish_parcels", pattern, "true"):
        await publishing.publish([batch], now=world.clock.now())
        promise(not await world.parcels(), "the same run was published twice")


async def test_the_key_of_a_run_follows_from_its_fire(
    world: World, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Epoch, revision and expected fire are of no help here: the key alone must do."""
    job = await world.insert_job("every 10s")
    before = (await world.fetch("SELECT next_fire_at FROM betimes.jobs"))[0][0]
    owner = await an_owner(world)
    if guard == KNOCKED_OUT:

        def made_up(_job: Any, fires: Any) -> Any:
            return [ids.compose(due_ms, SHARD, next(world.numbers)) for _, due_ms in fires]

        monkeypatch.setattr(planning_steps, "occurrences", made_up)
    await owner.planner.tick()
    await world.fetch("UPDATE betimes.jobs SET next_fire_at = $1", before)
    with judged(guard):
        await owner.planner.tick()
        fires = await world.fires(job)
        promise(len(fires) == len(set(fires)), "one fire became two runs")


async def test_an_edited_job_is_not_planned_by_its_old_definition(world: World, guard: str) -> None:
    job = await world.insert_job("every 10s")
    owner = await an_owner(world)
    real = Planning._advance

    async def edited_first(self: Planning, connection: Connection, *rest: Any, **more: Any) -> Any:
        await connection.execute("UPDATE betimes.jobs SET revision = revision + 1")
        return await real(self, connection, *rest, **more)

    pattern = r"jobs\.revision = step\.revision"
    with judged(guard), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Planning, "_advance", edited_first)
        with without(guard, "plan", "advance_jobs", pattern, "true"):
            await owner.planner.tick()
            promise(not await world.fires(job), "an old definition has fired")


async def test_a_job_advances_once(world: World, guard: str) -> None:
    """Two planners computed the same step; the second must not move what the first has moved."""
    await world.insert_job("every 10s")
    owner = await an_owner(world)
    held = owner.holdings.get(SHARD)
    assert held is not None
    planning = owner.planner._planning
    now = world.clock.now()
    steps = await steps_of(world, owner)
    await planning.commit(held.claim, steps, tzdata="test", now=now)
    pattern = r"jobs\.next_fire_at = step\.expected"
    with judged(guard), without(guard, "plan", "advance_jobs", pattern, "true"):
        again = await planning.commit(held.claim, steps, tzdata="test", now=now)
        promise(again.jobs == 0, "a job was advanced twice by the same step")


async def steps_of(world: World, owner: Coordinator) -> list[Any]:
    until = world.clock.now() + SETTINGS.horizon
    current = planning_steps.Pass(owner.planner._schedules, now=world.clock.now(), until=until)
    jobs = await owner.planner._planning.due_jobs(
        SHARD, before=until, after=(world.clock.now() - timedelta(days=1), TENANT), most=10
    )
    return [current.step(job, Budget()) for job in jobs]


async def test_advance_and_insert_are_one_transaction(
    world: World, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between the two; its successor must find every fire."""
    start = world.clock.now()
    job = await world.insert_job("every 10s")
    dying, heir = await an_owner(world), await world.coordinator()
    if guard == KNOCKED_OUT:
        monkeypatch.setattr(Planning, "commit", advance_first)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Planning, "_insert", crash)
        with pytest.raises(CrashError):
            await dying.planner.tick()
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    await world.alive(heir.node)
    with judged(guard):
        await heir.elector.tick()
        await heir.planner.tick()
        expected = [start + timedelta(seconds=10 * number) for number in range(1, 16)]
        promise((await world.fires(job))[:15] == expected, "fires are lost")


async def crash(*_: Any, **__: Any) -> Planned:
    raise CrashError


async def advance_first(
    self: Planning, claim: Claim, steps: Any, *, tzdata: str, now: Any
) -> Planned:
    """The variant: two transactions."""

    async def one(connection: Connection) -> Any:
        await hold(connection, claim, node=self.node, now=now)
        return await self._advance(connection, claim.shard, steps, tzdata=tzdata)

    async def two(connection: Connection) -> Planned:
        return await self._insert(connection, claim.shard, steps, HeldShard(now, None))

    await self.database.transact(one, lane=Lane.ENGINE, repeatable=True)
    return await self.database.transact(two, lane=Lane.ENGINE, repeatable=True)


async def test_the_others_do_not_make_up_for_a_stuck_shard(world: World, guard: str) -> None:
    """One shard fails at every turn, all others are well: its lease must run out."""
    await world.insert_job("every 1s", shard=SHARD)
    owner = await an_owner(world)
    with judged(guard), pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner.planner, "_plan_shard", away)
        for _ in range(int(SETTINGS.lease_ttl.total_seconds() * 1.5)):
            world.clock.advance(1)
            with suppress(Unavailable):
                await owner.planner.tick()
            if guard == KNOCKED_OUT:  # the variant: that the planner passes counts for all
                for held in owner.holdings:
                    held.planned_at = world.clock.monotonic()
            await owner.publisher.tick()
        rows = await world.fetch(
            "SELECT lease_until < $1 FROM betimes.shards WHERE shard = $2", world.clock.now(), SHARD
        )
        promise(rows == [(True,)], "a stuck shard was renewed for ever")


async def away(*_: Any) -> int:
    raise Unavailable("this shard cannot be read")


async def test_a_lease_means_progress_and_not_life(world: World, guard: str) -> None:
    """The planner hangs while the rest of the process is well: the shards must change hands."""
    stuck = await an_owner(world)
    heir = await world.coordinator()
    with judged(guard):
        for _ in range(int(SETTINGS.lease_ttl.total_seconds() * 2.5 / 0.5)):
            world.clock.advance(0.5)
            if guard == KNOCKED_OUT:
                for held in stuck.holdings:  # the variant: a timer says that all is well
                    held.planned_at = held.published_at = world.clock.monotonic()
            await stuck.publisher.tick()
            await world.alive(heir.node)
            await heir.elector.tick()
        promise(SHARD in heir.holdings, "a wedged owner kept its shards")


async def test_sweeping_ends_at_the_cursor(
    world: World, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the publisher has not come to is not swept: the next owner would take it back."""
    runs = await world.insert_runs([world.seconds(60 + number) for number in range(3)])
    first = await an_owner(world)
    await first.publisher.tick()
    world.clock.advance(120)
    second = await an_owner(world)
    if guard == KNOCKED_OUT:
        monkeypatch.setattr(sweep, "published_part", lambda until, _cursor: until)
    with judged(guard):
        promise(await second.sweeper.tick() == 0, "a late publisher was taken for a broken rule")
        await second.publisher.tick()
        rows = await world.fetch("SELECT unnest(run_ids) FROM betimes.parcels")
        promise(Counter(run for (run,) in rows) == Counter(runs), "a run is in two parcels")


async def test_a_gap_is_settled_without_the_fires_that_have_an_account(
    world: World, guard: str
) -> None:
    """A pause has decided about some of them; whoever catches up leaves those out."""
    desk = make_desk(world.database, world.clock)
    often = {"catchup": {"policy": "all", "window": "PT1H"}, "overlap": "allow"}
    job = await create_job(desk, TENANT, NewJob(definition=every(5, schedule=often)))
    await world.live(20, await world.coordinator())
    world.clock.advance(11)
    await pause_job(desk, TENANT, job.id)
    world.clock.advance(31)
    await resume_job(desk, TENANT, job.id)
    world.clock.advance(80)
    accounts = r"runs\.trigger IN \(0, 3\)"
    decided = r"decisions\.fire_at <= span\.last"
    with (
        judged(guard),
        without(guard, "catchup", "find_accounted", accounts, "false"),
        without(guard, "catchup", "find_accounted", decided, "false"),
    ):
        await world.live(20, await world.coordinator())
        both = await world.fetch(
            "SELECT runs.fire_at FROM betimes.runs JOIN betimes.decisions USING (shard, job_id)"
            " WHERE runs.fire_at BETWEEN decisions.fire_at"
            " AND coalesce(decisions.until_at, decisions.fire_at) AND runs.state <> 7"
        )
        promise(not both, "a fire was recorded as paused, and ran")
