"""A database that is away is asked now and then, and found at once when it is back."""

import pytest

from betimes.domain.errors import Unavailable
from betimes.store.gate import PAUSE_MAX, Gate
from betimes.testing import ManualClock


def is_open(gate: Gate) -> bool:
    try:
        gate.pass_through()
    except Unavailable:
        return False
    return True


def test_a_failure_closes_the_gate_for_a_moment() -> None:
    clock = ManualClock()
    gate = Gate(clock=clock, roll=lambda: 0.5)
    gate.pass_through()
    gate.close()
    with pytest.raises(Unavailable):
        gate.pass_through()
    clock.advance(0.025)
    gate.pass_through()


def test_moments_grow_to_a_second_and_no_further() -> None:
    """Ten minutes of many loops that ask all the time: few get through to knock."""
    clock = ManualClock()
    gate = Gate(clock=clock, roll=lambda: 0.5)
    knocks = 0
    for _ in range(10 * 60 * 100):
        clock.advance(0.01)
        if is_open(gate):
            knocks += 1
            gate.close()
    assert 1_000 < knocks < 1_300  # about two a second

    clock.advance(PAUSE_MAX)
    gate.pass_through()
    gate.open()
    gate.close()
    clock.advance(0.025)
    gate.pass_through()
