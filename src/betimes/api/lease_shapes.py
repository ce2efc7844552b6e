"""Leased runs between domain and wire."""

from datetime import timedelta

from betimes.api.grants import Grant, write_grant
from betimes.domain.errors import Invalid
from betimes.domain.ids import TenantId, from_text, to_text
from betimes.domain.trace import traceparent_of
from betimes.ops import workers as ops
from betimes.wire import workers as wire
from betimes.wire.base import shown_bytes, shown_duration, shown_instant, shown_maybe


def shown_lease(one: ops.Leased, token: str, *, grant: str | None = None) -> wire.LeasedRun:
    """A run as its worker is told of it."""
    run, spec = one.run, one.spec
    payload = run.payload if run.payload is not None else spec.payload
    checkpoint = None if one.note is None else one.note.checkpoint
    text = to_text("run", run.id)
    return wire.LeasedRun(
        run_id=text,
        lease_id=token,
        fence=one.lease.fence,
        lease_expires_at=shown_instant(one.expires_at),
        attempt=one.lease.attempt,
        max_attempts=spec.retry.max_attempts,
        due_at=shown_instant(run.due_at),
        queue=one.queue,
        priority=one.priority,
        idempotency_key=text,
        traceparent=traceparent_of(run.id, one.lease.attempt),
        tracestate=spec.options.get("tracestate"),
        handler=run.handler or spec.handler,
        job_id=None if run.job is None else to_text("job", run.job),
        scheduled_for=shown_maybe(run.fire_at),
        payload=shown_bytes(payload),
        payload_ref=spec.options.get("payload_ref"),
        payload_path=None if grant is None else f"/v1/grants/{grant}",
        timeout=_span(spec.timeout),
        checkpoint=shown_bytes(checkpoint),
        tags=dict(spec.options.get("tags") or {}),
    )


def payload_grant(secret: bytes, tenant: TenantId, one: ops.Leased, *, by: str) -> str | None:
    """What reads the payload while the worker holds the run, and nothing else with it."""
    reference = one.spec.options.get("payload_ref")
    if reference is None:
        return None
    try:
        blob = from_text("blob", reference)
    except Invalid:
        return None
    return write_grant(secret, Grant(tenant, blob, one.expires_at, by))


def _span(timeout: timedelta | None) -> str | None:
    return None if timeout is None else shown_duration(timeout)
