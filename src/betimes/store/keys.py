"""API keys in the store: rows in, values out. What is secret comes and goes as a digest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.ask import execute, many, maybe, one
from betimes.store.database import Database
from betimes.store.jobs import from_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key as it may be shown."""

    id: str
    tenant: TenantId
    name: str
    kind: str
    scopes: tuple[str, ...]
    queues: tuple[str, ...] | None
    networks: tuple[str, ...] | None
    created_at: datetime
    created_by: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    replaces: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A key with its digest, and what its tenant allows."""

    key: ApiKey
    digest: bytes
    tenant_slug: str
    tenant_state: int
    tenant_reason: str | None
    timezone: str
    quotas: Mapping[str, Any]
    settings: Mapping[str, Any]


async def read_credential(database: Database, key: str) -> Credential | None:
    """A key by its public id; asked by the system, because nobody is known yet."""
    row = await database.maybe(SQL["read_key"], lane=Lane.API, id=key)
    if row is None:
        return None
    return Credential(
        key=key_of(row),
        digest=row["digest"],
        tenant_slug=row["tenant_slug"],
        tenant_state=row["tenant_state"],
        tenant_reason=row["tenant_reason"],
        timezone=row["tenant_timezone"],
        quotas=from_json(row["tenant_quotas"]),
        settings=from_json(row["tenant_settings"]),
    )


async def read_tenant_state(database: Database, tenant: TenantId) -> tuple[int, str | None] | None:
    """Whether a tenant is open, and why not; None when there is none."""
    row = await database.maybe(SQL["read_tenant_state"], lane=Lane.API, tenant=tenant)
    return None if row is None else (row["state"], row["state_reason"])


async def insert_key(connection: Connection, key: ApiKey, digest: bytes) -> None:
    """Keep a new key."""
    await execute(
        connection,
        SQL["insert_key"],
        id=key.id,
        tenant=key.tenant,
        name=key.name,
        kind=key.kind,
        digest=digest,
        scopes=list(key.scopes),
        queues=None if key.queues is None else list(key.queues),
        networks=None if key.networks is None else list(key.networks),
        now=key.created_at,
        created_by=key.created_by,
        expires_at=key.expires_at,
        replaces=key.replaces,
    )


async def change_key(connection: Connection, key: ApiKey) -> bool:
    """Store name, scopes, bindings and expiry; False when it is gone or revoked."""
    row = await maybe(
        connection,
        SQL["change_key"],
        id=key.id,
        tenant=key.tenant,
        name=key.name,
        scopes=list(key.scopes),
        queues=None if key.queues is None else list(key.queues),
        networks=None if key.networks is None else list(key.networks),
        expires_at=key.expires_at,
    )
    return row is not None


async def revoke_key(connection: Connection, tenant: TenantId, key: str, now: datetime) -> bool:
    """Revoke; False when there is no such key."""
    row = await maybe(connection, SQL["revoke_key"], id=key, tenant=tenant, now=now)
    return row is not None


async def read_key(connection: Connection, tenant: TenantId, key: str) -> ApiKey | None:
    """One key of a tenant."""
    row = await maybe(connection, SQL["read_own_key"], id=key, tenant=tenant)
    return None if row is None else key_of(row)


async def lock_key(connection: Connection, tenant: TenantId, key: str) -> ApiKey | None:
    """The same, for whoever is about to write it: others wait until the transaction ends."""
    row = await maybe(connection, SQL["lock_own_key"], id=key, tenant=tenant)
    return None if row is None else key_of(row)


async def list_keys(
    connection: Connection, tenant: TenantId, *, after: tuple[datetime, str], most: int
) -> list[ApiKey]:
    """A page of keys."""
    rows = await many(
        connection,
        SQL["list_keys"],
        tenant=tenant,
        after_at=after[0],
        after_id=after[1],
        most=most,
    )
    return [key_of(row) for row in rows]


async def note_use(database: Database, keys: Sequence[str], now: datetime) -> None:
    """Remember when keys were last used."""
    await database.many(SQL["note_use"], lane=Lane.API, ids=list(keys), now=now)


async def count_keys(connection: Connection, tenant: TenantId, now: datetime) -> int:
    """How many keys of a tenant may be used."""
    return int((await one(connection, SQL["count_keys"], tenant=tenant, now=now))["keys"])


async def count_admins(connection: Connection) -> int:
    """How many administrator's keys may be used."""
    return int((await one(connection, SQL["count_admins"]))["keys"])


async def adopt_pepper(database: Database, check: bytes) -> bytes:
    """The check of the pepper this database is used with; ours if it had none."""
    row = await database.maybe(SQL["adopt_pepper"], lane=Lane.API, check=check)
    kept: bytes = b"" if row is None else row["pepper_check"]
    return kept


def key_of(row: asyncpg.Record) -> ApiKey:
    """A row as a key."""
    return ApiKey(
        id=row["id"],
        tenant=row["tenant_id"],
        name=row["name"],
        kind=row["kind"],
        scopes=tuple(row["scopes"]),
        queues=None if row["queues"] is None else tuple(row["queues"]),
        networks=None if row["networks"] is None else tuple(row["networks"]),
        created_at=row["created_at"],
        created_by=row["created_by"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
        replaces=row["replaces"],
    )
