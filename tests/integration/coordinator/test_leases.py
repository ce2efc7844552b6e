"""Shards are taken together, kept by work that goes on, and written for by nobody who is late."""

from contextlib import suppress
from typing import Any

import pytest

from betimes.coordinator import elector
from betimes.domain.errors import Contended
from betimes.domain.ids import ShardId
from betimes.store.plan import Planning
from betimes.store.publish import Publishing
from betimes.store.shards import Shards
from integration.coordinator.conftest import SETTINGS, World

STUCK = ShardId(1)
SECONDS_PAST_A_LEASE = SETTINGS.lease_ttl.total_seconds() * 1.5


async def leased(world: World) -> set[int]:
    """The shards whose lease has not run out."""
    rows = await world.fetch(
        "SELECT shard FROM betimes.shards WHERE lease_until >= $1", world.clock.now()
    )
    return {int(str(shard)) for (shard,) in rows}


async def test_free_shards_are_taken_by_one_statement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = Shards.acquire

    async def counted(self: Shards, shards: Any, **options: Any) -> Any:
        asked.append(len(shards))
        return await real(self, shards, **options)

    monkeypatch.setattr(Shards, "acquire", counted)
    owner = await world.coordinator()
    await owner.elector.tick()
    everything = len(owner.holdings)
    assert asked == [everything] == [len(await leased(world))]

    monkeypatch.setattr(elector, "ACQUIRED_TOGETHER", everything - 1)
    await owner.elector.hand_over()
    await owner.elector.tick()
    assert asked[1:] == [everything - 1, 1]


async def test_of_many_shards_only_those_are_granted_that_are_free(world: World) -> None:
    owner, other = await world.coordinator(), await world.coordinator()
    mine, free = ShardId(1), ShardId(2)
    ttl, now = SETTINGS.lease_ttl, world.clock.now()
    assert len(await owner.elector._shards.acquire([mine], ttl=ttl, now=now)) == 1
    grants = await other.elector._shards.acquire([free, mine], ttl=ttl, now=now)
    assert [(grant.shard, grant.epoch) for grant in grants] == [(free, 1)]


async def test_a_shard_that_cannot_be_planned_is_not_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails every time it has its turn; that all others are planned must not count for it."""
    jobs = {shard: await world.insert_job("every 1s", shard=shard) for shard in (STUCK, 2, 3)}
    real = Planning.due_jobs

    async def refused(self: Planning, shard: ShardId, **options: Any) -> Any:
        if shard == STUCK:
            raise Contended("a lock that nobody gives back")
        return await real(self, shard, **options)

    monkeypatch.setattr(Planning, "due_jobs", refused)
    owner = await world.coordinator()
    await owner.elector.tick()
    everything = await leased(world)
    for _ in range(int(SECONDS_PAST_A_LEASE)):
        world.clock.advance(1)
        with suppress(Contended):
            await owner.planner.tick()
        await owner.publisher.tick()
    assert await leased(world) == everything - {STUCK}
    assert not await world.fires(jobs[STUCK])
    assert await world.fires(jobs[ShardId(2)])
    assert await world.fires(jobs[ShardId(3)])


@pytest.mark.parametrize("step", ["near_due", "publish"])
async def test_a_shard_that_cannot_be_published_is_not_kept_and_hinders_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Not even when it was to be published in one transaction with the others."""
    owner = await world.coordinator()
    await owner.elector.tick()
    everything = await leased(world)
    due = [world.seconds(number) for number in range(1, int(SECONDS_PAST_A_LEASE))]
    late = await world.insert_runs(due, shard=STUCK)
    runs = await world.insert_runs(due, shard=2) + await world.insert_runs(due, shard=3)
    real = getattr(Publishing, step)

    async def refused(self: Publishing, what: Any, **options: Any) -> Any:
        shards = set(what) if step == "near_due" else {batch.claim.shard for batch in what}
        if STUCK in shards:
            raise Contended("a lock that nobody gives back")
        return await real(self, what, **options)

    monkeypatch.setattr(Publishing, step, refused)
    failures = 0
    for _ in range(int(SECONDS_PAST_A_LEASE)):
        world.clock.advance(1)
        await owner.planner.tick()
        try:
            await owner.publisher.tick()
        except Contended:
            failures += 1
    assert failures
    assert await leased(world) == everything - {STUCK}
    published = await world.parcels()
    assert set(runs) <= set(published)
    assert not set(late) & set(published)


async def test_who_froze_past_its_lease_publishes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen between the look at the lease and the write; nobody has taken the shard yet."""
    frozen, heir = await world.coordinator(), await world.coordinator()
    await frozen.elector.tick()
    runs = await world.insert_runs([world.seconds(1)], shard=STUCK)
    real = Publishing.publish

    async def freeze(self: Publishing, *arguments: Any, **options: Any) -> Any:
        world.clock.advance(SECONDS_PAST_A_LEASE)
        options["now"] = world.clock.now()  # the database's clock, which did not stand still
        return await real(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Publishing, "publish", freeze)
        assert await frozen.publisher.tick() == 0
    assert await world.parcels() == {}
    assert STUCK not in frozen.holdings

    await world.alive(heir.node)
    await heir.tick()
    assert set(await world.parcels()) == set(runs)
