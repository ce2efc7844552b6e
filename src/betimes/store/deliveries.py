"""Mailboxes and deliveries in the store.

A mailbox is emptied by one dispatcher at a time, which holds it by lease. So an endpoint meets no
more requests at once than it may, roughly in the order of events. A delivery is marked after it was
sent; whoever dies in between leaves it to be sent again, under the same id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.errors import FencedOut
from betimes.domain.event import DISABLED
from betimes.domain.ids import ShardId, TenantId, shard_of
from betimes.domain.notice import DeliveryState, Health, Sent, Step
from betimes.store.ask import execute, many, maybe
from betimes.store.audit import EventRow
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("deliveries")
LEASE = timedelta(seconds=60)
"""Longer than anything that is sent may take."""
ERROR_LENGTH_MAX = 500


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A mailbox that we hold."""

    shard: ShardId
    endpoint: UUID
    tenant: TenantId
    owner: UUID
    fence: int
    health: Health

    def grip(self) -> dict[str, Any]:
        """What every write repeats."""
        return {
            "shard": self.shard,
            "id": self.endpoint,
            "owner": self.owner,
            "fence": self.fence,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A delivery that is due."""

    id: UUID
    event: UUID
    type: str
    attempt: int
    is_test: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of one attempt."""

    delivery: UUID
    sent: Sent
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery as it is kept."""

    id: UUID
    endpoint: UUID
    event: UUID
    type: str
    state: DeliveryState
    attempt: int
    is_test: bool
    created_at: datetime
    due_at: datetime | None
    attempted_at: datetime | None
    finished_at: datetime | None
    status: int | None
    error: str | None
    response: Mapping[str, Any]

    @property
    def shard(self) -> ShardId:
        """The shard of its endpoint."""
        return shard_of(self.id)


async def claim_mailboxes(
    connection: Connection, owner: UUID, *, most: int, now: datetime | None
) -> list[Mailbox]:
    """Take mailboxes in which something is due."""
    claimed = []
    for row in await many(connection, SQL["find_due_mailboxes"], now=now, most=most):
        shard, endpoint = row["shard"], row["endpoint_id"]
        held = await maybe(
            connection,
            SQL["claim_mailbox"],
            shard=shard,
            id=endpoint,
            owner=owner,
            ttl=LEASE,
            now=now,
        )
        if held is not None:
            health = Health(
                failures=held["failures"],
                failing_since=held["failing_since"],
                held_until=held["held_until"],
            )
            claimed.append(Mailbox(shard, endpoint, row["tenant_id"], owner, held["fence"], health))
    return claimed


async def due_deliveries(
    connection: Connection, mailbox: Mailbox, *, only_tests: bool, most: int, now: datetime | None
) -> list[Waiting]:
    """What to send next."""
    rows = await many(
        connection,
        SQL["due_deliveries"],
        shard=mailbox.shard,
        endpoint=mailbox.endpoint,
        only_tests=only_tests,
        most=most,
        now=now,
    )
    return [
        Waiting(
            id=row["id"],
            event=row["event_id"],
            type=row["event_type"],
            attempt=row["attempt"],
            is_test=row["is_test"],
            created_at=row["created_at"],
        )
        for row in rows
    ]


async def read_told(
    connection: Connection, tenant: TenantId, events: Sequence[UUID]
) -> dict[UUID, EventRow]:
    """Events by id; those that are kept no longer are missing."""
    rows = await many(
        connection,
        SQL["read_told"],
        tenant=tenant,
        shards=[shard_of(one) for one in events],
        ids=list(events),
    )
    return {
        row["id"]: EventRow(
            id=row["id"],
            type=row["type"],
            subject=row["subject"],
            body=from_json(row["body"]),
            created_at=row["created_at"],
        )
        for row in rows
    }


async def hold(connection: Connection, mailbox: Mailbox, *, now: datetime | None) -> datetime:
    """Lock a mailbox that is ours; the time. What follows sees everything put into it before."""
    row = await maybe(connection, SQL["hold_mailbox"], **mailbox.grip(), now=now)
    if row is None:
        raise FencedOut("the mailbox is somebody else's now")
    held_at: datetime = row["now"]
    return held_at


async def mark(
    connection: Connection, mailbox: Mailbox, done: Sequence[Done], *, now: datetime
) -> None:
    """Write down what came of attempts, under the lock of `hold`."""
    ids = [one.delivery for one in done]
    await execute(
        connection,
        SQL["mark_deliveries"],
        shard=mailbox.shard,
        ids=ids,
        states=[int(one.step.state) for one in done],
        attempts=[one.step.attempt for one in done],
        due=[one.step.due_at for one in done],
        statuses=[one.sent.status for one in done],
        errors=[None if one.sent.ok else one.sent.detail[:ERROR_LENGTH_MAX] for one in done],
        responses=[to_json(one.sent.response) for one in done],
        low=min(ids),
        high=max(ids),
        now=now,
    )


async def note_health(
    connection: Connection, mailbox: Mailbox, done: Sequence[Done], *, now: datetime
) -> None:
    """Write down how the endpoint fares, and hold on to its mailbox."""
    failed = [one.sent for one in done if not one.sent.ok]
    await execute(
        connection,
        SQL["note_health"],
        **mailbox.grip(),
        failures=mailbox.health.failures,
        failing_since=mailbox.health.failing_since,
        held_until=mailbox.health.held_until,
        success_at=now if len(failed) < len(done) else None,
        failure_at=now if failed else None,
        error=failed[-1].detail[:ERROR_LENGTH_MAX] if failed else None,
        lease_until=now + LEASE,
    )


async def release(
    connection: Connection, mailbox: Mailbox, *, only_tests: bool, not_before: datetime | None
) -> None:
    """Let go, under the lock of `hold`, until something is due."""
    row = await maybe(
        connection,
        SQL["first_due"],
        shard=mailbox.shard,
        endpoint=mailbox.endpoint,
        only_tests=only_tests,
    )
    due = None if row is None else row["due_at"]
    if due is not None and not_before is not None:
        due = max(due, not_before)
    await execute(connection, SQL["release_mailbox"], **mailbox.grip(), next_due_at=due)


async def tell_disabled(
    connection: Connection,
    tenant: TenantId,
    *,
    event: UUID,
    subject: str,
    body: Mapping[str, Any],
    now: datetime,
) -> None:
    """Tell that nothing more is sent to an endpoint."""
    await tell(connection, tenant, DISABLED, event=event, subject=subject, body=body, now=now)


async def tell(
    connection: Connection,
    tenant: TenantId,
    kind: str,
    *,
    event: UUID,
    subject: str,
    body: Mapping[str, Any],
    now: datetime,
) -> None:
    """Write an event."""
    await execute(
        connection,
        SQL["tell_endpoint"],
        shard=shard_of(event),
        id=event,
        tenant=tenant,
        type=kind,
        subject=subject,
        body=to_json(body),
        now=now,
    )


async def insert_test(
    connection: Connection,
    tenant: TenantId,
    *,
    delivery: UUID,
    endpoint: UUID,
    event: UUID,
    kind: str,
    now: datetime,
) -> None:
    """Put a test into a mailbox."""
    await execute(
        connection,
        SQL["insert_test"],
        shard=shard_of(delivery),
        id=delivery,
        tenant=tenant,
        endpoint=endpoint,
        event=event,
        type=kind,
        now=now,
    )


async def list_deliveries(
    connection: Connection,
    tenant: TenantId,
    endpoint: UUID,
    *,
    before: UUID,
    states: Sequence[DeliveryState],
    types: Sequence[str],
    most: int,
) -> list[Delivery]:
    """A page of deliveries, newest first."""
    rows = await many(
        connection,
        SQL["list_deliveries"],
        shard=shard_of(endpoint),
        endpoint=endpoint,
        tenant=tenant,
        before_id=before,
        states=[int(state) for state in states] or None,
        types=list(types) or None,
        most=most,
    )
    return [delivery_of(row) for row in rows]


async def read_delivery(
    connection: Connection, tenant: TenantId, delivery: UUID
) -> Delivery | None:
    """One delivery of a tenant."""
    row = await maybe(
        connection,
        SQL["read_delivery"],
        shard=shard_of(delivery),
        id=delivery,
        tenant=tenant,
    )
    return None if row is None else delivery_of(row)


async def redeliver(
    connection: Connection, tenant: TenantId, deliveries: Sequence[UUID], *, now: datetime
) -> set[UUID]:
    """Let deliveries of one endpoint wait again; those that were over."""
    over = (DeliveryState.DELIVERED, DeliveryState.FAILED)
    return await _wait_again(connection, tenant, deliveries, states=over, now=now)


async def redeliver_failed(
    connection: Connection, tenant: TenantId, deliveries: Sequence[UUID], *, now: datetime
) -> set[UUID]:
    """The same for those that were given up."""
    states = (DeliveryState.FAILED,)
    return await _wait_again(connection, tenant, deliveries, states=states, now=now)


async def _wait_again(
    connection: Connection,
    tenant: TenantId,
    deliveries: Sequence[UUID],
    *,
    states: Sequence[DeliveryState],
    now: datetime,
) -> set[UUID]:
    if not deliveries:
        return set()
    rows = await many(
        connection,
        SQL["redeliver"],
        shard=shard_of(deliveries[0]),
        tenant=tenant,
        ids=list(deliveries),
        low=min(deliveries),
        high=max(deliveries),
        states=[int(state) for state in states],
        now=now,
    )
    return {row["id"] for row in rows}


def delivery_of(row: asyncpg.Record) -> Delivery:
    """A row as a delivery."""
    return Delivery(
        id=row["id"],
        endpoint=row["endpoint_id"],
        event=row["event_id"],
        type=row["event_type"],
        state=DeliveryState(row["state"]),
        attempt=row["attempt"],
        is_test=row["is_test"],
        created_at=row["created_at"],
        due_at=row["due_at"],
        attempted_at=row["attempted_at"],
        finished_at=row["finished_at"],
        status=row["status"],
        error=row["error"],
        response=from_json(row["response"]),
    )
