"""Leases by the clock of who watches them."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from betimes.config.settings import SHARD_LEASE_MAX
from betimes.coordinator.observed import ObservedLeases
from betimes.domain.ids import Epoch, NodeId, ShardId
from betimes.store.shards import ShardSeen

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SHARD = ShardId(3)
OWNER = NodeId(UUID(int=1))
TTL = timedelta(seconds=10)


def seen(until: datetime | None, owner: NodeId | None = OWNER) -> list[ShardSeen]:
    return [ShardSeen(SHARD, owner, Epoch(1), until, expired=False)]


def test_a_lease_that_stays_the_same_for_its_time_is_over() -> None:
    leases = ObservedLeases()
    leases.observe(seen(NOON + TTL), now=NOON, at=100.0)
    # The clock there was set back by an hour: by that the lease lasts for longer than an hour.
    leases.observe(seen(NOON + TTL), now=NOON - timedelta(hours=1), at=111.0)
    assert leases.stale(at=110.9) == {}
    assert leases.stale(at=111.1) == {SHARD: NOON + TTL}


def test_a_lease_that_is_renewed_is_not() -> None:
    leases = ObservedLeases()
    leases.observe(seen(NOON + TTL), now=NOON, at=100.0)
    back = NOON - timedelta(hours=1)
    leases.observe(seen(back + TTL), now=back, at=105.0)
    assert leases.stale(at=115.9) == {}
    assert leases.stale(at=116.1) == {SHARD: back + TTL}


def test_who_comes_later_waits_no_longer_than_a_lease_may_be() -> None:
    leases = ObservedLeases()
    leases.observe(seen(NOON + timedelta(days=1)), now=NOON, at=0.0)
    longest = SHARD_LEASE_MAX.total_seconds()
    assert leases.stale(at=longest) == {}
    assert leases.stale(at=longest * 1.1 + 1) == {SHARD: NOON + timedelta(days=1)}


def test_what_nobody_owns_is_not_watched() -> None:
    leases = ObservedLeases()
    leases.observe(seen(NOON + TTL), now=NOON, at=100.0)
    leases.observe(seen(None, None), now=NOON, at=105.0)
    assert leases.stale(at=1_000.0) == {}
