"""Pairs of queue and tenant take turns by what they have had."""

from collections import Counter
from uuid import UUID

from betimes.domain.ids import ShardId, TenantId
from betimes.store.parcels import Source
from betimes.worker.pick import Pair, credit, pick


def source(tenant: int, shard: int = 0) -> Source:
    return Source(ShardId(shard), "q", TenantId(UUID(int=tenant)))


def test_nobody_waits() -> None:
    assert pick([], {}, most=3) == []


def test_who_had_least_is_next() -> None:
    """A tenant with a hundred sources gets no more than one with a single source."""
    due = [*(source(1, shard) for shard in range(100)), source(2)]
    served: dict[Pair, float] = {}
    turns: Counter[UUID] = Counter()
    for _ in range(40):
        (chosen,) = pick(due, served, most=1)
        turns[chosen.tenant] += 1
        served = credit(served, {chosen: 10}, due=due)
    assert turns == {UUID(int=1): 20, UUID(int=2): 20}


def test_who_comes_back_has_saved_nothing_up() -> None:
    served: dict[Pair, float] = {}
    for _ in range(50):
        served = credit(served, {source(1): 100}, due=[source(1)])
    due = [source(1), source(2)]
    turns: Counter[UUID] = Counter()
    for _ in range(10):
        (chosen,) = pick(due, served, most=1)
        turns[chosen.tenant] += 1
        served = credit(served, {chosen: 100}, due=due)
    assert turns == {UUID(int=1): 5, UUID(int=2): 5}


def test_several_are_picked_from_who_had_least_on() -> None:
    """Places are given out in this order, so who had least is not left without."""
    due = [source(1, 1), source(1, 2), source(2), source(3)]
    served = credit({}, {source(1, 1): 7, source(2): 3}, due=due)
    assert pick(due, served, most=3) == [source(3), source(2), source(1, 1)]


def test_every_pair_of_a_claim_is_charged_for_its_own_runs() -> None:
    due = [source(1, 1), source(1, 2), source(2)]
    served = credit({}, {source(1, 1): 5, source(1, 2): 4, source(2): 3}, due=due)
    assert served == {("q", UUID(int=1)): 9.0, ("q", UUID(int=2)): 3.0}
