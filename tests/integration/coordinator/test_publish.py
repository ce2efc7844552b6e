"""Every run gets its parcel once, in good time before it is due, whoever dies in between."""

import contextlib
from datetime import datetime, timedelta
from typing import Any

import pytest

from betimes.coordinator import publisher
from betimes.domain.errors import Unavailable, UnknownOutcome
from betimes.domain.ids import ShardId
from betimes.store.publish import Publishing
from integration.coordinator.conftest import SETTINGS, TENANT, World


async def test_a_run_is_published_before_it_is_due_and_visible_when_it_is(world: World) -> None:
    """Not earlier than the lead, and not later than half of it."""
    coordinator = await world.coordinator()
    await coordinator.tick()
    soon, later = await world.insert_runs([world.seconds(12), world.seconds(14)])

    await world.live(9.5, coordinator)
    assert await world.parcels() == {}

    await world.live(1.5, coordinator)
    due = world.seconds(1)
    assert await world.parcels() == {soon: due}
    assert world.hints == [(1, "q", TENANT, due)]

    await world.live(2, coordinator)
    assert set(await world.parcels()) == {soon, later}


async def test_what_was_due_before_anybody_ran_is_published_at_once(world: World) -> None:
    runs = await world.insert_runs([world.seconds(-3600), world.seconds(-1), world.seconds(1)])
    assert await (await world.coordinator()).tick() == 3
    assert set(await world.parcels()) == set(runs)


async def test_publishing_again_publishes_nothing(world: World) -> None:
    coordinator = await world.coordinator()
    await world.insert_runs([world.seconds(1)])
    assert await coordinator.tick() == 1
    assert await coordinator.tick() == 0
    coordinator.publisher._rewind(ShardId(1))
    assert await coordinator.tick() == 0


async def test_a_new_owner_goes_on_where_the_last_one_stopped(world: World) -> None:
    first = await world.coordinator()
    runs = await world.insert_runs([world.seconds(number) for number in (1, 11, 13, 15, 60)])
    await first.tick()
    await world.live(10, first)
    assert set(await world.parcels()) == set(runs[:2])

    # The owner dies without a word; its leases run out.
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    second = await world.coordinator()
    await second.tick()
    assert set(await world.parcels()) == set(runs[:4])
    epochs = await world.fetch("SELECT DISTINCT epoch FROM betimes.shards")
    assert epochs == [(2,)]


async def test_an_owner_that_slept_too_long_changes_nothing(world: World) -> None:
    """The epoch guard alone: the stale owner still trusts its term and tries to write."""
    stale = await world.coordinator()
    await stale.tick()
    (run,) = await world.insert_runs([world.seconds(20.4)])
    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    fresh = await world.coordinator()
    await fresh.elector.tick()
    await world.live(8, fresh)
    for held in stale.holdings:
        held.term = held.term.renewed(asked_at=world.clock.monotonic(), ttl=99, margin=0)

    fresh_epochs = {held.claim.epoch for held in fresh.holdings}
    world.clock.advance(0.5)
    await stale.publisher.tick()

    assert fresh_epochs == {2}
    assert await world.parcels() == {}, "a stale owner published"
    assert world.telemetry.reading("betimes_lease_lost_total", kind="shard") > 0
    assert ShardId(1) not in stale.holdings
    await world.live(1, fresh)
    assert set(await world.parcels()) == {run}


async def test_the_loss_of_a_reply_neither_loses_nor_doubles(world: World) -> None:
    """The commit happened, the answer got lost, and the work is repeated."""
    coordinator = await world.coordinator()
    await coordinator.elector.tick()
    runs = await world.insert_runs([world.seconds(1), world.seconds(1.5)])
    publishing = coordinator.publisher._publishing
    real = publishing.database.transact
    losses = iter([True, False])

    async def forgetful(work, **options):  # type: ignore[no-untyped-def]
        answer = await real(work, **options)
        if next(losses, False):
            raise UnknownOutcome("the reply was lost")
        return answer

    publishing.database.transact = forgetful  # type: ignore[method-assign]
    with contextlib.suppress(UnknownOutcome):
        await coordinator.publisher.tick()
    await coordinator.publisher.tick()
    assert set(await world.parcels()) == set(runs)


async def test_a_crowd_in_one_millisecond_is_published_whole(world: World) -> None:
    """The page is smaller than the crowd; the cursor counts in milliseconds."""
    due = world.seconds(1)
    runs = await world.insert_runs([due] * 4_500 + [world.seconds(1.5)] * 10)
    coordinator = await world.coordinator()
    assert await coordinator.tick() == len(runs)
    assert set(await world.parcels()) == set(runs)
    sizes = await world.fetch("SELECT max(cardinality(run_ids)) FROM betimes.parcels")
    assert sizes == [(256,)]


