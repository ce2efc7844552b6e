"""Endpoints between domain and wire."""

from collections.abc import Mapping
from datetime import timedelta

from betimes.api.etag import tag_of
from betimes.api.routes.rates import read_per
from betimes.domain.ids import to_text
from betimes.domain.webhook import shown_secret
from betimes.ops import endpoints as ops
from betimes.wire import endpoints as wire
from betimes.wire.base import shown_duration, shown_instant, shown_maybe
from betimes.wire.queues import RateLimit

THIN, FULL = "thin", "full"


def shown_endpoint(
    endpoint: ops.Endpoint, box: ops.MailboxView | None, *, secret: bytes | None = None
) -> wire.Endpoint:
    """An endpoint as it is shown; its secret only when it is new."""
    is_mail = endpoint.kind == "email"
    return wire.Endpoint(
        id=to_text("ep", endpoint.id),
        type=endpoint.kind,
        name=endpoint.name,
        url=None if is_mail else endpoint.address,
        address=endpoint.address if is_mail else None,
        style=endpoint.settings.get("style"),
        event_types=list(endpoint.event_types),
        filter=endpoint.filter.to_json(),
        concurrency=int(endpoint.settings.get("concurrency", 4)),
        rate=_shown_rate(endpoint.settings.get("rate")),
        payload=str(endpoint.settings.get("payload", THIN)),
        is_callback=endpoint.is_callback,
        disabled=endpoint.disabled_at is not None,
        disabled_reason=endpoint.disabled_reason,
        status=_status(endpoint, box),
        revision=endpoint.revision,
        etag=tag_of(endpoint.revision),
        created_at=shown_instant(endpoint.created_at),
        created_by=endpoint.created_by,
        updated_at=shown_instant(endpoint.updated_at),
        secret=None if secret is None else shown_secret(secret),
        secret_until=shown_maybe(endpoint.secret_until),
    )


def _shown_rate(kept: Mapping[str, int] | None) -> RateLimit | None:
    if kept is None:
        return None
    per = timedelta(milliseconds=kept["per_ms"])
    return RateLimit(limit=kept["limit"], per=shown_duration(per))


def kept_rate(rate: RateLimit) -> dict[str, int]:
    """A rate as it is stored."""
    return {"limit": rate.limit, "per_ms": read_per(rate, pointer="/rate/per")}


def _status(endpoint: ops.Endpoint, box: ops.MailboxView | None) -> wire.EndpointStatus:
    failures = 0 if box is None else box.failures
    state = "failing" if failures else "active"
    return wire.EndpointStatus(
        state="disabled" if endpoint.disabled_at is not None else state,
        failures=failures,
        failing_since=None if box is None else shown_maybe(box.failing_since),
        held_until=None if box is None else shown_maybe(box.held_until),
        last_success_at=None if box is None else shown_maybe(box.last_success_at),
        last_failure_at=None if box is None else shown_maybe(box.last_failure_at),
        last_error=None if box is None else box.last_error,
    )
