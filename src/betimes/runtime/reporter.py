"""Tells the service how attempts ended: many at once, again until it has answered.

A report is safe to repeat: the fence in its lease decides, and saying the same twice is fine. Until
it is answered the lease is kept alive, so an outage of seconds costs nobody a second attempt.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, NotFound, Unavailable
from betimes.rhythm import full_jitter
from betimes.runtime.attempt import Attempt
from betimes.runtime.line import Line
from betimes.sdk.errors import ApiError, ExpiredCredentials, InvalidCredentials, ScopeMissing
from betimes.telemetry import Outage, Telemetry
from betimes.wire.workers import ErrorTold, Reported, ReportOne

BATCH_MAX = 500
LINGER_SECONDS, ENOUGH = 0.003, 64
"""Few reports wait a moment for company: a request costs as much as many of them."""
PAUSE, PAUSE_MAX = timedelta(milliseconds=100), timedelta(seconds=3)
FATAL = (InvalidCredentials, ExpiredCredentials, ScopeMissing)
LOST = 409


class Item(NamedTuple):
    """One end to tell."""

    attempt: Attempt
    report: ReportOne


class Reporter:
    """A queue of ends, and those who carry them."""

    def __init__(
        self,
        *,
        line: Line,
        clock: Clock,
        roll: Callable[[], float],
        telemetry: Telemetry,
        told: Callable[[Attempt, Reported], None],
    ) -> None:
        self._line = line
        self._clock = clock
        self._roll = roll
        self._telemetry = telemetry
        self._told = told
        self._waiting: deque[Item] = deque()
        self._something = asyncio.Event()
        self._sending = 0
        self.settled = asyncio.Event()
        self.settled.set()
        self._outage = Outage(duty="worker.report", telemetry=telemetry)

    def put(self, attempt: Attempt, report: ReportOne) -> None:
        """An attempt has ended."""
        self._waiting.append(Item(attempt, report))
        self.settled.clear()
        self._something.set()

    async def run(self) -> None:
        """Tell until cancelled; several may do this side by side."""
        while True:
            await self._something.wait()
            if len(self._waiting) < ENOUGH:
                await self._clock.sleep(LINGER_SECONDS)
            await self.tick()

    async def tick(self) -> int:
        """Tell what waits; how many ends that were."""
        items = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
        if not self._waiting:
            self._something.clear()
        if items:
            self._sending += 1
            try:
                await self._tell(items)
            finally:
                self._sending -= 1
        if not self._waiting and not self._sending:
            self.settled.set()
        return len(items)

    async def _tell(self, items: Sequence[Item]) -> None:
        failures = 0
        while True:
            try:
                answers = await self._line.report([item.report for item in items])
            except Unavailable as fault:
                failures += 1
                self._outage.failed(fault)
                pause = full_jitter(failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
                await self._clock.sleep(pause.total_seconds())
            except FATAL:
                raise
            except ApiError as refusal:
                await self._refused(items, refusal)
                return
            except (FencedOut, NotFound):
                answers = [_lost(item) for item in items]
                self._settle(items, answers)
                return
            else:
                self._outage.ended()
                self._settle(items, answers)
                return

    def _settle(self, items: Sequence[Item], answers: Sequence[Reported]) -> None:
        for item, answer in zip(items, answers, strict=True):
            self._told(item.attempt, answer)

    async def _refused(self, items: Sequence[Item], refusal: ApiError) -> None:
        """One report that cannot be read must not hold up the others, nor its own run for ever."""
        if len(items) > 1:
            for item in items:
                await self._tell([item])
            return
        (item,) = items
        self._telemetry.event(
            "worker.report_refused", level="error", run=item.attempt.grant.run_id, error=refusal
        )
        if item.report.action == "fail":
            self._told(item.attempt, _lost(item))
            return
        told = ErrorTold(type="ReportRefused", message=str(refusal)[:1000])
        lease = item.report.lease_id
        fail = ReportOne(lease_id=lease, action="fail", error=told, retry="never")
        await self._tell([Item(item.attempt, fail)])


def _lost(item: Item) -> Reported:
    return Reported(status=LOST, lease_id=item.report.lease_id, code="lease_lost")
