"""Ends of attempts on their way to the service over HTTP: many at once, until it has answered.

Successes go as sets, everything else one by one; what becomes of it is decided where it is written.
A report is safe to repeat: the fence in its lease decides, and saying the same twice is fine. Until
it is answered the lease is kept alive, so an outage of seconds costs nobody a second attempt.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from betimes.domain.clock import Clock
from betimes.domain.errors import FencedOut, NotFound, Unavailable
from betimes.domain.ids import RunId, to_text
from betimes.domain.leased import LeasedParcel, Streak, WantedRun
from betimes.domain.outcome import (
    Cancelled,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from betimes.rhythm import full_jitter
from betimes.runtime.dead import DeadRun
from betimes.runtime.line import Grant, Line
from betimes.runtime.outcomes import REASON_MAX
from betimes.sdk.errors import (
    ApiError,
    ExpiredCredentials,
    InvalidCredentials,
    ScopeMissing,
    TenantSuspended,
)
from betimes.telemetry import Outage, Telemetry
from betimes.wire import parcels as shapes
from betimes.wire import workers as wire
from betimes.worker.held import HeldParcel, HeldParcels
from betimes.worker.plan import Plan

BYTES_MAX = 4 << 20
"""Most bytes of results and errors in one request."""
LINGER_SECONDS, ENOUGH = 0.003, 64
"""Few ends wait a moment for company: a request costs as much as many of them."""
END_BYTES = 200
"""What an end weighs besides its result and its error."""
PAUSE, PAUSE_MAX = timedelta(milliseconds=100), timedelta(seconds=3)
FATAL = (InvalidCredentials, ExpiredCredentials, ScopeMissing)
GOES = "the worker goes"


class HttpParcel(HeldParcel):
    """A parcel that was leased over HTTP."""

    __slots__ = ("attempt", "checkpoints", "pending", "token")

    def __init__(
        self, leased: LeasedParcel, grant: Grant, *, since: float, trusted_until: float
    ) -> None:
        super().__init__(leased, left=len(leased.runs), since=since, trusted_until=trusted_until)
        self.token = grant.lease_id
        self.attempt = grant.attempt
        self.pending = {*leased.runs}
        """Runs whose end the service has not heard of."""
        self.checkpoints: dict[RunId, bytes] = {}
        """What earlier attempts have kept for these."""

    def lease_of(self, run: RunId) -> str:
        """The lease of one of its runs."""
        return f"{self.token}.{to_text('run', run)}"


class Item(NamedTuple):
    """Ends of runs of one parcel that are told together."""

    parcel: HttpParcel
    told: shapes.Succeeded | shapes.RunEnd
    runs: Sequence[RunId]
    weight: int
    handler: str | None = None


class HttpReporter:
    """A queue of ends, and those who carry them."""

    def __init__(
        self,
        *,
        line: Line,
        held: HeldParcels,
        clock: Clock,
        roll: Callable[[], float],
        telemetry: Telemetry,
        died: Callable[[DeadRun], None],
    ) -> None:
        self._line = line
        self._held = held
        self._clock = clock
        self._roll = roll
        self._telemetry = telemetry
        self._died = died
        self._waiting: deque[Item] = deque()
        self._something = asyncio.Event()
        self._idle = asyncio.Event()
        self._outage = Outage(duty="worker.report", telemetry=telemetry)
        self._lost = telemetry.counter("betimes_lease_lost_total")
        self.unwritten = 0

    def succeeded(self, parcel: HeldParcel, streak: Streak) -> None:
        """Take successes without results."""
        self._put_successes(parcel, streak.runs, None, streak.started_at, streak.finished_at)

    def attempted(
        self,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        outcome: Outcome | None,
        started_at: datetime,
        now: datetime,
    ) -> None:
        """Take any other end of an attempt."""
        if isinstance(outcome, Succeeded):
            self._put_successes(parcel, [run.id], outcome.result, started_at, now)
            return
        if outcome is None:
            outcome = Released(f"this worker has no task {plan.handler!r}")
        self._put(parcel, end_of(run.id, outcome, started_at, now), [run.id], plan.handler)

    def refuses(self, _: WantedRun, __: HeldParcel, ___: Plan, ____: datetime) -> bool:
        """Whether a run is not to be begun; what is not is not handed out over HTTP."""
        return False

    def lose(self, parcel: HeldParcel, *, found: str) -> None:
        """Stop believing in a lease: nothing of it is reported any more."""
        if not parcel.lost:
            self._held.lose(parcel)
            self._lost.add(kind="parcel")
            run = to_text("run", parcel.leased.runs[0])
            self._telemetry.event("worker.lease_lost", level="warning", run=run, found=found)

    async def run(self) -> None:
        """Tell until cancelled; several may do this side by side."""
        while True:
            await self._something.wait()
            if self.unwritten < ENOUGH:
                await self._clock.sleep(LINGER_SECONDS)
            await self.flush()

    async def flush(self) -> int:
        """Tell what waits, as much as fits into one request; how many ends that were."""
        items = self._take()
        if not self._waiting:
            self._something.clear()
        if items:
            try:
                await self._tell(items)
            finally:
                self.unwritten -= sum(len(item.runs) for item in items)
                self._idle.set()
        return sum(len(item.runs) for item in items)

    async def settle(self) -> None:
        """Return when the service has heard of every end that was taken, whoever tells it."""
        while self.unwritten:
            self._idle.clear()
            if not await self.flush() and self.unwritten:
                await self._idle.wait()

    async def give_back(self, held: Iterable[HeldParcel]) -> int:
        """Return what is left of parcels; how many there were."""
        parcels = [parcel for parcel in held if isinstance(parcel, HttpParcel) and parcel.pending]
        now = self._clock.now()
        items = [
            Item(parcel, end_of(run, Released(GOES), now, now), [run], END_BYTES)
            for parcel in parcels
            for run in parcel.pending
        ]
        for start in range(0, len(items), wire.PARCEL_RUNS_MAX):
            await self._tell(items[start : start + wire.PARCEL_RUNS_MAX])
        return len(parcels)

    def _put_successes(
        self,
        parcel: HeldParcel,
        runs: list[RunId],
        result: bytes | None,
        started_at: datetime,
        now: datetime,
    ) -> None:
        told = shapes.Succeeded(
            runs=runs,  # type: ignore[arg-type]  # ids of runs are UUIDs
            results=None if result is None else [msgspec.Raw(result)],
            started_at=started_at,
            ended_at=now,
        )
        self._put(parcel, told, runs)

    def _put(
        self,
        parcel: HeldParcel,
        told: shapes.Succeeded | shapes.RunEnd,
        runs: Sequence[RunId],
        handler: str | None = None,
    ) -> None:
        if parcel.lost or not isinstance(parcel, HttpParcel):
            return
        self._waiting.append(Item(parcel, told, runs, weight_of(told), handler))
        self.unwritten += len(runs)
        parcel.left -= len(runs)
        self._something.set()

    def _take(self) -> list[Item]:
        items: list[Item] = []
        count = weight = 0
        while self._waiting:
            count += len(self._waiting[0].runs)
            weight += self._waiting[0].weight
            if items and (count > wire.PARCEL_RUNS_MAX or weight > BYTES_MAX):
                break
            items.append(self._waiting.popleft())
        return items

    async def _tell(self, items: Sequence[Item]) -> None:
        failures = 0
        reports = reports_of(items)
        while True:
            try:
                answers = await self._line.report(list(reports.values()))
            except (Unavailable, TenantSuspended) as fault:
                # Not taken now: that says nothing about what is told.
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
                answers = [_all_lost(report) for report in reports.values()]
                self._answered(items, answers)
                return
            else:
                self._outage.ended()
                self._answered(items, answers)
                return

    def _answered(self, items: Sequence[Item], answers: Sequence[shapes.ParcelReported]) -> None:
        lost = {run for answer in answers for run in answer.lost}
        dead = {run for answer in answers for run in answer.dead}
        told: dict[HttpParcel, set[RunId]] = {}
        for item in items:
            item.parcel.pending.difference_update(item.runs)
            told.setdefault(item.parcel, set()).update(item.runs)
            if dead and item.runs[0] in dead:
                text = to_text("run", item.runs[0])
                self._died(DeadRun(text, item.handler or "", item.parcel.attempt))
        for parcel, runs in told.items():
            if runs <= lost:
                # Nothing of it could be written: its lease ended under us.
                self.lose(parcel, found="report")
            elif not parcel.pending:
                self._held.remove(parcel)

    async def _refused(self, items: Sequence[Item], refusal: ApiError) -> None:
        """One report that cannot be read must not hold up the others, nor its own run for ever."""
        if len(items) > 1:
            for item in items:
                await self._tell([item])
            return
        (item,) = items
        texts = [to_text("run", run) for run in item.runs]
        self._telemetry.event("worker.report_refused", level="error", run=texts[0], error=refusal)
        if isinstance(item.told, shapes.RunEnd) and item.told.action == "fail":
            self._answered(items, [_all_lost(one) for one in reports_of(items).values()])
            return
        error = wire.ErrorTold(type="ReportRefused", message=str(refusal)[:1000])
        await self._tell(
            [
                item._replace(
                    told=shapes.RunEnd(run=run, action="fail", error=error, retry="never"),
                    runs=[run],
                )
                for run in item.runs
            ]
        )


def reports_of(items: Iterable[Item]) -> dict[HttpParcel, shapes.ParcelReport]:
    """Ends by parcel, as they travel."""
    reports: dict[HttpParcel, shapes.ParcelReport] = {}
    for item in items:
        report = reports.get(item.parcel)
        if report is None:
            report = reports[item.parcel] = shapes.ParcelReport(
                lease_id=item.parcel.token, succeeded=[], ended=[]
            )
        if isinstance(item.told, shapes.Succeeded):
            report.succeeded.append(item.told)
        else:
            report.ended.append(item.told)
    return reports


def end_of(run: RunId, outcome: Outcome, started_at: datetime, now: datetime) -> shapes.RunEnd:
    """How an attempt ended, as it is told."""
    return shapes.RunEnd(run=run, started_at=started_at, ended_at=now, **_told(outcome))


def _told(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Failed(error=facts):
            error = wire.ErrorTold(type=facts.type, message=facts.message, stack=facts.stack)
            wish: Any = "auto" if outcome.retryable else "never"
            if outcome.after is not None:
                wish = wire.RetryAfter(after=outcome.after.total_seconds())
            result = None if outcome.result is None else msgspec.Raw(outcome.result)
            return {"action": "fail", "error": error, "retry": wish, "result": result}
        case TimedOut(limit=limit):
            return {"action": "time_out", "for_": limit.total_seconds()}
        case Snoozed(until=timedelta() as pause):
            return {"action": "snooze", "for_": pause.total_seconds()}
        case Snoozed(until=datetime() as until):
            return {"action": "snooze", "until": until.isoformat()}
        case Cancelled(reason=reason):
            return {"action": "cancel", "reason": reason[:REASON_MAX]}
        case Released(reason=reason):
            return {"action": "release", "reason": reason[:REASON_MAX]}
        case _:
            raise TypeError(f"expected an outcome of a task, got {outcome!r}")


def weight_of(told: shapes.Succeeded | shapes.RunEnd) -> int:
    """About how many bytes an end takes."""
    if isinstance(told, shapes.Succeeded):
        results = told.results or ()
        return END_BYTES + 40 * len(told.runs) + sum(len(bytes(one)) for one in results)
    error = told.error
    more = 0 if error is None else len(error.message) + len(error.stack)
    return END_BYTES + more + (0 if told.result is None else len(bytes(told.result)))


def _all_lost(report: shapes.ParcelReport) -> shapes.ParcelReported:
    runs: list[UUID] = [run for some in report.succeeded for run in some.runs]
    runs += [end.run for end in report.ended]
    return shapes.ParcelReported(lease_id=report.lease_id, lost=runs)
