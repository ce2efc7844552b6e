"""Nothing that is evaluated holds the event loop for long: judged by steps, not by time."""

import asyncio
from threading import current_thread

import pytest

from betimes.domain.errors import TooExpensive
from betimes.ops.evaluating import (
    INLINE_STEPS_MAX,
    REQUEST_STEPS_MAX,
    Evaluations,
    Turn,
    evaluated,
)
from betimes.schedule import Budget
from betimes.schedule.bounds import EVALUATION_STEPS_MAX


async def test_what_is_cheap_is_done_at_once() -> None:
    def work(budget: Budget) -> str:
        budget.spend(100)
        return current_thread().name

    assert await evaluated(work) == current_thread().name


async def test_what_is_not_cheap_is_done_beside_the_event_loop() -> None:
    """The first try ends with the steps that the loop may give; the second has them all."""
    tried: list[int] = []

    def work(budget: Budget) -> str:
        tried.append(budget.steps)
        budget.spend(INLINE_STEPS_MAX + 1)
        return current_thread().name

    assert (await evaluated(work)).startswith("evaluating")
    assert tried == [INLINE_STEPS_MAX, EVALUATION_STEPS_MAX]


async def test_what_costs_more_than_an_evaluation_may_is_refused() -> None:
    with pytest.raises(TooExpensive):
        await evaluated(lambda budget: budget.spend(EVALUATION_STEPS_MAX + 1))


@pytest.mark.parametrize("steps", [1, 150, INLINE_STEPS_MAX])
async def test_others_have_their_turn_between_many_evaluations(steps: int) -> None:
    """After so many steps at most, whatever each of them costs."""
    spent = longest = 0
    ended = False

    async def others() -> None:
        nonlocal spent, longest
        while not ended:
            longest, spent = max(longest, spent), 0
            await Turn()

    def work(budget: Budget) -> None:
        nonlocal spent
        budget.spend(steps)
        spent += steps

    async with asyncio.TaskGroup() as group:
        group.create_task(others())
        evaluations = Evaluations()
        for _ in range(1_000):
            await evaluations.run(work)
        ended = True
    assert 0 < longest <= 2 * INLINE_STEPS_MAX


async def test_all_evaluations_of_a_request_are_bounded_together() -> None:
    """A thousand schedules, each of which is just about affordable, are not."""
    spent = 0

    def work(budget: Budget) -> None:
        nonlocal spent
        before = budget.left
        try:
            budget.spend(EVALUATION_STEPS_MAX)
        finally:
            spent += min(before, EVALUATION_STEPS_MAX)

    evaluations = Evaluations()
    for _ in range(REQUEST_STEPS_MAX // EVALUATION_STEPS_MAX):
        await evaluations.run(work)
    for _ in range(900):
        with pytest.raises(TooExpensive, match="send fewer"):
            await evaluations.run(work)
    assert spent < 3 * REQUEST_STEPS_MAX
    await evaluations.run(lambda budget: budget.spend(10))
