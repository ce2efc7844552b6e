"""What a coordinator takes on follows from how fast it has been."""

import pytest

from betimes.coordinator.balance import quotas
from betimes.coordinator.pace import ONE_BY_ONE, Pace, PacePolicy
from betimes.domain.ids import NodeId, compose

LEASE = 10.0
POLICY = PacePolicy()
NODES = [NodeId(compose(1, 0, number)) for number in range(3)]


@pytest.mark.parametrize(
    ("slowest", "patience"), [(0.0, 3.0), (1.0, 3.0), (2.0, 6.0), (5.0, 15.0), (60.0, 30.0)]
)
def test_patience_is_three_passes_and_never_more_than_three_leases(
    slowest: float, patience: float
) -> None:
    assert POLICY.patience(period=1.0, slowest=slowest, lease=LEASE) == patience
    assert ONE_BY_ONE.patience(period=1.0, slowest=slowest, lease=LEASE) == 3.0


def test_a_pass_begins_nothing_after_a_fifth_of_a_lease() -> None:
    assert POLICY.budget(lease=LEASE) == 2.0
    assert ONE_BY_ONE.budget(lease=LEASE) == float("inf")


@pytest.mark.parametrize(
    ("pass_seconds", "unserved", "takes"),
    [(0.1, 30, 64), (0.5, 30, 64), (1.0, 0, 32), (2.0, 0, 16), (2.0, 1, 0), (100.0, 0, 1)],
)
def test_who_is_slow_takes_fewer_and_none_before_the_last_are_served(
    pass_seconds: float, unserved: int, takes: int
) -> None:
    taken = POLICY.takes(shards=64, pass_seconds=pass_seconds, lease=LEASE, unserved=unserved)
    assert taken == takes
    assert ONE_BY_ONE.takes(shards=64, pass_seconds=9.0, lease=LEASE, unserved=unserved) == 64


@pytest.mark.parametrize(
    ("known", "held", "pass_seconds", "capacity"),
    [
        (None, 64, 0.1, None),
        (None, 64, 1.9, None),
        (None, 64, 4.0, 32),
        (32, 32, 4.0, 16),
        (1, 1, 50.0, 1),
        (None, 0, 50.0, 1),
        (16, 16, 1.5, 16),
        (16, 16, 0.9, 32),
        (32, 32, 0.9, None),
    ],
)
def test_a_capacity_shrinks_and_grows_and_rests_in_between(
    known: int | None, held: int, pass_seconds: float, capacity: int | None
) -> None:
    found = POLICY.capacity(known, held=held, pass_seconds=pass_seconds, lease=LEASE, shards=64)
    assert found == capacity


def test_one_hiccup_says_nothing_about_the_pace() -> None:
    pace = Pace(lease=LEASE, period=1.0)
    for seconds in (0.1, 0.1, 60.0, 0.1, 0.1):
        pace.passed(seconds)
        pace.answered(0.01)
    assert pace.pass_seconds == 0.1
    assert not pace.weigh(held=64, shards=64)
    assert pace.takes(shards=64, unserved=64) == 64


def test_before_the_first_pass_a_round_trip_tells_the_pace() -> None:
    pace = Pace(lease=LEASE, period=1.0)
    assert pace.takes(shards=64, unserved=0) == 64
    pace.answered(0.25)
    assert pace.pass_seconds == 2.0
    assert pace.takes(shards=64, unserved=0) == 16
    assert pace.turns(2) == 3


def test_a_capacity_is_judged_by_what_was_measured_since_it_changed() -> None:
    pace = Pace(lease=LEASE, period=1.0)
    for _ in range(5):
        pace.passed(4.0)
        pace.answered(0.0)
    assert pace.weigh(held=64, shards=64)
    assert pace.capacity == 32
    assert not pace.weigh(held=64, shards=64), "nothing was measured since"


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ([None, None, None], [22, 21, 21]),
        ([1, None, None], [1, 32, 31]),
        ([40, 5, None], [30, 5, 29]),
        ([1, 1, 1], [22, 21, 21]),
        ([2, 1, 1], [32, 16, 16]),
        ([10, 10, None], [10, 10, 44]),
        ([20, 20, 24], [20, 20, 24]),
    ],
)
def test_everything_has_an_owner_and_nobody_more_than_it_can_while_others_can(
    capacities: list[int | None], expected: list[int]
) -> None:
    told = {node: most for node, most in zip(NODES, capacities, strict=True) if most is not None}
    found = quotas(NODES, told, 64)
    assert [found[node] for node in NODES] == expected
    assert sum(expected) == 64
