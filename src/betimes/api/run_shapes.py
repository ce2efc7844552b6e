"""Runs and attempts between domain and wire."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import msgspec

from betimes.api.callbacks import NOBODY, Listeners, callbacks_of
from betimes.api.definitions import concurrency_of, dedupe_of, policy_of
from betimes.api.problem import Trouble
from betimes.api.references import UNSEEN, References
from betimes.api.shaping import maybe_instant, maybe_limit, maybe_span
from betimes.api.targets import Rules, work_of
from betimes.domain.ids import to_text
from betimes.domain.outcome import OutcomeKind
from betimes.domain.run import NewRun, Run
from betimes.domain.spec import retry_to_json, to_ms
from betimes.domain.states import Shown
from betimes.domain.trace import trace_of
from betimes.ops.history import Attempt
from betimes.ops.runs import RunView
from betimes.ops.schemas import ANYTHING, Accepted
from betimes.target.redact import Redaction
from betimes.wire import runs as wire
from betimes.wire.base import shown_bytes, shown_instant, shown_maybe

MILLISECOND = timedelta(milliseconds=1)
NO_TRACE: Mapping[str, str] = MappingProxyType({})
BY_REFERENCE = b'{"result_ref":"blob_'
PLAIN = Redaction()


def new_run(
    asked: wire.NewRun,
    targets: Rules,
    *,
    trace: Mapping[str, str] = NO_TRACE,
    accepted: Accepted = ANYTHING,
    references: References = UNSEEN,
    listeners: Listeners = NOBODY,
) -> NewRun:
    """A wire run as the verbs take it; `targets` are the rules for what it may call."""
    if asked.target is not None and asked.handler is not None:
        raise Trouble("invalid_parameter", "expected a handler or a target, got both")
    handler, target = work_of(asked.handler, asked.target, targets)
    payload = None if asked.payload is None else msgspec.json.encode(asked.payload)
    accepted.check(handler, payload, asked.payload_ref)
    return NewRun(
        handler=handler,
        target=target,
        payload=payload,
        queue=asked.queue,
        priority=asked.priority,
        due_at=maybe_instant(asked.at, pointer="/at"),
        delay=maybe_span(asked.delay, pointer="/delay"),
        options=_options(asked, targets, references, listeners) | dict(trace),
        dedupe=dedupe_of(asked.dedupe, asked.dedupe_key),
    )


def _options(
    asked: wire.NewRun, targets: Rules, references: References, listeners: Listeners
) -> dict[str, Any]:
    timeout = maybe_limit(asked.timeout, pointer="/timeout")
    deadline = maybe_limit(asked.start_deadline, pointer="/start_deadline")
    options: dict[str, Any] = {
        "retry": None if asked.retry is None else retry_to_json(policy_of(asked.retry)),
        "timeout_ms": None if timeout is None else to_ms(timeout),
        "start_deadline_ms": None if deadline is None else to_ms(deadline),
        "tags": asked.tags,
        "notify": callbacks_of(asked.notify, targets.policy, listeners),
        "payload_ref": references.check(asked.payload_ref),
        "concurrency": concurrency_of(asked.concurrency),
        "fairness_key": asked.fairness_key,
        "rate_limit_key": asked.rate_limit_key,
    }
    return {name: value for name, value in options.items() if value}


def shown_run(view: RunView, *, full: bool = False, redaction: Redaction = PLAIN) -> wire.Run:
    """A run as it is shown."""
    run, holding = view.run, view.holding
    lease = None
    if holding is not None and holding.worker is not None:
        lease = wire.Lease(
            worker_id=to_text("wrk", holding.worker),
            fence=holding.fence,
            expires_at=shown_maybe(holding.lease_until),
        )
    shown = wire.Run(
        id=to_text("run", run.id),
        trace=wire.Trace(
            trace_id=trace_of(run.id),
            link=run.options.get("trace"),
            state=run.options.get("tracestate"),
        ),
        state=view.state.value,
        trigger=run.trigger.name.lower(),
        queue=run.queue,
        priority=run.priority,
        attempt=_attempt(view),
        due_at=shown_instant(run.due_at),
        job_id=None if run.job is None else to_text("job", run.job),
        workflow_run_id=None if run.workflow_run is None else to_text("wfr", run.workflow_run),
        node=run.node,
        revision=run.revision,
        handler=run.handler,
        scheduled_for=shown_maybe(run.fire_at),
        created_at=shown_maybe(run.created_at),
        started_at=shown_maybe(_started(view)),
        finished_at=shown_maybe(run.finished_at),
        next_retry_at=_next_retry(view),
        cancel_requested_at=shown_maybe(run.cancel_at),
        state_reason=_reason(view),
        lease=lease,
        worker_id=_worker(view),
        error=shown_failure(run.error),
        lag_ms=_ms(run.due_at, run.first_started_at or _started(view)),
        run_ms=_ms(run.started_at, run.finished_at),
        tags=dict(run.options.get("tags") or {}),
        payload_ref=run.options.get("payload_ref"),
        dedupe_key=run.options.get("dedupe_key"),
        progress=_progress(view),
        metrics={} if view.note is None else dict(view.note.metrics),
    )
    if (reference := reference_in(run.result)) is not None:
        shown.result_ref = reference
    if full:
        shown.payload = redaction.json(shown_bytes(run.payload))
        shown.result = hidden_in(shown_bytes(run.result), redaction)
    return shown


def _reason(view: RunView) -> wire.StateReason | None:
    """Why it is in its state; what kept a run waiting is over once somebody has it."""
    run = view.run
    if run.reason is None or (view.state is Shown.RUNNING and run.cancel_at is None):
        return None
    return wire.StateReason(code=run.reason, detail=run.words)


def _worker(view: RunView) -> str | None:
    """Who has it or had it last; whoever only put it back did nothing with it."""
    if view.run.worker is None or view.state in (Shown.SCHEDULED, Shown.QUEUED):
        return None
    return to_text("wrk", view.run.worker)


def _attempt(view: RunView) -> int:
    """The number of the attempt under way, as its worker was told it; else of the last one."""
    if view.state is not Shown.RUNNING or view.holding is None:
        return view.run.attempt
    return view.run.attempt + view.holding.deliveries


def _started(view: RunView) -> datetime | None:
    """When its last attempt began, or the one under way."""
    if view.state is Shown.RUNNING and view.holding is not None:
        return view.holding.leased_at
    return view.run.started_at


def _next_retry(view: RunView) -> str | None:
    if view.state is not Shown.RETRY_WAIT or view.holding is None:
        return None
    return shown_instant(view.holding.visible_at)


def reference_in(result: bytes | None) -> str | None:
    """The blob that stands for a result which was too large for its row."""
    if result is None or not result.startswith(BY_REFERENCE):
        return None
    return str(msgspec.json.decode(result)["result_ref"])


def _progress(view: RunView) -> dict[str, Any] | None:
    note = view.note
    if note is None or (note.percent is None and note.message is None):
        return None
    return {"percent": note.percent, "message": note.message}


def shown_failure(error: Mapping[str, Any] | None) -> wire.Failure | None:
    """An error as it is shown."""
    if not error:
        return None
    return wire.Failure(
        type=error.get("type"), message=error.get("message"), stack=error.get("stack") or None
    )


def shown_attempt(attempt: Attempt, redaction: Redaction = PLAIN) -> wire.Attempt:
    """An attempt that did not succeed."""
    return wire.Attempt(
        number=attempt.number,
        outcome=OutcomeKind(attempt.outcome).name.lower(),
        fence=attempt.fence,
        worker_id=None if attempt.worker is None else to_text("wrk", attempt.worker),
        started_at=shown_maybe(attempt.started_at),
        finished_at=shown_maybe(attempt.finished_at),
        next_retry_at=shown_maybe(attempt.next_retry_at),
        error=shown_failure(attempt.error),
        http=redacted_http(attempt.http, redaction) or None,
    )


def hidden_in(result: Any, redaction: Redaction) -> Any:
    """A result without what is hidden; that of a delivery is its evidence."""
    if isinstance(result, dict) and "timings_ms" in result:
        return redacted_http(result, redaction)
    return redaction.json(result)


def redacted_http(http: Mapping[str, Any], redaction: Redaction) -> dict[str, Any]:
    """Evidence without what is hidden now, whatever was hidden when it was kept."""
    told = dict(http)
    if isinstance(headers := told.get("headers"), Mapping):
        told["headers"] = {
            name: redaction.header(name, str(value)) for name, value in headers.items()
        }
    if isinstance(body := told.get("body"), str):
        truncated = bool(told.get("truncated"))
        told["body"] = redaction.body(body.encode(), truncated=truncated).decode()
    return told


def last_attempt(run: Run, state: str) -> wire.Attempt:
    """The attempt that is written in the run itself."""
    return wire.Attempt(
        number=run.attempt,
        outcome=state,
        fence=run.fence,
        worker_id=None if run.worker is None else to_text("wrk", run.worker),
        started_at=shown_maybe(run.started_at),
        finished_at=shown_maybe(run.finished_at),
        next_retry_at=None,
        error=shown_failure(run.error),
    )


def _ms(begin: datetime | None, end: datetime | None) -> float | None:
    return None if begin is None or end is None else (end - begin) / MILLISECOND
