"""The rhythm of a service: `async for _ in beat(clock, every=…, stopping=stopping): …`."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Self

from betimes.domain.clock import Clock
from betimes.rhythm.race import first_of
from betimes.rhythm.stopping import Stopping

Roll = Callable[[], float]
DueIn = Callable[[], float | None]
"""Seconds until something is known to be due; None when nothing is."""


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
    rest: timedelta | None = None,
    due_in: DueIn | None = None,
) -> "Beat":
    """Beats at once, then every period, until stopping is requested. See `Beat`."""
    return Beat(
        clock,
        every=every,
        jitter=jitter,
        roll=roll,
        stopping=stopping,
        nudge=nudge,
        rest=rest,
        due_in=due_in,
    )


class Beat:
    """Counts 0, 1, 2, … in time.

    The period runs from beat to beat, not from the end of the work: work that lasts half a period
    does not slow the rhythm, work that lasts longer is followed by the next beat at once, and beats
    missed meanwhile are not made up for. `jitter` is the share of the period by which each wait may
    differ, up or down, as `roll` in [0, 1) says. A set `nudge` (a hint that there is work) calls
    the next beat early and is cleared by it.

    With `rest` the period doubles after each pass that found nothing, up to that bound, and is the
    short one again after a pass that found something or a nudge. Only for duties that are nudged
    when work arrives: `rest` is how late it is found when that hint was lost. What is known to be
    due sooner, as `due_in` says, calls the next beat then, but never sooner than `every`.
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
        rest: timedelta | None = None,
        due_in: DueIn | None = None,
    ) -> None:
        if not 0.0 <= jitter <= 1.0:
            raise ValueError(f"jitter is a share of the period from 0 to 1, got {jitter}")
        self._clock = clock
        self._every = self._period = every.total_seconds()
        self._rest = self._every if rest is None else max(rest.total_seconds(), self._every)
        self._due_in = due_in
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
            if self._nudge.is_set():
                self._period = self._every
            self._nudge.clear()
        self._last_at = self._clock.monotonic()
        self._count += 1
        return self._count - 1

    def passed(self, *, found: bool) -> None:
        """Whether the pass of the last beat found something to do: the next one follows sooner."""
        self._period = self._every if found else min(2 * self._period, self._rest)

    def _is_stopping(self) -> bool:
        return self._stopping is not None and self._stopping.requested

    async def _wait(self) -> None:
        spread = 1.0 + self._jitter * (2.0 * self._roll() - 1.0)
        since = self._clock.monotonic() - self._last_at
        pause = max(0.0, self._period * spread - since)
        if self._due_in is not None and (due_in := self._due_in()) is not None:
            pause = min(pause, max(due_in, self._every * spread - since, 0.0))
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
