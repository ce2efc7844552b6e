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
from betimes.domain.event import is_pattern
from betimes.domain.ids import TenantId, random_ids, to_ms
from betimes.domain.notice import Filter
from betimes.ops.checks import check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.secrets import vault_of
from betimes.ops.vault import Sealed, Vault
from betimes.store import endpoints as rows
from betimes.store.endpoints import Endpoint, MailboxView
from betimes.store.hints import DELIVER, ROUTE
from betimes.store.pool import Connection
from betimes.store.routing import read_arrival_clock

__all__ = [
    "Endpoint",
    "Filter",
    "MailboxView",
    "Notifying",
    "active_secrets",
    "change_endpoint",
    "create_endpoint",
    "delete_endpoint",
    "enable_endpoint",
    "get_endpoint",
    "list_endpoints",
    "name_endpoints",
    "new_endpoint",
    "open_credential",
    "reseal_credentials",
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
    """What endpoints need beyond the desk: a key for signing secrets, and bounds."""

    secret_key: bytes = field(repr=False)
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


async def create_endpoint(
    desk: Desk, endpoint: Endpoint, *, most: int, credential: bytes | None = None
) -> Endpoint:
    """Keep it, its credential sealed; from now on it is told what it wants to know."""

    async def work(connection: Connection) -> Endpoint:
        if await rows.count_endpoints(connection, endpoint.tenant) >= most:
            known = await rows.read_endpoint(connection, endpoint.tenant, endpoint.id)
            if known is None:
                raise OverQuota(f"a tenant has at most {most} endpoints")
        fresh = replace(endpoint, listens_since=await read_arrival_clock(connection))
        fresh = await _sealed(desk, connection, fresh, credential)
        await rows.insert_endpoint(connection, fresh)
        return fresh

    made = await desk.transact(work, tenant=endpoint.tenant)
    desk.hints.wake(ROUTE)
    return made


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


async def name_endpoints(desk: Desk, tenant: TenantId) -> dict[UUID, str]:
    """What the endpoints of a tenant are called, by their ids."""

    async def work(connection: Connection) -> dict[UUID, str]:
        return await rows.name_endpoints(connection, tenant)

    return await desk.transact(work, tenant=tenant)


async def get_endpoint(
    desk: Desk, tenant: TenantId, endpoint: UUID
) -> tuple[Endpoint, MailboxView | None]:
    """One endpoint, and how it fares."""

    async def work(connection: Connection) -> tuple[Endpoint, MailboxView | None]:
        found = await required(connection, tenant, endpoint)
        return found, (await rows.read_mailboxes(connection, [found])).get(endpoint)

    return await desk.transact(work, tenant=tenant)


async def change_endpoint(
    desk: Desk,
    endpoint: Endpoint,
    changed: Endpoint,
    *,
    disabled: bool | None,
    credential: bytes | None = None,
) -> Endpoint:
    """Write what changed over the revision that was read; also whether it is told anything."""
    _check(changed.name, changed.event_types)

    async def work(connection: Connection) -> Endpoint:
        now = await desk.now(connection)
        fresh = replace(changed, updated_at=now)
        fresh = await _sealed(desk, connection, fresh, credential)
        if disabled is not None:
            arrival = await read_arrival_clock(connection)
            fresh = _switched(endpoint, fresh, disabled=disabled, now=now, arrival=arrival)
        stored = await _written(connection, endpoint, fresh)
        if stored.disabled_at is not None:
            await rows.close_mailbox(connection, stored)
        elif endpoint.disabled_at is not None:
            await rows.open_mailbox(connection, stored, due_at=now)
        return stored

    written = await desk.transact(work, tenant=endpoint.tenant)
    desk.hints.wake(DELIVER)
    return written


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


def _place(endpoint: UUID) -> tuple[object, ...]:
    return "endpoints", endpoint, "secret"


async def _sealed(
    desk: Desk, connection: Connection, endpoint: Endpoint, credential: bytes | None
) -> Endpoint:
    """The one place where credentials of endpoints are sealed."""
    if credential is None:
        return endpoint
    vault = vault_of(desk)
    sealed = await vault.seal(connection, endpoint.tenant, _place(endpoint.id), credential)
    return replace(endpoint, sealed=sealed.content, key_version=sealed.key_version)


async def open_credential(vault: Vault, connection: Connection, endpoint: Endpoint) -> bytes | None:
    """The one place where they are opened."""
    if endpoint.sealed is None:
        return None
    sealed = Sealed(endpoint.key_version, endpoint.sealed)
    return await vault.open(connection, endpoint.tenant, _place(endpoint.id), sealed)


async def reseal_credentials(
    connection: Connection, vault: Vault, tenant: TenantId, *, most: int
) -> int:
    """Seal some credentials anew under the newest data key; how many were looked at."""
    newest = await vault.newest(connection, tenant)
    found = await rows.under_old_keys(connection, tenant, newest=newest, most=most)
    for endpoint, content, was in found:
        place = _place(endpoint)
        opened = await vault.open(connection, tenant, place, Sealed(was, content))
        fresh = await vault.seal(connection, tenant, place, opened)
        await rows.reseal(
            connection,
            tenant,
            endpoint,
            sealed=fresh.content,
            key_version=fresh.key_version,
            was=was,
        )
    return len(found)


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
        found = await required(connection, before.tenant, before.id)
        if found != replace(fresh, revision=found.revision, updated_at=found.updated_at):
            raise VersionMismatch("the endpoint was changed meanwhile; read it again")
        return found
    return replace(fresh, revision=revision)


async def required(connection: Connection, tenant: TenantId, endpoint: UUID) -> Endpoint:
    """One endpoint, inside a transaction."""
    found = await rows.read_endpoint(connection, tenant, endpoint)
    if found is None:
        raise NotFound("there is no such endpoint")
    return found
