"""The rhythm of a service: `async for _ in beat(clock, every=…, stopping=stopping): …`."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from betimes.domain.clock import Clock
from betimes.rhythm.race import first_of
from betimes.rhythm.stopping import Stopping

Roll = Callable[[], float]


def _middle() -> float:
    return 0.5


def beat(
    clock: Clock,
    *,
    every: timedelta,
    jitter: float = 0.0,
    roll: Roll = _middle,
    stopping: Stopping | None = None,
    nudge: asyncio.Event | None = None,
) -> "Beat":
    """Beats at once, then every period, until stopping is requested. See `Beat`."""
    return Beat(clock, every=every, jitter=jitter, roll=roll, stopping=stopping, nudge=nudge)


class Beat:
    """Counts 0, 1, 2, … in time.

    The period runs from beat to beat, not from the end of the work: work that lasts half a period
    does not slow the rhythm, work that lasts longer is followed by the next beat at once, and beats
    missed meanwhile are not made up for. `jitter` is the share of the period by which each wait may
    differ, up or down, as `roll` in [0, 1) says. A set `nudge` (a hint that there is work) calls
    the next beat early and is cleared by it.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        every: timedelta,
        jitter: float,
        roll: Roll,
        stopping: Stopping | None,
        nudge: asyncio.Event | None,
    ) -> None:
        if not 0.0 <= jitter <= 1.0:
            raise ValueError(f"jitter is a share of the period from 0 to 1, got {jitter}")
        self._clock = clock
        self._every = every.total_seconds()
        self._jitter = jitter
        self._roll = roll
        self._stopping = stopping
        self._nudge = nudge
        self._count = 0
        self._last_at = 0.0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> int:
        """The next beat, or the end of the loop when stopping is requested."""
        if self._count and not self._is_stopping():
            await self._wait()
        if self._is_stopping():
            raise StopAsyncIteration
        if self._nudge is not None:
            self._nudge.clear()
        self._last_at = self._clock.monotonic()
        self._count += 1
        return self._count - 1

    def _is_stopping(self) -> bool:
        return self._stopping is not None and self._stopping.requested

    async def _wait(self) -> None:
        period = self._every * (1.0 + self._jitter * (2.0 * self._roll() - 1.0))
        pause = max(0.0, self._last_at + period - self._clock.monotonic())
        if pause == 0.0 or (self._nudge is not None and self._nudge.is_set()):
            # Even a service that is always late lets others have their turn.
            await self._clock.sleep(0)
            return
        waits = [self._clock.sleep(pause)]
        waits += [self._stopping.wait()] if self._stopping is not None else []
        if self._nudge is not None:
            await first_of(*waits, self._nudge.wait())
        else:
            await first_of(*waits)
