"""Deliveries: what was sent to endpoints, tests among it, and sending it again."""

from collections.abc import Sequence
from hashlib import blake2b
from uuid import UUID

from betimes.domain.errors import NotFound
from betimes.domain.event import TEST
from betimes.domain.ids import TenantId, random_ids, shard_of, to_ms, to_text
from betimes.domain.notice import DeliveryState, delivery_id
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.endpoints import Endpoint, required
from betimes.ops.sayings import open_deliveries
from betimes.store import deliveries as sent
from betimes.store import endpoints as rows
from betimes.store.deliveries import Delivery
from betimes.store.hints import DELIVER
from betimes.store.pool import Connection

__all__ = [
    "Delivery",
    "DeliveryState",
    "get_delivery",
    "list_deliveries",
    "put_test",
    "redeliver",
]


async def put_test(desk: Desk, endpoint: Endpoint, *, request: str) -> UUID:
    """Put a test into its mailbox; the id of the delivery, the same for the same request."""
    now = desk.clock.now()
    digest = blake2b(f"{endpoint.id}{request}".encode(), digest_size=TAIL_BYTES).digest()
    (event,) = random_ids(to_ms(now), endpoint.shard, digest)
    delivery = delivery_id(event, endpoint.id)
    subject = to_text("ep", endpoint.id)

    async def work(connection: Connection) -> UUID:
        at = await desk.now(connection)
        body = {"endpoint_id": subject, "name": endpoint.name}
        await sent.tell(
            connection, endpoint.tenant, TEST, event=event, subject=subject, body=body, now=at
        )
        await sent.insert_test(
            connection,
            endpoint.tenant,
            delivery=delivery,
            endpoint=endpoint.id,
            event=event,
            kind=TEST,
            now=at,
        )
        await rows.wake_mailbox(connection, endpoint, due_at=at)
        return delivery

    put = await desk.transact(work, tenant=endpoint.tenant)
    desk.hints.wake(DELIVER)
    return put


async def list_deliveries(
    desk: Desk,
    tenant: TenantId,
    endpoint: UUID,
    *,
    before: UUID,
    states: Sequence[DeliveryState],
    types: Sequence[str],
    most: int,
) -> list[Delivery]:
    """A page of deliveries to an endpoint, newest first."""

    async def work(connection: Connection) -> list[Delivery]:
        await required(connection, tenant, endpoint)
        found = await sent.list_deliveries(
            connection, tenant, endpoint, before=before, states=states, types=types, most=most
        )
        return await open_deliveries(desk, connection, tenant, found)

    return await desk.transact(work, tenant=tenant)


async def get_delivery(desk: Desk, tenant: TenantId, delivery: UUID) -> Delivery:
    """One delivery."""

    async def work(connection: Connection) -> Delivery:
        return await _delivery(desk, connection, tenant, delivery)

    return await desk.transact(work, tenant=tenant)


async def redeliver(desk: Desk, tenant: TenantId, delivery: UUID) -> Delivery:
    """Send a delivery that is over once more, under the same id."""

    async def work(connection: Connection) -> Delivery:
        found = await _delivery(desk, connection, tenant, delivery)
        endpoint = await required(connection, tenant, found.endpoint)
        now = await desk.now(connection)
        await sent.redeliver(connection, tenant, [delivery], now=now)
        if endpoint.disabled_at is None:
            await rows.wake_mailbox(connection, endpoint, due_at=now)
        return await _delivery(desk, connection, tenant, delivery)

    again = await desk.transact(work, tenant=tenant)
    desk.hints.wake(DELIVER)
    return again


async def _delivery(
    desk: Desk, connection: Connection, tenant: TenantId, delivery: UUID
) -> Delivery:
    found = await sent.read_delivery(connection, tenant, delivery)
    if found is None or shard_of(found.endpoint) != shard_of(delivery):
        raise NotFound("there is no such delivery")
    (opened,) = await open_deliveries(desk, connection, tenant, [found])
    return opened
