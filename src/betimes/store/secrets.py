"""Secrets in the store: sealed rows in, sealed rows out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.ask import many, maybe, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("secrets")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretName:
    """A secret as it may be shown: never what it is."""

    name: str
    version: int
    versions: int
    created_at: datetime
    updated_at: datetime
    created_by: str | None
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretVersion:
    """One version of a secret, sealed."""

    name: str
    version: int
    key_version: int
    created_at: datetime
    created_by: str | None
    sealed: bytes
    origins: tuple[str, ...]
    """Where it may be sent; the same for every version."""


async def list_secrets(
    connection: Connection, tenant: TenantId, *, after: str, most: int
) -> list[SecretName]:
    """A page of names."""
    rows = await many(connection, SQL["list_secrets"], tenant=tenant, after=after, most=most)
    return [SecretName(**{**row, "origins": tuple(row["origins"])}) for row in rows]


async def read_secret(connection: Connection, tenant: TenantId, name: str) -> list[SecretVersion]:
    """Every version of a secret, newest first; none when there is no such secret."""
    rows = await many(connection, SQL["read_secret"], tenant=tenant, name=name)
    return [version_of(row) for row in rows]


async def read_secrets(
    connection: Connection, tenant: TenantId, names: Sequence[str]
) -> list[SecretVersion]:
    """Every version of some secrets, newest first."""
    rows = await many(connection, SQL["read_secrets"], tenant=tenant, names=list(names))
    return [version_of(row) for row in rows]


async def count_secrets(connection: Connection, tenant: TenantId) -> int:
    """How many secrets a tenant has."""
    return int((await one(connection, SQL["count_secrets"], tenant=tenant))["secrets"])


async def insert_secret(connection: Connection, tenant: TenantId, secret: SecretVersion) -> bool:
    """Keep a new version; False when somebody else was quicker."""
    row = await maybe(
        connection,
        SQL["insert_secret"],
        tenant=tenant,
        name=secret.name,
        version=secret.version,
        key_version=secret.key_version,
        now=secret.created_at,
        created_by=secret.created_by,
        sealed=secret.sealed,
        origins=list(secret.origins),
    )
    return row is not None


async def bind_secret(
    connection: Connection, tenant: TenantId, name: str, origins: Sequence[str]
) -> None:
    """Say where a secret may be sent."""
    await many(connection, SQL["bind_secret"], tenant=tenant, name=name, origins=list(origins))


async def read_bindings(
    connection: Connection, tenant: TenantId, names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Where secrets may be sent; those that do not exist are missing."""
    rows = await many(connection, SQL["read_bindings"], tenant=tenant, names=list(names))
    return {row["name"]: tuple(row["origins"]) for row in rows}


async def forget_before(connection: Connection, tenant: TenantId, name: str, before: int) -> None:
    """Forget older versions of a secret."""
    await many(connection, SQL["forget_old_versions"], tenant=tenant, name=name, before=before)


async def delete_secret(
    connection: Connection, tenant: TenantId, name: str, *, version: int | None
) -> int:
    """Forget a secret or one version of it; how many versions went."""
    rows = await many(connection, SQL["delete_secret"], tenant=tenant, name=name, version=version)
    return len(rows)


async def under_old_keys(
    connection: Connection, tenant: TenantId, *, newest: int, most: int
) -> list[SecretVersion]:
    """Some secrets that are sealed under an older data key."""
    rows = await many(
        connection, SQL["secrets_under_old_keys"], tenant=tenant, newest=newest, most=most
    )
    return [version_of(row) for row in rows]


async def reseal(
    connection: Connection, tenant: TenantId, secret: SecretVersion, *, was: int
) -> bool:
    """Keep a secret under a newer data key; False when somebody else has moved it."""
    row = await maybe(
        connection,
        SQL["reseal_secret"],
        tenant=tenant,
        name=secret.name,
        version=secret.version,
        key_version=secret.key_version,
        sealed=secret.sealed,
        was=was,
    )
    return row is not None


def version_of(row: asyncpg.Record) -> SecretVersion:
    """A row as a value."""
    return SecretVersion(**{**row, "origins": tuple(row["origins"])})
