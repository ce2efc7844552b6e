"""Attempts in threads, many at a time.

An attempt that waits on the event loop has an asyncio task of its own. One in a thread needs none:
its end is called back. Only where something has to be awaited after it (what it said is told before
its end is, a large result is kept elsewhere) a task is made for the rest.

    begin      the call goes into the line of the threads; the attempt can be stopped from now on
    ended      what came of it; successes without consequences are taken together
    stopped    nobody waits for it any more: it is reported, and its place is free when it ends
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context as Variables
from datetime import datetime

from betimes.domain.errors import LeaseOver
from betimes.domain.leased import WantedRun
from betimes.executing.returned import failure_of
from betimes.executing.threads import Call
from betimes.rhythm import DatabaseTime
from betimes.worker.context import Context
from betimes.worker.held import HeldParcel
from betimes.worker.plan import Plan
from betimes.worker.row import Row
from betimes.worker.running import GIVEN_BACK, Running, Runnings, Stop
from betimes.worker.signals import WorkerSignals
from betimes.worker.slots import Slots
from betimes.worker.threads import InThread
from betimes.worker.transport import Reports


class ThreadedAttempts:
    """Begins attempts in threads and hears of their ends."""

    def __init__(
        self,
        *,
        running: Runnings,
        reporter: Reports,
        slots: Slots,
        time: DatabaseTime,
        row: Callable[[], Row],
        signals: WorkerSignals,
        group: asyncio.TaskGroup,
        settle: Callable[[Running, object], None],
        is_large: Callable[[object], bool],
        keep: Callable[[Running, object], Awaitable[object]],
    ) -> None:
        self._running = running
        self._reporter = reporter
        self._slots = slots
        self._time = time
        self._row = row
        self._signals = signals
        self._group = group
        self._settle = settle
        self._is_large = is_large
        self._keep = keep
        self._loop = asyncio.get_running_loop()
        self._ended: tuple[Row, datetime] | None = None
        """The successes of this turn of the event loop, and the time that they share."""

    def begin(
        self,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        context: Context,
        variables: Variables,
        way: InThread,
    ) -> None:
        """Have it called in a thread; its hooks are prepared, and its place is reserved."""
        attempt = ThreadedAttempt(self, run, parcel, plan, context, way)
        self._slots.enter()
        self._running.add(attempt.running)
        self._signals.suspended(len(self._running))
        way.pool.submit(Call(way.function, context, variables, _ended, attempt))

    def ended(self, attempt: "ThreadedAttempt", value: object, fault: BaseException | None) -> None:
        """Its thread is done with it, and somebody still waits for it."""
        running = attempt.running
        self._running.remove(running)
        self._slots.leave()
        if isinstance(fault, LeaseOver):
            # It has looked at its lease before it began.
            self._slots.release(1)
            self._reporter.lose(running.parcel, found="start")
            return
        rest = attempt.way.hooks.conclude(running.context)
        if value is None and fault is None and rest is None and _is_plain(running):
            row, now = self._ended or self._begin_row()
            running.settled = True
            row.add(running.run, running.parcel, running.context.started_at, now)
            return
        self._slots.release(1)
        returned = value
        if fault is not None:
            returned = GIVEN_BACK if running.stop is Stop.RELEASE else failure_of(fault)
        self._conclude(running, returned, rest)

    def stopped(self, attempt: "ThreadedAttempt") -> None:
        """Nobody waits for it any more."""
        if attempt.done():
            return
        running = attempt.running
        attempt.over = running.context.lingers = True
        self._running.remove(running)
        outcome = running.outcome_of_stop()
        if outcome is None:
            running.settled = True  # nothing is reported; what goes with it ends all the same
        self._conclude(running, outcome, attempt.way.hooks.conclude(running.context))

    def _conclude(self, running: Running, returned: object, rest: Awaitable[None] | None) -> None:
        if rest is None and not self._is_large(returned):
            self._settle(running, returned)
            return
        waiting = self._wait(running, returned, rest)
        task = self._group.create_task(waiting, name="worker.conclude")
        self._running.concluding.add(task)
        task.add_done_callback(self._running.concluding.discard)

    async def _wait(self, running: Running, returned: object, rest: Awaitable[None] | None) -> None:
        if rest is not None:
            await rest
        self._settle(running, await self._keep(running, returned))

    def _begin_row(self) -> tuple[Row, datetime]:
        self._ended = self._row(), self._time.now()
        self._loop.call_soon(self._close_row)
        return self._ended

    def _close_row(self) -> None:
        if self._ended is not None:
            self._ended[0].close()
            self._ended = None


class ThreadedAttempt:
    """One of them; it stands where others have their asyncio task."""

    __slots__ = ("_home", "over", "running", "way")

    def __init__(
        self,
        home: ThreadedAttempts,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        context: Context,
        way: InThread,
    ) -> None:
        self._home = home
        self.way = way
        self.over = False
        """Whether its end was taken note of."""
        self.running = Running(run, parcel, plan, context, self)

    def done(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.over

    def cancel(self) -> None:
        """Stop waiting for it, soon; the thread goes on."""
        asyncio.get_running_loop().call_soon(self._home.stopped, self)

    def ended(self, value: object, fault: BaseException | None) -> None:
        """Its thread is done with it."""
        if not self.over:
            self.over = True
            self._home.ended(self, value, fault)


def _ended(call: Call, value: object, fault: BaseException | None) -> None:
    attempt: ThreadedAttempt = call.companion
    attempt.ended(value, fault)


def _is_plain(running: Running) -> bool:
    """Whether its success has no consequences, and is still wanted."""
    return running.plan.plain and not running.settled and running.stop is not Stop.LOST
