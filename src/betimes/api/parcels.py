"""Leased parcels between use cases and the wire: what workers are handed, and what they report.

Functions of what they are given, so that whoever reaches the service by another way than HTTP says
and hears the same.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec

from betimes.api.grants import Grant, write_grant
from betimes.api.leasing import read_parcel_token, read_token, with_run, write_parcel_token
from betimes.api.problem import Trouble
from betimes.api.shaping import maybe_span, read_instant, read_span
from betimes.api.worker_limits import RESULT_BYTES_MAX
from betimes.domain.errors import Invalid
from betimes.domain.ids import RunId, TenantId, from_text, to_text
from betimes.domain.outcome import (
    Cancelled,
    ErrorFacts,
    Failed,
    Outcome,
    Released,
    Snoozed,
    Succeeded,
    TimedOut,
)
from betimes.domain.spec import RunSpec
from betimes.domain.states import RunState
from betimes.domain.trace import traceparent_of
from betimes.ops import leases, reports, workers
from betimes.ops.desk import Desk
from betimes.ops.leasing import Given, LeasedBatch
from betimes.wire import parcels as shapes
from betimes.wire import workers as wire
from betimes.wire.base import shown_bytes, shown_duration, shown_instant, shown_maybe

NOTHING: Mapping[str, float] = MappingProxyType({})
TIMED_OUT = "TimedOut"
"""The type of error by which a simple client says that an attempt took longer than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seals:
    """What tokens of one tenant are written and read with."""

    tenant: TenantId
    lease_secret: bytes
    grant_secret: bytes = b""
    key: str = ""
    """In whose name payloads are granted."""
    queues: Collection[str] | None = None
    """Those that the key beside a token is bound to, if it is."""

    def token(self, batch: LeasedBatch) -> str:
        """What stands for a parcel."""
        queue = batch.parcel.queue
        return write_parcel_token(self.lease_secret, self.tenant, batch.lease, queue=queue)

    def parcel(self, text: str) -> workers.ParcelLease:
        """The parcel that a token stands for."""
        return read_parcel_token(self.lease_secret, self.tenant, text, queues=self.queues)

    def run(self, text: str) -> leases.HeldLease:
        """The run that a lease stands for."""
        return read_token(self.lease_secret, self.tenant, text, queues=self.queues)

    def path(self, spec: RunSpec, until: datetime) -> str | None:
        """Where the payload of a definition is read while it is leased, and nothing else."""
        reference = spec.options.get("payload_ref")
        if reference is None:
            return None
        try:
            blob = from_text("blob", reference)
        except Invalid:
            return None
        grant = Grant(self.tenant, blob, until, self.key)
        return f"/v1/grants/{write_grant(self.grant_secret, grant)}"


# --- handing out


def shown_parcels(
    batches: Sequence[LeasedBatch], seals: Seals, *, now: datetime
) -> shapes.LeasedParcels:
    """Parcels as their worker is told of them: one token each, and each definition once."""
    numbers: dict[int, int] = {}
    definitions: list[shapes.ParcelDefinition] = []
    parcels: list[shapes.HeldParcel] = []
    for batch in batches:
        until = batch.parcel.lease_until
        rows: list[shapes.ParcelRun] = []
        for run, spec, note in batch.runs:
            number = numbers.get(id(spec))
            if number is None:
                number = numbers[id(spec)] = len(definitions)
                definitions.append(_definition(spec, run.handler, seals.path(spec, until)))
            rows.append(
                shapes.ParcelRun(
                    run.id,
                    number,
                    run.due_at,
                    run.job,
                    run.fire_at,
                    _raw(run.payload),
                    None if note is None else _raw(note.checkpoint),
                )
            )
        parcels.append(
            shapes.HeldParcel(
                lease_id=seals.token(batch),
                fence=batch.lease.fence,
                attempt=batch.lease.attempt,
                queue=batch.parcel.queue,
                priority=batch.parcel.priority,
                runs=rows,
            )
        )
    return shapes.LeasedParcels(
        parcels=parcels, definitions=definitions, server_time=shown_instant(now)
    )


