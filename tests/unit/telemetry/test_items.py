"""One item's failure is that item's."""

import pytest

from betimes.domain.errors import Contended, NotFound, Unavailable
from betimes.telemetry import Items, Recorder, Telemetry
from betimes.testing import ManualClock


class Work:
    """Fails for the items it is told to."""

    def __init__(self, **failing: Exception) -> None:
        self.failing = failing
        self.tried: list[str] = []

    async def __call__(self, item: str) -> str:
        self.tried.append(item)
        if item in self.failing:
            raise self.failing[item]
        return item.upper()


async def test_the_others_go_on_and_the_failure_is_told_with_its_item(clock: ManualClock) -> None:
    recorder = Recorder()
    items = Items(duty="d", telemetry=Telemetry(clock=clock, handlers=[recorder]))
    work = Work(b=NotFound("gone"), c=Contended("busy"))
    assert await items.each("abcd", work) == ["A", "D"]
    told = [(event.metadata["item"], event.level) for event in recorder.events]
    assert told == [("b", "error"), ("c", "error")]
    assert items.postponed == {"b", "c"}


async def test_an_item_that_keeps_failing_is_tried_less_and_less(clock: ManualClock) -> None:
    items = Items(duty="d", telemetry=Telemetry(clock=clock), first_wait=10, longest_wait=30)
    work = Work(b=KeyError("ours"))
    waits = []
    for second in range(120):
        before = len(work.tried)
        await items.each("b", work)
        if len(work.tried) > before:
            waits.append(second)
        clock.advance(1)
    assert waits == [0, 10, 30, 60, 90]
    work.failing.clear()
    assert await items.each("b", work) == ["B"]
    assert not items.postponed


async def test_an_outage_is_no_items_fault(clock: ManualClock) -> None:
    items = Items(duty="d", telemetry=Telemetry(clock=clock))
    with pytest.raises(Unavailable):
        await items.each("ab", Work(a=Unavailable("away")))
    assert not items.postponed
