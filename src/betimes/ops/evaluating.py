"""Evaluating schedules that somebody sends or has stored, without holding up the event loop.

What is cheap, and nearly everything is, is done at once. What takes more steps than that is done
again in a thread, with the whole budget of one evaluation, one at a time: more threads would only
take the interpreter from the event loop more often. Between many evaluations of one request
others have their turn.
"""

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from betimes.domain.errors import TooExpensive
from betimes.schedule import Budget

INLINE_STEPS_MAX = 2_000
"""Steps that an evaluation may take on the event loop: some two milliseconds."""

REQUEST_STEPS_MAX = 200_000
"""Steps that all evaluations of one request may take in the thread: some tenths of a second."""

STEPS_EACH = 20
"""What an evaluation costs at least, for what is around it."""

T = TypeVar("T")

_beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evaluating")
_long = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evaluating-many")


async def beside(work: Callable[[], T]) -> T:
    """Do something in the thread for evaluations."""
    return await asyncio.get_running_loop().run_in_executor(_beside, work)


async def beside_many(work: Callable[[], T]) -> T:
    """The same for what evaluates the schedules of many jobs and may take seconds."""
    return await asyncio.get_running_loop().run_in_executor(_long, work)


class Turn:
    """Awaited, it lets everything else on the event loop have its turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Evaluations:
    """The evaluations of one request."""

    __slots__ = ("_beside", "_taken")

    def __init__(self) -> None:
        self._taken = 0
        self._beside = 0

    async def run(self, work: Callable[[Budget], T]) -> T:
        """What some work on a budget gives; it is begun again where the first try is too short.

        Raises:
            TooExpensive: it takes more steps than an evaluation may take, or all evaluations of
                the request take more than they may together.

        """
        used_up = self._beside >= REQUEST_STEPS_MAX
        # What was let try on the loop a thousand times in vain would hold it up as well.
        budget = Budget(INLINE_STEPS_MAX // 10 if used_up else INLINE_STEPS_MAX)
        try:
            found = work(budget)
        except TooExpensive:
            self._taken = 0
            if used_up:
                await Turn()
                raise TooExpensive(
                    "expected the schedules of one request to take at most "
                    f"{REQUEST_STEPS_MAX} steps together; send fewer of them at once"
                ) from None
            return await self._run_beside(work)
        self._taken += STEPS_EACH + budget.spent
        if self._taken > INLINE_STEPS_MAX:
            self._taken = 0
            await Turn()
        return found

    async def _run_beside(self, work: Callable[[Budget], T]) -> T:
        budget = Budget()
        try:
            return await beside(lambda: work(budget))
        finally:
            self._beside += budget.spent


async def evaluated(work: Callable[[Budget], T]) -> T:
    """One evaluation; see `Evaluations.run`."""
    return await Evaluations().run(work)