def _definition(spec: RunSpec, handler: str | None, path: str | None) -> shapes.ParcelDefinition:
    return shapes.ParcelDefinition(
        max_attempts=spec.retry.max_attempts,
        handler=spec.handler or handler,
        payload=_raw(spec.payload),
        payload_ref=spec.options.get("payload_ref"),
        payload_path=path,
        timeout=None if spec.timeout is None else shown_duration(spec.timeout),
        tracestate=spec.options.get("tracestate"),
        tags=dict(spec.options.get("tags") or {}),
    )


def _raw(content: bytes | None) -> Any:
    """JSON as it was stored, without reading it again."""
    return None if content is None else msgspec.Raw(content)


def shown_runs(batches: Sequence[LeasedBatch], seals: Seals) -> list[wire.LeasedRun]:
    """The same runs one by one, for workers that want to know nothing of parcels."""
    shown: list[wire.LeasedRun] = []
    for batch in batches:
        token = seals.token(batch)
        shown += [_run(batch, one, with_run(token, one.run.id), seals) for one in batch.runs]
    return shown


def _run(batch: LeasedBatch, given: Given, lease: str, seals: Seals) -> wire.LeasedRun:
    run, spec, until = given.run, given.spec, batch.parcel.lease_until
    payload = run.payload if run.payload is not None else spec.payload
    text = to_text("run", run.id)
    return wire.LeasedRun(
        run_id=text,
        lease_id=lease,
        fence=batch.lease.fence,
        lease_expires_at=shown_instant(until),
        attempt=batch.lease.attempt,
        max_attempts=spec.retry.max_attempts,
        due_at=shown_instant(run.due_at),
        queue=batch.parcel.queue,
        priority=batch.parcel.priority,
        idempotency_key=text,
        traceparent=traceparent_of(run.id, batch.lease.attempt),
        tracestate=spec.options.get("tracestate"),
        handler=run.handler or spec.handler,
        job_id=None if run.job is None else to_text("job", run.job),
        scheduled_for=shown_maybe(run.fire_at),
        payload=shown_bytes(payload),
        payload_ref=spec.options.get("payload_ref"),
        payload_path=seals.path(spec, until),
        timeout=None if spec.timeout is None else shown_duration(spec.timeout),
        checkpoint=None if given.note is None else shown_bytes(given.note.checkpoint),
        tags=dict(spec.options.get("tags") or {}),
    )


# --- reports


async def report_parcels(
    desk: Desk,
    told: Sequence[shapes.ParcelReport],
    seals: Seals,
    *,
    roll: Callable[[], float],
) -> shapes.ParcelsReported:
    """Write what became of parcels, in one transaction; each is answered for itself.

    Who holds a parcel is said by its lease: a worker that had to register again reports what it
    has leased under its former name.
    """
    done = [shapes.ParcelReported(lease_id=one.lease_id) for one in told]
    ends: list[reports.Report] = []
    sets: list[reports.Successes] = []
    whose: list[int] = []
    owners: list[int] = []
    for place, one in enumerate(told):
        try:
            lease = seals.parcel(one.lease_id)
        except Trouble:
            done[place].lost = [run for some in one.succeeded for run in some.runs]
            done[place].lost += [end.run for end in one.ended]
            continue
        sets += [_successes(lease, some) for some in one.succeeded]
        owners += [place] * len(one.succeeded)
        ends += [_report(lease.of(RunId(end.run)), end) for end in one.ended]
        whose += [place] * len(one.ended)
    found = await reports.report(desk, seals.tenant, ends, roll=roll, successes=sets)
    for place, lost in zip(owners, found.lost, strict=True):
        done[place].lost += lost
    for place, settled in zip(whose, found.settled, strict=True):
        if settled.state is None:
            done[place].lost.append(settled.lease.run)
        elif settled.state is RunState.DEAD:
            done[place].dead.append(settled.lease.run)
    return shapes.ParcelsReported(parcels=done)


def _successes(lease: workers.ParcelLease, told: shapes.Succeeded) -> reports.Successes:
    results: list[bytes | None] | None = None
    if told.results is not None:
        if len(told.results) != len(told.runs):
            raise Trouble(
                "invalid_parameter",
                f"expected {len(told.runs)} results, one for each run, got {len(told.results)}",
            )
        results = [encoded(one) for one in told.results]
    return reports.Successes(
        lease=lease,
        runs=[RunId(run) for run in told.runs],
        results=results,
        times=_times(told.started_at, told.ended_at),
    )


