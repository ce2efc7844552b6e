"""Tenants, their queues and fairness keys take turns by weight and by what they have had."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from betimes.domain.ids import ShardId, TenantId
from betimes.domain.leased import Source
from betimes.ops import turns as room
from betimes.ops.turns import SLACK, Turns, best_first
from betimes.store.rules import QueueRule, Rules, TenantRule

ONE, TWO = TenantId(UUID(int=1)), TenantId(UUID(int=2))


def source(tenant: int, shard: int = 0, queue: str = "q", fair: int = 0) -> Source:
    return Source(ShardId(shard), queue, TenantId(UUID(int=tenant)), fair)


def served(
    turns: Turns, due: Sequence[Source], by: Callable[[Source], Hashable], *, rounds: int = 400
) -> dict[Hashable, float]:
    """The shares of those who wait when everybody always has something."""
    had: Counter[Hashable] = Counter()
    for _ in range(rounds):
        (chosen,) = turns.pick(due, most=1)
        turns.charge({chosen: 10})
        had[by(chosen)] += 1
    return {who: count / rounds for who, count in had.items()}


def test_nobody_waits() -> None:
    assert Turns().pick([], most=3) == []


def test_a_hundred_sources_get_no_more_than_one() -> None:
    due = [*(source(1, shard) for shard in range(100)), source(2)]
    assert served(Turns(), due, lambda one: one.tenant) == {ONE: 0.5, TWO: 0.5}


def test_tenants_share_by_weight_and_a_change_counts_from_then_on() -> None:
    turns, due = Turns(), [source(1), source(2)]
    turns.rules = Rules(tenants={ONE: TenantRule(weight=3)})
    assert served(turns, due, lambda one: one.tenant) == pytest.approx({ONE: 0.75, TWO: 0.25})
    turns.rules = Rules(tenants={TWO: TenantRule(weight=4)})
    shares = served(turns, due, lambda one: one.tenant)
    assert shares == pytest.approx({ONE: 0.2, TWO: 0.8}, abs=0.01)


def test_the_queues_of_a_tenant_share_what_the_tenant_gets() -> None:
    """However many queues a tenant has, and however heavy they are, its neighbour gets half."""
    turns = Turns()
    turns.rules = Rules(queues={(ONE, "a"): QueueRule(weight=9)})
    due = [source(1, queue="a"), source(1, queue="b"), source(2)]
    shares = served(turns, due, lambda one: (one.tenant, one.queue))
    assert shares == pytest.approx({(ONE, "a"): 0.45, (ONE, "b"): 0.05, (TWO, "q"): 0.5}, abs=0.01)


def test_fairness_keys_share_a_queue_equally_where_the_queue_says_so() -> None:
    turns = Turns()
    turns.rules = Rules(queues={(ONE, "q"): QueueRule(fairness="key")})
    due = [*(source(1, shard, fair=5) for shard in range(9)), source(1, fair=6), source(2)]
    shares = served(turns, due, lambda one: (one.tenant, one.fair))
    assert shares == pytest.approx({(ONE, 5): 0.25, (ONE, 6): 0.25, (TWO, 0): 0.5}, abs=0.01)


def test_who_comes_back_has_saved_nothing_up() -> None:
    turns = Turns()
    for _ in range(50):
        turns.pick([source(1)], most=1)
        turns.charge({source(1): 100})
    both = [source(1), source(2)]
    assert served(turns, both, lambda one: one.tenant, rounds=10) == {ONE: 0.5, TWO: 0.5}


def test_several_are_picked_from_who_had_least_on() -> None:
    """Places are given out in this order, so who had least is not left without."""
    due = [source(1, 1), source(1, 2), source(2), source(3)]
    turns = Turns()
    turns.pick(due, most=3)
    turns.charge({source(1, 1): 7, source(2): 3})
    assert turns.pick(due, most=3) == [source(3), source(2), source(1, 1)]


def test_what_was_only_expected_is_taken_back() -> None:
    due, turns = [source(1), source(2)], Turns()
    turns.pick(due, most=2)
    turns.charge({source(1): 100})
    assert turns.pick(due, most=1) == [source(2)], "a second claim meanwhile asks somebody else"
    turns.charge({source(1): -100})
    turns.charge({source(2): 1})
    assert turns.pick(due, most=1) == [source(1)]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "KEPT_MAX", 10)
    turns = Turns()
    for number in range(1, 100):
        turns.charge({source(number): 1})
    assert len(turns._queues) <= 10


def test_of_the_shards_of_a_place_the_best_rank_goes_first() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    places = [source(1, 0), source(1, 1), source(1, 2), source(1, 3), source(2, 5), source(2, 6)]
    seconds = {0: 30, 1: 10, 3: 20, 5: 2, 6: 1}
    ranks = {one: start + timedelta(seconds=seconds[one.shard]) for one in places if one.shard != 2}
    order, bounds = best_first(places, ranks)
    assert [one.shard for one in order] == [1, 3, 0, 6, 5], "the order of places stays"
    assert bounds == {
        source(1, 1): start + timedelta(seconds=20) + SLACK,
        source(1, 3): start + timedelta(seconds=30) + SLACK,
        source(2, 6): start + timedelta(seconds=2) + SLACK,
    }
