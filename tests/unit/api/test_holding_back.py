"""Refusals do not grow with the clients that are refused."""

import pytest

from betimes.api.application import HELD_SECONDS_MAX, REFUSALS_PER_SECOND, held_for

HALF = 0.5


@pytest.mark.parametrize("held_back", [1, 50, REFUSALS_PER_SECOND // 2])
def test_few_are_held_back_as_long_as_was_said(held_back: int) -> None:
    assert held_for(HALF, held_back) == HALF


@pytest.mark.parametrize("held_back", [200, 400, 999])
def test_many_come_back_at_a_steady_rate(held_back: int) -> None:
    assert held_back / held_for(HALF, held_back) == pytest.approx(REFUSALS_PER_SECOND)


def test_nobody_is_held_back_for_long() -> None:
    assert held_for(HALF, 1_000_000) == HELD_SECONDS_MAX
    assert held_for(10.0, 1_000_000) == 10.0, "unless that was said"