async def test_an_idle_shard_moves_its_cursor_with_its_renewal(world: World) -> None:
    coordinator = await world.coordinator()
    await world.live(4, coordinator)
    rows = await world.fetch("SELECT min(published_through), min(lease_until) FROM betimes.shards")
    through, lease = rows[0]
    assert isinstance(through, datetime)
    assert timedelta(0) <= through - world.clock.now() <= SETTINGS.lead
    assert lease > world.clock.now()  # type: ignore[operator]


async def test_a_lease_means_progress(world: World) -> None:
    """A planner that is stuck lets the shards go, although the publisher is well."""
    coordinator = await world.coordinator()
    await coordinator.tick()
    for _ in range(12):
        world.clock.advance(1)
        await coordinator.publisher.tick()
    world.clock.advance(9)
    assert coordinator.holdings.trusted(world.clock.monotonic()) == []


async def test_shards_are_shared_and_handed_over(world: World) -> None:
    first = await world.coordinator()
    await first.elector.tick()
    assert len(first.holdings) == 4
    second = await world.coordinator()
    await world.alive(first.node)
    for _ in range(3):
        await first.elector.tick()
        await second.elector.tick()
    assert (len(first.holdings), len(second.holdings)) == (2, 2)

    await first.elector.hand_over()
    await world.alive(first.node, draining=True)
    await second.elector.tick()
    assert (len(first.holdings), len(second.holdings)) == (0, 4)


async def test_what_was_read_under_an_old_epoch_is_not_published_under_a_new_one(
    world: World,
) -> None:
    """The owner lost the shard and got it back before its publisher looked: one parcel per run."""
    owner = await world.coordinator()
    runs = await world.insert_runs([world.seconds(4.5)] * 200)
    await owner.tick()
    assert await world.parcels() == {}

    world.clock.advance(SETTINGS.lease_ttl + timedelta(seconds=1))
    await world.alive(owner.node)
    await owner.elector.tick()
    await owner.publisher.tick()

    assert set(await world.parcels()) == set(runs)


async def test_a_failed_commit_loses_nothing_that_was_to_follow_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second of two transactions was not even tried; its runs must come back too."""
    owner = await world.coordinator()
    await owner.elector.tick()
    near = [await world.insert_runs([world.seconds(1)], shard=shard) for shard in (0, 1, 2)]
    monkeypatch.setattr(publisher, "RUNS_PER_TRANSACTION", 1)

    async def away(*_: object, **__: object) -> None:
        raise Unavailable("the database is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(owner.publisher._publishing), "publish", away)
        with pytest.raises(Unavailable):
            await owner.publisher.tick()
    await world.live(1, owner)

    assert set(await world.parcels()) == {run for (run,) in near}


async def test_a_commit_whose_reply_never_came_is_not_made_again_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when time has moved on, and the parcel was split or executed meanwhile."""
    owner = await world.coordinator()
    await owner.elector.tick()
    runs = await world.insert_runs([world.seconds(1), world.seconds(1.5)])
    publishing = type(owner.publisher._publishing)
    real = publishing.publish

    async def unanswered(*arguments: Any, **more: Any) -> None:
        await real(*arguments, **more)
        raise UnknownOutcome("the reply was lost")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "publish", unanswered)
        with pytest.raises(UnknownOutcome):
            await owner.publisher.tick()
    await world.fetch("UPDATE betimes.parcels SET id = gen_random_uuid() WHERE id = $1", runs[0])
    await world.live(2, owner)

    assert set(await world.parcels()) == set(runs)


@pytest.mark.parametrize("crashes", [False, True])
async def test_a_crowded_millisecond_is_published_in_bounded_pages(
    world: World, monkeypatch: pytest.MonkeyPatch, crashes: bool
) -> None:
    """However many runs are due in it: no read is larger than a page, and memory does not grow."""
    monkeypatch.setattr(publisher, "PAGE", 10)
    due = world.seconds(14)
    crowd = await world.insert_runs([due] * 95)
    others = await world.insert_runs([world.seconds(13.9), world.seconds(14.1)])
    coordinator = await world.coordinator()
    asked: list[int] = []
    publishing = coordinator.publisher._publishing
    near_due, publish_part = type(publishing).near_due, type(publishing).publish_part

    async def noted(self: Publishing, *given: Any, most: int, **more: Any) -> Any:
        asked.append(most)
        assert len(coordinator.publisher._wheel) <= 2 * 10
        return await near_due(self, *given, most=most, **more)

    async def dies(self: Publishing, *given: Any, **more: Any) -> Any:
        await publish_part(self, *given, **more)
        raise Unavailable("its reply was lost, and so is its coordinator")

    monkeypatch.setattr(Publishing, "near_due", noted)
    if crashes:
        monkeypatch.setattr(Publishing, "publish_part", dies)
        with pytest.raises(Unavailable):
            await world.live(13, coordinator)
        monkeypatch.setattr(Publishing, "publish_part", publish_part)
        assert 0 < len(await world.parcels()) < 95, "some of them are published"
        world.clock.advance(11)
        coordinator = await world.coordinator()
    await world.live(15, coordinator)
    assert set(await world.parcels()) == {*crowd, *others}, "each of them once"
    assert max(asked) <= 10
