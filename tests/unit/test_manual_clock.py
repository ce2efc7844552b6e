"""The tests' clock wakes sleepers in order and never moves by itself."""

import asyncio

import pytest

from betimes.testing import ManualClock


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    clock = ManualClock()
    woken: list[str] = []

    async def nap(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(nap("late", 3))
        group.create_task(nap("early", 1))
        await clock.sleep(0)
        await clock.sleep(0)
        clock.advance(0.5)
        await clock.sleep(0)
        assert woken == []
        assert clock.sleepers == 2
        clock.advance(5)

    assert woken == ["early", "late"]


def test_time_never_moves_backwards() -> None:
    with pytest.raises(ValueError, match="forward only"):
        ManualClock().advance(-1)
