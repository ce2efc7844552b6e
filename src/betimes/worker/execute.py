"""The life of a run in this process, top to bottom.

    carry     take one run after the other
    begin     not cancelled? not too late? then call its handler
    step      most handlers end without ever waiting: no task is made for them
    suspend   one that waits keeps the task, and the rest is carried on by another
    end       what it returned or raised becomes an outcome
    report    a plain success goes the fast way, everything else is decided upon

One task carries many runs. The first step of a handler is made inside that task, so that
`asyncio.current_task`, timeouts and task groups work in it as everywhere; if the handler is still
not done after the step, the task is its own from then on and a new task carries the rest. Every
handler sees a copy of the context variables, and nobody sees what another one has set.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextvars import Context as Variables
from contextvars import copy_context
from datetime import datetime
from itertools import chain
from types import coroutine as generator_coroutine
from typing import Any

from betimes.domain.clock import Clock
from betimes.domain.errors import LeaseOver
from betimes.domain.ids import TenantId
from betimes.domain.leased import WantedRun
from betimes.domain.outcome import Outcome, Released, Succeeded
from betimes.executing.returned import failure_of, large_result, outcome_of
from betimes.rhythm import DatabaseTime, first_of
from betimes.telemetry import Telemetry
from betimes.worker.context import Context
from betimes.worker.handlers import Call
from betimes.worker.held import HeldParcel
from betimes.worker.metrics import Metrics
from betimes.worker.plan import UNHANDLED, Plan
from betimes.worker.row import Moment, Row
from betimes.worker.running import GIVEN_BACK, Running, Runnings, Stop, current_task
from betimes.worker.signals import NO_SIGNALS, WorkerSignals
from betimes.worker.slots import Slots
from betimes.worker.threaded import ThreadedAttempts
from betimes.worker.threads import InThread
from betimes.worker.transport import Reports

LOST = object()
"""What comes of a handler that has looked at its lease and found it over: nothing."""
PARKED_MAX = 10_000
"""Most attempts that wait without a place: each of them is still renewed and held in memory."""
PATIENCE_SECONDS = 0.25
"""How long what was leased ahead waits for a place, while nothing of it begins."""

Keep = Callable[[TenantId, bytes], Awaitable[str | None]]
"""Keeps a large result; what it can be referred to by, None if it cannot be kept."""
Work = Iterator[tuple[WantedRun, HeldParcel, Plan]]
"""Runs to execute, each with the parcel it came in and the way to execute it."""


class Executor:
    """Executes runs and hands their outcomes to the reporter."""

    def __init__(
        self,
        *,
        reporter: Reports,
        slots: Slots,
        clock: Clock,
        time: DatabaseTime,
        telemetry: Telemetry,
        group: asyncio.TaskGroup,
        signals: WorkerSignals = NO_SIGNALS,
        keep: Keep | None = None,
    ) -> None:
        self._reporter = reporter
        self._keep = keep
        self._parked = 0
        self._slots = slots
        self._clock = clock
        self._time = time
        self._group = group
        self._signals = signals
        self._metrics = Metrics(telemetry)
        self.running = Runnings(clock=clock, give_up=self._give_up)
        self._threaded = ThreadedAttempts(
            running=self.running,
            reporter=reporter,
            slots=slots,
            time=time,
            row=self._new_row,
            signals=signals,
            group=group,
            settle=self._settle,
            is_large=self._is_large,
            keep=self._kept,
        )

    def start(self, work: Work) -> None:
        """Carry runs, each of which has its place reserved."""
        self._group.create_task(self._carry(work), name="worker.carry")

    async def _carry(self, work: Work) -> None:
        moment = Moment(self._clock, self._time)
        row, slots = self._new_row(), self._slots
        for run, parcel, plan in work:
            if slots.begun >= slots.total:
                row.close()
                if not await self._has_room():
                    self._give_back(chain([(run, parcel, plan)], work))
                    return
                moment.begin_turn()
            if self._is_over(run, parcel, plan, moment):
                continue
            context = Context(run, parcel.leased, plan.spec, moment.now, self._time.now)
            context.held_as(parcel, self._clock)
            variables = copy_context()
            if isinstance(plan.call, InThread) and plan.call.hooks.prepare(context):
                self._threaded.begin(run, parcel, plan, context, variables, plan.call)
                continue
            handler, answer = _first_step(plan.call, context, variables)
            if answer is LOST:
                self._reporter.lose(parcel, found="start")
                self._slots.release(1)
                continue
            if handler is None and answer is not None and self._is_large(answer):
                row.close()
                self.start(work)
                await self._suspend(Running(run, parcel, plan, context), _value(answer))
                return
            if handler is not None:
                row.close()
                self.start(work)
                rest = _resumed(handler, variables, answer)
                await self._suspend(Running(run, parcel, plan, context), rest)
                return
            moment.passes()
            if answer is None and plan.plain:
                row.add(run, parcel, context.started_at, moment.now)
            else:
                self._end(run, parcel, plan, context.started_at, answer, moment.now)
                self._slots.release(1)
            if moment.turn_is_over:
                row.close()
                await self._clock.sleep(0)
                moment.begin_turn()
        row.close()

    async def _has_room(self) -> bool:
        """Whether something that was leased ahead may begin before long."""
        until = self._clock.monotonic() + PATIENCE_SECONDS
        while self._slots.full and not self.running.closing:
            left = until - self._clock.monotonic()
            if left <= 0:
                return False
            self._slots.room.clear()
            await first_of(self._slots.room.wait(), self._clock.sleep(left))
        return not self.running.closing

    def _give_back(self, work: Work) -> None:
        """What was leased ahead and cannot begin soon is for others, as if nobody had had it."""
        self._slots.forget()
        now = self._time.now()
        for run, parcel, plan in work:
            self._reporter.attempted(run, parcel, plan, Released(), now, now)
            self._slots.give_back(1)

    def _new_row(self) -> Row:
        return Row(self._reporter, self._slots, self._metrics)

    def _is_over(self, run: WantedRun, parcel: HeldParcel, plan: Plan, moment: Moment) -> bool:
        """Whether the run is not to be executed at all; its end is reported then."""
        if not parcel.is_ours(moment.at):
            self._reporter.lose(parcel, found="start")
            self._slots.release(1)
            return True
        if not self._reporter.refuses(run, parcel, plan, moment.now):
            return False
        self._slots.release(1)
        return True

    async def _suspend(self, running: Running, rest: Awaitable[object]) -> None:
        """Wait for a handler that waits. From here on this asyncio task belongs to it alone."""
        me = current_task()
        report = True
        self._slots.enter()
        running.context.on_park(self._park)
        self.running.add(running)
        self._signals.suspended(len(self.running))
        try:
            returned = await rest
            if self._is_large(returned):
                returned = await self._kept(running, returned)
        except asyncio.CancelledError as error:
            if running.stop is None and me.cancelling():
                raise  # not one of our causes: the worker itself is being ended
            while me.cancelling():
                me.uncancel()
            returned = running.outcome_of_stop() or failure_of(error)
        except LeaseOver:
            # It has looked at its lease before it sent or began anything.
            self._reporter.lose(running.parcel, found="start")
            report, returned = False, None
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- an outcome like any other
            returned = GIVEN_BACK if running.stop is Stop.RELEASE else failure_of(error)
        finally:
            self.running.remove(running)
            if running.context.parked:
                self._parked -= 1
            elif not running.context.lingers:
                self._slots.end(1)
        if report:
            self._settle(running, returned)

    def _park(self, context: Context) -> bool:
        """An attempt that only waits for somebody else gives its place to another one."""
        if not context.parked and self._parked < PARKED_MAX:
            context.parked = True
            self._parked += 1
            self._slots.end(1)
        return context.parked

    def _is_large(self, returned: object) -> bool:
        return self._keep is not None and large_result(returned) is not None

    async def _kept(self, running: Running, returned: object) -> object:
        """A result that is too large for its row, by reference."""
        content = large_result(returned)
        if self._keep is None or content is None:
            return returned
        reference = await self._keep(running.parcel.leased.tenant, content)
        if reference is None:
            return Succeeded(content)
        return Succeeded(b'{"result_ref":"%s","bytes":%d}' % (reference.encode(), len(content)))

    def _settle(self, running: Running, returned: object) -> None:
        """Report an attempt that had a task of its own, once, unless its lease is gone."""
        if running.settled or running.stop is Stop.LOST:
            return
        running.settled = True
        started_at, now = running.context.started_at, self._time.now()
        self._end(running.run, running.parcel, running.plan, started_at, returned, now)

    def _give_up(self, running: Running) -> None:
        """The grace is over: report without waiting for it to end."""
        outcome = running.outcome_of_stop()
        if outcome is not None:
            self._settle(running, outcome)

    def _end(
        self,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        started_at: datetime,
        returned: object,
        now: datetime,
    ) -> None:
        """Hand over what came of an attempt."""
        outcome: Outcome | None
        if returned is UNHANDLED:
            outcome = None
        else:
            outcome = GIVEN_BACK if returned is GIVEN_BACK else outcome_of(returned)
            self._metrics.ended(run, outcome, started_at, now)
        self._reporter.attempted(run, parcel, plan, outcome, started_at, now)


async def _value(value: object) -> object:
    return value


def _first_step(
    call: Call, context: Context, variables: Variables
) -> tuple[Coroutine[Any, Any, object] | None, Any]:
    """Call a handler: the coroutine with what it waits for, or None with what came of it."""
    try:
        handler = call(context)
        return handler, variables.run(handler.send, None)
    except StopIteration as stop:
        return None, stop.value
    except LeaseOver:
        return None, LOST
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 -- an outcome
        return None, failure_of(error)


@generator_coroutine
def _resumed(
    handler: Coroutine[Any, Any, object], variables: Variables, waits_for: object
) -> Generator[object, Any, object]:
    """A coroutine that has made its first step already, as something to await."""
    while True:
        try:
            sent = yield waits_for
        except GeneratorExit:
            handler.close()
            raise
        except BaseException as error:  # noqa: BLE001 -- passed on, whatever it is
            step: Callable[[Any], Any] = handler.throw
            argument: Any = error
        else:
            step, argument = handler.send, sent
        try:
            waits_for = variables.run(step, argument)
        except StopIteration as stop:
            return stop.value
