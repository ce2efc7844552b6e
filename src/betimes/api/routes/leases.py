"""Leases: what workers report about the runs they hold."""

from collections.abc import Mapping
from typing import Any

import msgspec

from betimes.api.accepting import chosen
from betimes.api.call import Call, Reply
from betimes.api.finding import find_run
from betimes.api.leasing import held_lease
from betimes.api.parcels import NOTHING, Seals, failed, released, report_runs, result_of, snoozed
from betimes.api.problem import Trouble
from betimes.api.route import BATCH_BYTES_MAX, Load, NoQuery, Policy, Route
from betimes.api.shaping import coerced, maybe_instant, read_span
from betimes.api.worker_limits import CHECKPOINT_BYTES_MAX, EXTEND_MAX
from betimes.domain.ids import to_text
from betimes.domain.outcome import Cancelled, Outcome, Succeeded
from betimes.domain.scopes import Scope
from betimes.domain.states import shown
from betimes.ops import leases as ops
from betimes.ops import reports
from betimes.wire import workers as wire
from betimes.wire.base import shown_instant, shown_maybe

LOST = "the lease ended; somebody else may hold the run"
PLAIN = "text/plain"


def seals_of(call: Call[Any, Any]) -> Seals:
    """What the tokens of a caller are written and read with."""
    service, caller = call.service, call.caller
    return Seals(
        tenant=call.tenant,
        lease_secret=service.lease_secret,
        grant_secret=service.grant_secret,
        key=caller.key,
        queues=caller.queues,
    )


def _lease(call: Call[Any, Any]) -> ops.HeldLease:
    return held_lease(call, call.path["lease"])


async def _report(
    call: Call[Any, Any], outcome: Outcome, metrics: Mapping[str, float] = NOTHING
) -> Reply:
    found = await reports.report(
        call.service.desk,
        call.tenant,
        [reports.Report(lease=_lease(call), outcome=outcome, metrics=metrics)],
        roll=call.service.roll,
    )
    (settled,) = found.settled
    if settled.state is None:
        raise Trouble("lease_lost", LOST)
    return Reply(
        value=wire.Settled(
            run_id=to_text("run", settled.lease.run),
            next_state=shown(settled.state).value,
            next_retry_at=shown_maybe(settled.next_retry_at),
        )
    )


async def complete(call: Call[NoQuery, wire.Complete]) -> Reply:
    """The run ended well; saying so again is fine."""
    body = call.body
    return await _report(call, Succeeded(result_of(body.result, body.result_ref)), body.metrics)


async def fail(call: Call[NoQuery, wire.Fail]) -> Reply:
    """The attempt failed; the retry policy decides what follows."""
    return await _report(call, failed(call.body.error, call.body.retry, call.body.result))


async def cancel(call: Call[NoQuery, wire.CancelLease]) -> Reply:
    """End the run as cancelled."""
    return await _report(call, Cancelled(call.body.reason))


async def release(call: Call[NoQuery, wire.Release]) -> Reply:
    """Give a run back unfinished, without counting the attempt."""
    return await _report(call, released(call.body.reason, call.body.after))


async def snooze(call: Call[NoQuery, wire.Snooze]) -> Reply:
    """Be called again later, without counting the attempt."""
    return await _report(call, snoozed(call.body.until, call.body.for_))


async def extend(call: Call[NoQuery, wire.Extend]) -> Reply:
    """Hold a run for longer."""
    by = min(read_span(call.body.by, pointer="/by"), EXTEND_MAX)
    at = await ops.extend(call.service.desk, call.tenant, _lease(call), by=by)
    return Reply(value=wire.ExtendedTo(expires_at=shown_instant(at)))


async def progress(call: Call[NoQuery, wire.Progress]) -> Reply:
    """Say how far a run has come."""
    said = ops.Note(call.body.percent, call.body.message, None)
    await ops.note(call.service.desk, call.tenant, _lease(call), said)
    return Reply(status=202, value=wire.Accepted())


async def checkpoint(call: Call[NoQuery, wire.Checkpoint]) -> Reply:
    """Keep something for the next attempt to begin from."""
    data = msgspec.json.encode(call.body.data)
    if len(data) > CHECKPOINT_BYTES_MAX:
        raise Trouble(
            "payload_too_large",
            f"expected a checkpoint of at most {CHECKPOINT_BYTES_MAX} bytes, got {len(data)}",
        )
    await ops.note(call.service.desk, call.tenant, _lease(call), ops.Note(None, None, data))
    return Reply(status=202, value=wire.Accepted())


