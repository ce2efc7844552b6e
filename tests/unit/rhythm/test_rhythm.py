"""Beats, stopping, racing and backing off, all by a clock that the test moves."""

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.domain.errors import Unavailable
from betimes.rhythm import Stopping, beat, first_of, full_jitter, within
from betimes.testing import ManualClock, Signal

SECOND = timedelta(seconds=1)


async def settle(clock: ManualClock, *, sleepers: int) -> None:
    """Let tasks run until that many wait for the clock."""
    for _ in range(1_000):
        if clock.sleepers == sleepers:
            return
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, waits for no time
    pytest.fail(f"expected {sleepers} sleepers, got {clock.sleepers}")


async def test_beats_come_at_once_and_then_every_period() -> None:
    clock, stopping, beats = ManualClock(), Stopping(), Signal[float]()

    async def service() -> None:
        async for _ in beat(clock, every=SECOND, stopping=stopping):
            beats.send(clock.monotonic())

    async with asyncio.TaskGroup() as group:
        group.create_task(service())
        assert await beats.wait() == 0.0
        for expected in (1.0, 2.0):
            await settle(clock, sleepers=1)
            clock.advance(1)
            assert await beats.wait() == expected
        stopping.request("enough")


async def test_the_period_counts_from_beat_to_beat_and_missed_beats_are_not_made_up() -> None:
    clock, stopping = ManualClock(), Stopping()
    seen: list[float] = []

    async def service() -> None:
        async for count in beat(clock, every=SECOND, stopping=stopping):
            seen.append(clock.monotonic())
            clock.advance((0.4, 3.5, 0.0)[min(count, 2)])
            if count == 2:
                stopping.request("enough")

    async with asyncio.TaskGroup() as group:
        group.create_task(service())
        await settle(clock, sleepers=1)
        clock.advance(0.6)
    assert seen == [0.0, 1.0, 4.5]


async def test_jitter_moves_each_wait_by_the_roll() -> None:
    clock, stopping = ManualClock(), Stopping()
    rolls = iter((0.0, 0.5, 0.75))
    beats = beat(clock, every=SECOND, jitter=0.5, roll=lambda: next(rolls), stopping=stopping)
    assert await anext(beats) == 0
    for wait in (0.5, 1.0, 1.25):
        async with asyncio.TaskGroup() as group:
            following = group.create_task(anext(beats))
            await settle(clock, sleepers=1)
            clock.advance(wait - 0.01)
            await settle(clock, sleepers=1)
            assert not following.done()
            clock.advance(0.01)


async def test_a_nudge_calls_the_next_beat_early() -> None:
    clock, stopping, nudge, beats = ManualClock(), Stopping(), asyncio.Event(), Signal[int]()

    async def service() -> None:
        async for count in beat(clock, every=SECOND, stopping=stopping, nudge=nudge):
            beats.send(count)

    async with asyncio.TaskGroup() as group:
        group.create_task(service())
        assert await beats.wait() == 0
        await settle(clock, sleepers=1)
        nudge.set()
        assert await beats.wait() == 1
        assert not nudge.is_set()
        await settle(clock, sleepers=1)
        stopping.request("enough")
    assert clock.monotonic() == 0.0


async def test_nothing_beats_once_stopping_is_requested() -> None:
    stopping = Stopping()
    stopping.request("before the start")
    assert [count async for count in beat(ManualClock(), every=SECOND, stopping=stopping)] == []


def test_a_silly_jitter_is_refused() -> None:
    with pytest.raises(ValueError, match="share of the period"):
        beat(ManualClock(), every=SECOND, jitter=1.5)


async def test_stopping_keeps_its_first_reason_and_hastening_implies_requesting() -> None:
    stopping = Stopping()
    assert not stopping.requested
    stopping.request("SIGTERM")
    stopping.hasten("SIGTERM again")
    await stopping.wait()
    await stopping.wait_hastened()
    assert (stopping.reason, stopping.requested, stopping.hastened) == ("SIGTERM", True, True)


async def test_the_first_to_finish_wins_and_the_others_are_given_up() -> None:
    given_up = False

    async def forever() -> None:
        nonlocal given_up
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            given_up = True
            raise

    async def nothing() -> None:
        return

    assert await first_of(forever(), nothing(), nothing()) == 1
    assert given_up


async def test_a_timeout_says_what_was_waited_for() -> None:
    with pytest.raises(Unavailable, match=r"shard\.renew took longer than 0\.001 s"):
        async with within(timedelta(milliseconds=1), "shard.renew"):
            await asyncio.Event().wait()


async def test_a_timeout_from_inside_is_left_as_it_is() -> None:
    with pytest.raises(TimeoutError, match="mine"):
        async with within(SECOND, "shard.renew"):
            raise TimeoutError("mine")


@given(
    st.integers(min_value=0, max_value=10_000),
    st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_backoff_is_never_longer_than_its_bound(failures: int, roll: float) -> None:
    wait = full_jitter(failures, first=SECOND, most=30 * SECOND, roll=roll)
    assert timedelta(0) <= wait <= 30 * SECOND


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (5, 16), (6, 30)])
def test_backoff_doubles_until_its_bound(failures: int, seconds: float) -> None:
    wait = full_jitter(failures, first=SECOND, most=30 * SECOND, roll=1.0)
    assert wait == timedelta(seconds=seconds)


async def test_a_beat_rests_while_nothing_is_found_and_is_called_by_what_is_due() -> None:
    clock, stopping, nudge = ManualClock(), Stopping(), asyncio.Event()
    beats, found, due = Signal[float](), [False] * 3 + [True] + [False] * 9, [float("inf")]

    async def service() -> None:
        beating = beat(
            clock,
            every=SECOND,
            rest=4 * SECOND,
            stopping=stopping,
            nudge=nudge,
            due_in=lambda: due[0] - clock.monotonic(),
        )
        async for _ in beating:
            beats.send(clock.monotonic())
            beating.passed(found=found.pop(0))

    async def next_after(seconds: float) -> float:
        await settle(clock, sleepers=1)
        clock.advance(seconds)
        return await beats.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(service())
        assert await beats.wait() == 0.0
        assert await next_after(2) == 2.0
        assert await next_after(4) == 6.0
        assert await next_after(4) == 10.0, "no longer than the bound, and something is found"
        assert await next_after(1) == 11.0
        due[0] = 14.5
        assert await next_after(2) == 13.0
        assert await next_after(1.5) == 14.5, "as soon as something is due"
        await settle(clock, sleepers=1)
        due[0] = float("inf")
        assert await next_after(1) == 15.5, "what is overdue comes with the short period"
        await settle(clock, sleepers=1)
        nudge.set()
        assert await beats.wait() == 15.5
        assert await next_after(2) == 17.5, "after a nudge the period begins anew"
        stopping.request("enough")
