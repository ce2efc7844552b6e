"""Telling an endpoint what it has missed, as an operation: what failed, and what was never sent."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import TenantId, to_us
from betimes.domain.notice import delivery_id
from betimes.ops.desk import Desk
from betimes.ops.matching import hears, labels_of, subjects_of
from betimes.ops.operating import Step, forward
from betimes.store import deliveries as sent
from betimes.store.endpoints import Endpoint, read_endpoint, wake_mailbox
from betimes.store.hints import DELIVER
from betimes.store.operations import Operation
from betimes.store.pool import Connection
from betimes.store.routing import Handout, News, hand_out, read_labels, read_news

REDELIVER = "endpoints.redeliver"
EVENTS_PER_STEP = 200
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST = UUID(int=0)


def redelivery_of(endpoint: UUID, *, since: datetime, now: datetime) -> Mapping[str, Any]:
    """What the operation is to do, as it is stored."""
    if since > now:
        raise Invalid("expected a time in the past", pointer="/since")
    return {"endpoint": str(endpoint), "since_us": to_us(since), "until_us": to_us(now)}


async def step_redelivery(desk: Desk, operation: Operation) -> Step:
    """The next events: those it wants are put into its mailbox, unless it has got them."""
    tenant, request = operation.tenant, operation.request
    place = _read_cursor(operation)
    news = await read_news(desk.database, tenant, after=place, most=EVENTS_PER_STEP)
    until = EPOCH + int(request["until_us"]) * MICROSECOND
    due = [one for one in news if one.arrived_at <= until]
    if not due:
        return Step(operation=operation, wait=None)
    told = 0

    async def tell(inner: Desk) -> None:
        nonlocal told
        if inner.connection is not None:
            told = await _tell_missing(inner, tenant, UUID(str(request["endpoint"])), due)

    last = due[-1]
    counted = {"looked_at": 0, "sent": 0, **operation.result}
    moved = replace(
        operation,
        done=operation.done + 1,
        cursor=f"{to_us(last.arrived_at)}:{last.id}",
        result={**counted, "looked_at": counted["looked_at"] + len(due)},
    )
    moved = await forward(desk, moved, tell, tenant=tenant)
    return Step(operation=replace(moved, result={**moved.result, "sent": counted["sent"] + told}))


def _read_cursor(operation: Operation) -> tuple[datetime, UUID]:
    if operation.cursor is None:
        return EPOCH + int(operation.request["since_us"]) * MICROSECOND, FIRST
    microseconds, _, event = operation.cursor.partition(":")
    return EPOCH + int(microseconds) * MICROSECOND, UUID(event)


async def _tell_missing(desk: Desk, tenant: TenantId, identity: UUID, news: list[News]) -> int:
    connection = desk.connection
    if connection is None:
        return 0
    endpoint = await read_endpoint(connection, tenant, identity)
    if endpoint is None:
        raise NotFound("the endpoint is gone")
    now = await desk.now(connection)
    wanted = await _wanted(connection, endpoint, news)
    fresh = await hand_out(
        connection, tenant, [Handout(one, endpoint.id) for one in wanted], now=now
    )
    again = await sent.redeliver_failed(
        connection, tenant, [delivery_id(one.id, endpoint.id) for one in wanted], now=now
    )
    if again and endpoint.disabled_at is None:
        await wake_mailbox(connection, endpoint, due_at=now)
    desk.hints.wake(DELIVER)
    return fresh + len(again)


async def _wanted(connection: Connection, endpoint: Endpoint, news: list[News]) -> list[News]:
    labels = {}
    if endpoint.filter.needs_tags:
        jobs, runs = subjects_of(news, with_tags=True)
        labels = await read_labels(connection, endpoint.tenant, jobs=jobs, runs=runs)
    return [one for one in news if hears(endpoint, one, labels_of(one, labels).tags)]