async def logs(call: Call[NoQuery, wire.LogLines]) -> Reply:
    """Add lines to the log of a run."""
    now = call.service.now()
    lines = [
        ops.LogLine(
            at=maybe_instant(line.at, pointer=f"/lines/{place}/at") or now,
            level=line.level,
            message=line.message,
            fields=line.fields,
        )
        for place, line in enumerate(call.body.lines)
    ]
    count = await ops.add_logs(call.service.desk, call.tenant, _lease(call), lines)
    return Reply(status=202, value=wire.Accepted(accepted=count))


async def batch(call: Call[NoQuery, wire.Reports]) -> Reply:
    """Many reports in one transaction; each has a status of its own."""
    service, items = call.service, call.body.items
    done = await report_runs(service.desk, items, seals_of(call), roll=service.roll)
    told = [reported(one.lease_id, became) for one, became in zip(items, done, strict=True)]
    return Reply(status=207, value=wire.ReportsDone(items=told))


def reported(text: str, settled: reports.Settled | None) -> wire.Reported:
    """What became of one report."""
    if settled is None:
        return wire.Reported(status=404, lease_id=text, code="not_found")
    if settled.state is None:
        return wire.Reported(status=409, lease_id=text, code="lease_lost")
    return wire.Reported(
        status=200,
        lease_id=text,
        next_state=shown(settled.state).value,
        next_retry_at=shown_maybe(settled.next_retry_at),
    )


async def read_log(call: Call[wire.ReadLog, None]) -> Reply:
    """Lines of the log of a run, in order."""
    view = await find_run(call)
    query = call.query
    lines = await ops.read_log(
        call.service.desk,
        call.tenant,
        view.run.id,
        after=query.after,
        attempt=query.attempt,
        levels=query.level,
        last=query.tail is not None,
        most=coerced(query.tail or query.limit),
    )
    if chosen(call.request, call.route.offers) == PLAIN:
        text = "".join(f"{shown_instant(one.at)} {one.level} {one.message}\n" for one in lines)
        return Reply(content=text.encode(), media=f"{PLAIN}; charset=utf-8")
    items = [shown_line(line) for line in lines]
    return Reply(value=wire.Log(items=items, next_after=items[-1].seq if items else query.after))


def shown_line(line: ops.LogLine) -> wire.LogShown:
    """A line of a log as it is shown."""
    return wire.LogShown(
        seq=line.seq,
        attempt=line.attempt,
        at=shown_instant(line.at),
        level=line.level,
        message=line.message,
        fields=dict(line.fields),
    )


def _action(
    verb: str, handler: Any, body: Any, status: int, kind: Any, says: str, **more: Any
) -> Route:
    given: dict[str, Any] = {"body_optional": True, **more}
    return Route(
        method="POST",
        path=f"/v1/leases/{{lease}}/{verb}",
        name=f"leases.{verb}",
        says=says,
        handler=handler,
        scope=Scope.WORKERS_LEASE,
        body=body,
        answers={status: kind},
        load=Load.VITAL,
        policy=Policy.LEASE,
        problems=("lease_lost",),
        by_lease=True,
        **given,
    )


ROUTES = (
    _action("complete", complete, wire.Complete, 200, wire.Settled, "The run ended well."),
    _action("fail", fail, wire.Fail, 200, wire.Settled, "The attempt failed."),
    _action("cancel", cancel, wire.CancelLease, 200, wire.Settled, "End the run as cancelled."),
    _action("release", release, wire.Release, 200, wire.Settled, "Give a run back unfinished."),
    _action("snooze", snooze, wire.Snooze, 200, wire.Settled, "Be called again later."),
    _action("extend", extend, wire.Extend, 200, wire.ExtendedTo, "Hold a run for longer."),
    _action("progress", progress, wire.Progress, 202, wire.Accepted, "Say how far a run has come."),
    _action(
        "checkpoint",
        checkpoint,
        wire.Checkpoint,
        202,
        wire.Accepted,
        "Keep something for the next attempt to begin from.",
        body_optional=False,
    ),
    _action(
        "logs",
        logs,
        wire.LogLines,
        202,
        wire.Accepted,
        "Add lines to the log of a run; the body may be packed with gzip.",
        body_optional=False,
        unpacks=True,
    ),
    Route(
        method="POST",
        path="/v1/leases/batch",
        name="leases.batch",
        says="Many reports in one transaction.",
        handler=batch,
        scope=Scope.WORKERS_LEASE,
        body=wire.Reports,
        body_max=BATCH_BYTES_MAX,
        answers={207: wire.ReportsDone},
        load=Load.VITAL,
        policy=Policy.LEASE,
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/logs",
        name="runs.logs",
        says="Lines of the log of a run, in order.",
        handler=read_log,
        scope=Scope.RUNS_READ,
        query=wire.ReadLog,
        answers={200: wire.Log},
        or_media=(PLAIN,),
        problems=("retention_expired",),
    ),
)