def _report(lease: leases.HeldLease, told: shapes.RunEnd) -> reports.Report:
    metrics = told.metrics if told.action == "complete" else NOTHING
    times = _times(told.started_at, told.ended_at)
    return reports.Report(lease=lease, outcome=outcome_of(told), metrics=metrics, times=times)


def _times(started_at: datetime | None, ended_at: datetime | None) -> reports.Times | None:
    if started_at is None or ended_at is None:
        return None
    if started_at.tzinfo is None or ended_at.tzinfo is None:
        raise Trouble("invalid_parameter", "expected times with an offset, got one without")
    return reports.Times(started_at, ended_at)


async def report_runs(
    desk: Desk,
    told: Sequence[wire.ReportOne],
    seals: Seals,
    *,
    roll: Callable[[], float],
) -> list[reports.Settled | None]:
    """Write what became of runs, in one transaction; None for what is no lease of the tenant's.

    Each is answered for itself: one that is stale stands in nobody's way.
    """
    known: list[reports.Report] = []
    places: list[int] = []
    for place, one in enumerate(told):
        try:
            lease = seals.run(one.lease_id)
        except Trouble:
            continue
        metrics = one.metrics if one.action == "complete" else NOTHING
        known.append(reports.Report(lease=lease, outcome=outcome_of(one), metrics=metrics))
        places.append(place)
    found = await reports.report(desk, seals.tenant, known, roll=roll)
    done: list[reports.Settled | None] = [None] * len(told)
    for place, settled in zip(places, found.settled, strict=True):
        done[place] = settled
    return done


def outcome_of(told: wire.End) -> Outcome:
    """How an attempt ended, as a worker says."""
    match told.action:
        case "complete":
            return Succeeded(result_of(told.result, told.result_ref))
        case "fail":
            return failed(told.error, told.retry, told.result)
        case "time_out":
            return TimedOut(limit=maybe_span(told.for_, pointer="/for") or timedelta.max)
        case "release":
            return released(told.reason, told.after)
        case "snooze":
            return snoozed(told.until, told.for_)
        case "cancel":
            return Cancelled(told.reason)


def result_of(value: Any, reference: str | None) -> bytes | None:
    """What a run has come to, or where it lies."""
    if reference is not None:
        if value is not None:
            raise Trouble("invalid_parameter", "expected a result or a result_ref, got both")
        value = {"result_ref": reference}
    return encoded(value)


def encoded(value: Any) -> bytes | None:
    """A result as it is kept."""
    if value is None:
        return None
    content = msgspec.json.encode(value)
    if len(content) > RESULT_BYTES_MAX:
        raise Trouble(
            "payload_too_large",
            f"expected a result of at most {RESULT_BYTES_MAX} bytes, got {len(content)}",
        )
    return content


def failed(error: wire.ErrorTold | None, wish: Any, result: Any) -> Failed:
    """The attempt failed; the retry policy decides what follows."""
    after = None
    if isinstance(wish, wire.RetryAfter):
        after = read_span(wish.after, pointer="/retry/after")
    told = error or wire.ErrorTold()
    facts = ErrorFacts(told.type or "Error", told.message, told.stack)
    return Failed(
        facts,
        retryable=wish != "never",
        after=after,
        timed_out=facts.type == TIMED_OUT,
        result=encoded(result),
    )


def released(reason: str, after: Any) -> Released:
    """The run is given back unfinished, at once or for after a while."""
    return Released(reason, maybe_span(after, pointer="/after") or timedelta(0))


def snoozed(until: str | None, pause: Any) -> Snoozed:
    """The run is to be done again later, and nothing is counted."""
    if (until is None) == (pause is None):
        raise Trouble("invalid_parameter", "expected `until` or `for`, one of them")
    if pause is not None:
        return Snoozed(read_span(pause, pointer="/for"))
    return Snoozed(read_instant(until or "", pointer="/until"))
