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
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextvars import Context as Variables
from contextvars import copy_context
from datetime import datetime
from types import coroutine as generator_coroutine
from typing import Any, NamedTuple

from betimes.domain.clock import Clock
from betimes.domain.ids import ParcelId
from betimes.domain.outcome import Failed, Outcome, Succeeded, TimedOut, kind_of
from betimes.domain.states import RunState
from betimes.rhythm.database_time import DatabaseTime
from betimes.store.finish import Success
from betimes.store.parcels import WantedRun
from betimes.telemetry import Telemetry
from betimes.worker.context import Context
from betimes.worker.finish import Reporter
from betimes.worker.held import HeldParcel
from betimes.worker.plans import Plan
from betimes.worker.returned import failure_of, outcome_of
from betimes.worker.running import Running, Runnings, Stop
from betimes.worker.settle import RUN_CANCELLED, START_DEADLINE_PASSED, settle, unstarted
from betimes.worker.signals import NO_SIGNALS, WorkerSignals
from betimes.worker.slots import Slots

STAMP_SECONDS = 0.001
"""Times are noted to the millisecond; runs that begin within the same one share the note."""
TURN_SECONDS = 0.005
"""How long runs that never wait may keep the event loop to themselves."""


class Task(NamedTuple):
    """One run to execute."""

    run: WantedRun
    parcel: HeldParcel
    plan: Plan


class Executor:
    """Executes runs and hands their outcomes to the reporter."""

    def __init__(
        self,
        *,
        reporter: Reporter,
        slots: Slots,
        clock: Clock,
        time: DatabaseTime,
        telemetry: Telemetry,
        group: asyncio.TaskGroup,
        roll: Callable[[], float],
        new_parcel_id: Callable[[HeldParcel], ParcelId],
        signals: WorkerSignals = NO_SIGNALS,
    ) -> None:
        self._reporter = reporter
        self._slots = slots
        self._clock = clock
        self._time = time
        self._group = group
        self._roll = roll
        self._new_parcel_id = new_parcel_id
        self._signals = signals
        self._lag = telemetry.histogram("betimes_start_lag_seconds")
        self._seconds = telemetry.histogram("betimes_run_seconds")
        self._failures = telemetry.counter("betimes_attempt_failures_total")
        self._retries = telemetry.counter("betimes_retries_total")
        self.running = Runnings(clock=clock, give_up=self._give_up)

    def start(self, work: Iterator[Task]) -> None:
        """Carry runs, each of which has its place reserved."""
        self._group.create_task(self._carry(work), name="worker.carry")

    async def _carry(self, work: Iterator[Task]) -> None:
        clock, time = self._clock, self._time
        turn = stamped = clock.monotonic()
        now = time.now()
        for task in work:
            if not self._begins(task, now):
                continue
            context = Context(task.run, task.parcel.leased, task.plan.spec, now, time.now)
            handler = task.plan.call(context)
            variables = copy_context()
            try:
                waits_for = variables.run(handler.send, None)
            except StopIteration as stop:
                returned = stop.value
            except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 -- an outcome
                returned = failure_of(error)
            else:
                self.start(work)
                await self._suspend(task, context, _resumed(handler, variables, waits_for))
                return
            at = clock.monotonic()
            if at - stamped > STAMP_SECONDS:
                stamped, now = at, time.now()
            self._end(task, context, returned, now)
            self._slots.release(1)
            if at - turn > TURN_SECONDS:
                await clock.sleep(0)
                turn = clock.monotonic()
                stamped, now = turn, time.now()

    def _begins(self, task: Task, now: datetime) -> bool:
        """Whether the run is to be executed at all; if not, its end is reported."""
        run, parcel, plan = task
        if parcel.lost:
            self._slots.release(1)
            return False
        if run.cancel_at is not None:
            state, reason = RunState.CANCELLED, RUN_CANCELLED
        elif plan.start_deadline is not None and run.due_at + plan.start_deadline < now:
            state, reason = RunState.EXPIRED, START_DEADLINE_PASSED
        else:
            self._lag.observe((now - run.due_at).total_seconds())
            if run.attempt:
                self._retries.add()
            return True
        ending = unstarted(run, parcel.leased, plan, state=state, reason=reason, now=now)
        self._reporter.ended(parcel, ending)
        self._slots.release(1)
        return False

    async def _suspend(
        self, task: Task, context: Context, rest: Coroutine[Any, Any, object]
    ) -> None:
        """Wait for a handler that waits. From here on this asyncio task belongs to it alone."""
        me = asyncio.current_task()
        assert me is not None  # noqa: S101 -- for the type checker: only tasks come here
        run, parcel, plan = task
        running = Running(run=run, parcel=parcel, plan=plan, context=context, task=me)
        self.running.add(running)
        self._signals.suspended(len(self.running))
        report = True
        try:
            returned = await rest
        except asyncio.CancelledError as error:
            if running.stop is None and me.cancelling():
                raise  # not one of our causes: the worker itself is being ended
            while me.cancelling():
                me.uncancel()
            report = running.stop is not Stop.RELEASE
            returned = running.outcome_of_stop() or failure_of(error)
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- an outcome
            report = running.stop is not Stop.RELEASE
            returned = failure_of(error)
        finally:
            self.running.remove(running)
            if not context.lingers:
                self._slots.release(1)
        if report:
            self._settle(running, returned)

    def _settle(self, running: Running, returned: object) -> None:
        """Report an attempt that had a task of its own, once, unless its lease is gone."""
        if running.settled or running.stop is Stop.LOST:
            return
        running.settled = True
        task = Task(running.run, running.parcel, running.plan)
        self._end(task, running.context, returned, self._time.now())

    def _give_up(self, running: Running) -> None:
        """The grace is over: report without waiting for it to end."""
        outcome = running.outcome_of_stop()
        if outcome is not None:
            self._settle(running, outcome)

    def _end(self, task: Task, context: Context, returned: object, now: datetime) -> None:
        """The fast way for a plain success; any other outcome is decided upon."""
        run, parcel, plan = task
        started_at = context.started_at
        self._seconds.observe((now - started_at).total_seconds())
        if returned is None and plan.plain:
            attempt = run.attempt + 1
            self._reporter.succeeded(
                parcel, Success(run.id, parcel.leased.id, attempt, started_at, now, None)
            )
            return
        outcome = outcome_of(returned)
        if isinstance(outcome, Succeeded) and plan.plain:
            attempt, result = run.attempt + 1, outcome.result
            self._reporter.succeeded(
                parcel, Success(run.id, parcel.leased.id, attempt, started_at, now, result)
            )
            return
        self._count(outcome)
        ending = settle(
            outcome,
            run=run,
            parcel=parcel.leased,
            plan=plan,
            started_at=started_at,
            now=now,
            roll=self._roll(),
            parcel_id=self._new_parcel_id(parcel),
        )
        self._reporter.ended(parcel, ending)

    def _count(self, outcome: Outcome) -> None:
        if isinstance(outcome, Failed | TimedOut):
            self._failures.add(1, **{"class": kind_of(outcome).name.lower()})


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
