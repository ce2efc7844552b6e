"""What a worker believes to hold, and when it stops believing."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

import pytest

from betimes.domain.errors import Bug
from betimes.domain.ids import Fence, ParcelId, ShardId, TenantId
from betimes.domain.leased import LeasedParcel, Renewed
from betimes.domain.parcel import Lane
from betimes.worker.held import HeldParcel, HeldParcels
from betimes.worker.slots import Slots

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def parcel(number: int, *, fence: int = 1, since: float = 0.0) -> HeldParcel:
    leased = LeasedParcel(
        shard=ShardId(1),
        id=ParcelId(UUID(int=number)),
        tenant=TenantId(UUID(int=9)),
        queue="q",
        priority=5,
        lane=Lane.ON_TIME,
        visible_at=NOW,
        fence=Fence(fence),
        deliveries=1,
        lease_until=NOW,
        runs=[],
    )
    return HeldParcel(leased, left=1, since=since, trusted_until=since + 27)


def renewed(number: int, fence: int = 1) -> Renewed:
    return Renewed(ShardId(1), ParcelId(UUID(int=number)), Fence(fence))


def test_trust_counts_from_the_question_and_never_shrinks() -> None:
    held, one = HeldParcels(), parcel(1)
    held.add(one)
    assert held.renewed([renewed(1)], asked_at=10.0, trust=27.0) == []
    assert one.trusted_until == 37.0
    held.renewed([renewed(1)], asked_at=5.0, trust=27.0)
    assert one.trusted_until == 37.0
    assert held.untrusted(36.9) == []
    assert held.untrusted(37.0) == [one]


def test_what_is_missing_in_the_answer_is_lost_unless_it_came_after_the_question() -> None:
    held, old, new = HeldParcels(), parcel(1, since=1.0), parcel(2, since=3.0)
    held.add(old)
    held.add(new)
    assert held.renewed([], asked_at=2.0, trust=27.0) == [old]


def test_another_fence_is_somebody_elses() -> None:
    held, one = HeldParcels(), parcel(1)
    held.add(one)
    assert held.renewed([renewed(1, fence=2)], asked_at=1.0, trust=27.0) == [one]


def test_a_newer_lease_of_the_same_parcel_replaces_the_older() -> None:
    held, old, new = HeldParcels(), parcel(1), parcel(1, fence=2)
    held.add(old)
    held.add(new)
    assert (old.lost, new.lost) == (True, False)
    held.remove(old)
    assert list(held) == [new]


def test_a_stray_is_one_that_is_unknown_twice() -> None:
    held = HeldParcels()
    assert held.strays([renewed(1)]) == []
    assert held.strays([renewed(1), renewed(2)]) == [renewed(1)]
    held.add(parcel(2))
    assert held.strays([renewed(2)]) == []


async def test_slots_wake_for_enough_not_for_crumbs() -> None:
    """The first free place after none, enough places, and all of them are worth a call."""
    nudge = asyncio.Event()
    slots = Slots(8, enough=4, nudge=nudge)
    assert slots.reserve(100) == 8
    assert slots.reserve(1) == 0

    def woken() -> bool:
        was = nudge.is_set()
        nudge.clear()
        return was

    calls = []
    for _ in range(8):
        slots.release(1)
        calls.append(woken())
    assert calls == [True, False, False, True, False, False, False, True]
    with pytest.raises(Bug):
        slots.release(1)
