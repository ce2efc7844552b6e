"""Endpoints: who wants to be told, what of, and what they recognise us by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any
from uuid import UUID

from betimes.domain.errors import (
    Conflict,
    Invalid,
    NotFound,
    OverQuota,
    VersionMismatch,
)
from betimes.domain.event import TEST, is_pattern
from betimes.domain.ids import TenantId, random_ids, shard_of, to_ms, to_text
from betimes.domain.notice import DeliveryState, Filter, delivery_id
from betimes.domain.sealing import Seal
from betimes.ops.checks import check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.store import deliveries as sent
from betimes.store import endpoints as rows
from betimes.store.deliveries import Delivery
from betimes.store.endpoints import Endpoint, MailboxView
from betimes.store.pool import Connection
from betimes.store.routing import read_arrival_clock

__all__ = [
    "Delivery",
    "DeliveryState",
    "Endpoint",
    "Filter",
    "MailboxView",
    "Notifying",
    "active_secrets",
    "change_endpoint",
    "create_endpoint",
    "delete_endpoint",
    "enable_endpoint",
    "get_delivery",
    "get_endpoint",
    "list_deliveries",
    "list_endpoints",
    "new_endpoint",
    "put_test",
    "redeliver",
    "rotate_secret",
    "secret_of",
]

SECRET_BYTES = 32
OVERLAP_MAX = timedelta(days=7)
CONCURRENCY_MAX = 32
ADDRESS_LENGTH_MAX = 254
BY_HAND = "disabled by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notifying:
    """What endpoints need beyond the desk: keys for secrets and credentials, and bounds."""

    secret_key: bytes = field(repr=False)
    seal: Seal
    endpoints_max: int = 100
    rules_max: int = 100
    mail_domains: Sequence[str] | None = None
    """Domains that may be written to; None means that there is no mail at all."""


def secret_of(key: bytes, endpoint: UUID, version: int) -> bytes:
    """A signing secret, never stored: a function of our key, the endpoint and a number."""
    text = endpoint.bytes + version.to_bytes(4, "big")
    return blake2b(text, key=key, digest_size=SECRET_BYTES).digest()


def active_secrets(key: bytes, endpoint: Endpoint, *, now: datetime) -> list[bytes]:
    """What to sign with: the newest, and the one before it while both are good."""
    versions = [endpoint.secret_version]
    if endpoint.secret_until is not None and endpoint.secret_until > now:
        versions.append(endpoint.secret_version - 1)
    return [secret_of(key, endpoint.id, version) for version in versions]


def new_endpoint(
    desk: Desk,
    tenant: TenantId,
    *,
    kind: str,
    name: str,
    address: str,
    sealed: bytes | None,
    event_types: Sequence[str],
    chosen: Filter,
    settings: Mapping[str, Any],
    disabled: bool,
    by: str | None,
) -> Endpoint:
    """An endpoint as it will be kept."""
    now = desk.clock.now()
    (identity,) = random_ids(to_ms(now), desk.next_shard(), desk.entropy(TAIL_BYTES))
    _check(name, event_types)
    return Endpoint(
        id=identity,
        tenant=tenant,
        kind=kind,
        name=name,
        address=address,
        sealed=sealed,
        event_types=tuple(dict.fromkeys(event_types)),
        filter=chosen,
        settings=settings,
        disabled_at=now if disabled else None,
        disabled_reason=BY_HAND if disabled else None,
        created_at=now,
        updated_at=now,
        listens_since=now,
        created_by=by,
    )


def check_mail(address: str, domains: Sequence[str] | None) -> None:
    """A mail address that may be written to."""
    if domains is None:
        raise Invalid("this service has no mail server", pointer="/address")
    check_text(address, what="an address", most=ADDRESS_LENGTH_MAX, pointer="/address")
    name, at, host = address.rpartition("@")
    wrong = not name or not at or not host or any(one in address for one in ' ,;<>"()')
    if wrong or not address.isascii():
        raise Invalid(
            f"expected an address such as ada@example.org, got {address[:50]!r}", pointer="/address"
        )
    if domains and host.lower() not in domains:
        raise Invalid(f"mail to {host} is not allowed here", pointer="/address")


def _check(name: str, event_types: Sequence[str]) -> None:
    check_text(name, what="a name", most=200, pointer="/name")
    for place, pattern in enumerate(event_types):
        if not is_pattern(pattern):
            raise Invalid(
                f"expected an event type, a noun such as run.* or *, got {pattern[:60]!r}",
                pointer=f"/event_types/{place}",
            )


async def create_endpoint(desk: Desk, endpoint: Endpoint, *, most: int) -> Endpoint:
    """Keep it; from now on it is told what it wants to know."""

    async def work(connection: Connection) -> Endpoint:
        if await rows.count_endpoints(connection, endpoint.tenant) >= most:
            known = await rows.read_endpoint(connection, endpoint.tenant, endpoint.id)
            if known is None:
                raise OverQuota(f"a tenant has at most {most} endpoints")
        fresh = replace(endpoint, listens_since=await read_arrival_clock(connection))
        await rows.insert_endpoint(connection, fresh)
        return fresh

    return await desk.transact(work, tenant=endpoint.tenant)


async def list_endpoints(
    desk: Desk, tenant: TenantId, *, after: UUID, callbacks: bool, most: int
) -> list[tuple[Endpoint, MailboxView | None]]:
    """A page of endpoints, and how each fares."""

    async def work(connection: Connection) -> list[tuple[Endpoint, MailboxView | None]]:
        found = await rows.list_endpoints(
            connection, tenant, after=after, callbacks=callbacks, most=most
        )
        boxes = await rows.read_mailboxes(connection, found) if found else {}
        return [(one, boxes.get(one.id)) for one in found]

    return await desk.transact(work, tenant=tenant)


async def get_endpoint(
    desk: Desk, tenant: TenantId, endpoint: UUID
) -> tuple[Endpoint, MailboxView | None]:
    """One endpoint, and how it fares."""

    async def work(connection: Connection) -> tuple[Endpoint, MailboxView | None]:
        found = await _required(connection, tenant, endpoint)
        return found, (await rows.read_mailboxes(connection, [found])).get(endpoint)

    return await desk.transact(work, tenant=tenant)


async def change_endpoint(
    desk: Desk, endpoint: Endpoint, changed: Endpoint, *, disabled: bool | None
) -> Endpoint:
    """Write what changed over the revision that was read; also whether it is told anything."""
    _check(changed.name, changed.event_types)

    async def work(connection: Connection) -> Endpoint:
        now = await desk.now(connection)
        fresh = replace(changed, updated_at=now)
        if disabled is not None:
            arrival = await read_arrival_clock(connection)
            fresh = _switched(endpoint, fresh, disabled=disabled, now=now, arrival=arrival)
        stored = await _written(connection, endpoint, fresh)
        if stored.disabled_at is not None:
            await rows.close_mailbox(connection, stored)
        elif endpoint.disabled_at is not None:
            await rows.open_mailbox(connection, stored, due_at=now)
        return stored

    return await desk.transact(work, tenant=endpoint.tenant)


async def enable_endpoint(desk: Desk, endpoint: Endpoint) -> Endpoint:
    """Send again: what waits goes out, and what happens from now on is told."""
    return await change_endpoint(desk, endpoint, endpoint, disabled=False)


async def rotate_secret(desk: Desk, endpoint: Endpoint, *, overlap: timedelta) -> Endpoint:
    """Sign with a new secret, and with the present one beside it for a while."""
    if endpoint.kind != "webhook":
        raise Conflict("only webhooks are signed", code="invalid_state")
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise Invalid("expected an overlap of at most 7 days", pointer="/overlap")

    async def work(connection: Connection) -> Endpoint:
        now = await desk.now(connection)
        fresh = replace(
            endpoint,
            secret_version=endpoint.secret_version + 1,
            secret_until=now + overlap if overlap else None,
            updated_at=now,
        )
        return await _written(connection, endpoint, fresh)

    return await desk.transact(work, tenant=endpoint.tenant)


async def delete_endpoint(desk: Desk, endpoint: Endpoint) -> Endpoint:
    """Forget it; what waited for it is sent to nobody."""

    async def work(connection: Connection) -> Endpoint:
        await rows.delete_endpoint(connection, endpoint)
        return endpoint

    return await desk.transact(work, tenant=endpoint.tenant)


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

    return await desk.transact(work, tenant=endpoint.tenant)


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
        await _required(connection, tenant, endpoint)
        return await sent.list_deliveries(
            connection, tenant, endpoint, before=before, states=states, types=types, most=most
        )

    return await desk.transact(work, tenant=tenant)


async def get_delivery(desk: Desk, tenant: TenantId, delivery: UUID) -> Delivery:
    """One delivery."""

    async def work(connection: Connection) -> Delivery:
        return await _delivery(connection, tenant, delivery)

    return await desk.transact(work, tenant=tenant)


async def redeliver(desk: Desk, tenant: TenantId, delivery: UUID) -> Delivery:
    """Send a delivery that is over once more, under the same id."""

    async def work(connection: Connection) -> Delivery:
        found = await _delivery(connection, tenant, delivery)
        endpoint = await _required(connection, tenant, found.endpoint)
        now = await desk.now(connection)
        await sent.redeliver(connection, tenant, [delivery], now=now)
        if endpoint.disabled_at is None:
            await rows.wake_mailbox(connection, endpoint, due_at=now)
        return await _delivery(connection, tenant, delivery)

    return await desk.transact(work, tenant=tenant)


def _switched(
    before: Endpoint, fresh: Endpoint, *, disabled: bool, now: datetime, arrival: datetime
) -> Endpoint:
    if disabled == (before.disabled_at is not None):
        return fresh
    if disabled:
        return replace(fresh, disabled_at=now, disabled_reason=BY_HAND)
    return replace(fresh, disabled_at=None, disabled_reason=None, listens_since=arrival)


async def _written(connection: Connection, before: Endpoint, fresh: Endpoint) -> Endpoint:
    revision = await rows.change_endpoint(connection, fresh, replaces=before.revision)
    if revision is None:
        found = await _required(connection, before.tenant, before.id)
        if found != replace(fresh, revision=found.revision, updated_at=found.updated_at):
            raise VersionMismatch("the endpoint was changed meanwhile; read it again")
        return found
    return replace(fresh, revision=revision)


async def _required(connection: Connection, tenant: TenantId, endpoint: UUID) -> Endpoint:
    found = await rows.read_endpoint(connection, tenant, endpoint)
    if found is None:
        raise NotFound("there is no such endpoint")
    return found


async def _delivery(connection: Connection, tenant: TenantId, delivery: UUID) -> Delivery:
    found = await sent.read_delivery(connection, tenant, delivery)
    if found is None or shard_of(found.endpoint) != shard_of(delivery):
        raise NotFound("there is no such delivery")
    return found
