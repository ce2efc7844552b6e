"""How much is leased ahead."""

import asyncio

from betimes.worker.slots import AHEAD_MAX, MOMENT_SECONDS, Slots


def busy(total: int, ended: int, seconds: float) -> Slots:
    """Slots in which so many runs have ended in so many seconds."""
    slots = Slots(total, enough=1, nudge=asyncio.Event())
    slots.look(0.0)
    for _ in range(ended):
        slots.release(slots.reserve(1))
    slots.look(seconds)
    return slots


def test_as_much_as_was_done_in_a_moment() -> None:
    slots = busy(10, 100, MOMENT_SECONDS)
    assert slots.open == 100
    assert slots.enough == 25
    assert slots.reserve(1_000) == 10
    assert slots.reserve(1_000, ahead=True) == 90
    assert slots.reserve(1_000, ahead=True) == slots.open == 0


def test_long_runs_leave_nothing_to_lease_ahead_for() -> None:
    assert busy(10, 10, MOMENT_SECONDS).ahead == 0
    assert busy(10, 100, 1.0).ahead == 0


def test_there_is_a_most() -> None:
    assert busy(10, 20 * AHEAD_MAX, MOMENT_SECONDS).open == AHEAD_MAX
    assert busy(2 * AHEAD_MAX, 20 * AHEAD_MAX, MOMENT_SECONDS).ahead == 0


def test_places_that_were_not_needed_say_nothing() -> None:
    slots = Slots(10, enough=1, nudge=asyncio.Event())
    slots.look(0.0)
    for _ in range(100):
        slots.give_back(slots.reserve(10))
    slots.look(MOMENT_SECONDS)
    assert slots.ahead == 0
