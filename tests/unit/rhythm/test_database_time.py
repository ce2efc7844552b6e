"""The time of the database, as a worker knows it between two answers."""

from datetime import UTC, datetime, timedelta

from betimes.rhythm import DatabaseTime
from betimes.testing import ManualClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Untold(ManualClock):
    """A clock that leaves it to the database to state the time."""

    def stated(self) -> None:
        return None


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_it_goes_on_between_answers() -> None:
    clock = Untold()
    time = DatabaseTime(clock=clock)
    time.observe(NOON)
    clock.advance(5)
    assert time.now() == after(5)


def test_an_answer_that_lay_around_does_not_make_it_late() -> None:
    """Frozen for three seconds between an answer and its hearing: stamps were as late as that."""
    clock = Untold()
    time = DatabaseTime(clock=clock)
    time.observe(NOON, asked_at=clock.monotonic())
    clock.advance(10)
    asked_at = clock.monotonic()
    clock.advance(3)
    time.observe(after(10), asked_at=asked_at)
    assert time.now() == after(13)


def test_an_answer_with_a_shorter_way_back_makes_it_better() -> None:
    clock = Untold()
    time = DatabaseTime(clock=clock)
    asked_at = clock.monotonic()
    clock.advance(3)
    time.observe(NOON, asked_at=asked_at)
    assert time.now() == NOON, "never ahead of the database"
    asked_at = clock.monotonic()
    clock.advance(0.01)
    time.observe(after(3.005), asked_at=asked_at)
    assert time.now() == after(3.005)


def test_what_the_thread_has_heard_counts_from_there() -> None:
    clock = Untold()
    time = DatabaseTime(clock=clock)
    heard_at = clock.monotonic()
    clock.advance(2)
    time.observe(NOON, asked_at=heard_at - 0.01, heard_at=heard_at)
    assert time.now() == after(2)


def test_a_clock_that_is_set_back_is_followed() -> None:
    clock = Untold()
    time = DatabaseTime(clock=clock)
    time.observe(NOON, asked_at=clock.monotonic())
    clock.advance(10)
    time.observe(after(-50), asked_at=clock.monotonic() - 0.01)
    assert time.now() == after(-50)


def test_clocks_of_different_speed_do_not_grow_apart() -> None:
    """Ours goes faster by a ten-thousandth: after a day it would be ahead by nine seconds."""
    clock = Untold()
    time = DatabaseTime(clock=clock)
    told = NOON
    time.observe(told, asked_at=clock.monotonic())
    for _ in range(24 * 60):
        asked_at = clock.monotonic()
        clock.advance(60 * 1.0001)
        told += timedelta(seconds=60)
        time.observe(told, asked_at=max(asked_at, clock.monotonic() - 0.05))
    assert abs(time.now() - told) < timedelta(seconds=0.1)
