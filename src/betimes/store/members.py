"""Members, sessions and grants in the store. What is secret comes and goes as a digest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.ask import execute, many, maybe
from betimes.store.database import Database
from betimes.store.jobs import from_json
from betimes.store.pool import Connection, Lane
from betimes.store.queries import load

SQL = load("members")
GRANTS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Somebody who belongs to a tenant."""

    id: UUID
    email: str
    name: str
    role: str
    created_at: datetime
    updated_at: datetime
    revision: int = 1
    created_by: str | None = None
    signed_in_at: datetime | None = None
    code_until: datetime | None = None
    has_password: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A member with what a password is compared with."""

    tenant: TenantId
    id: UUID
    password: bytes | None
    salt: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session that is still good, and whose it is."""

    tenant: TenantId
    member: UUID | None
    key: str | None
    name: str | None
    role: str | None
    expires_at: datetime
    seen_at: datetime
    tenant_slug: str
    tenant_state: int
    tenant_reason: str | None
    timezone: str
    quotas: Mapping[str, Any]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What became of the wish of a device."""

    name: str
    state: int
    tenant: TenantId | None
    scopes: tuple[str, ...]
    answered_by: str | None
    expires_at: datetime
    polled_at: datetime | None
    key_until: datetime | None = None
    """When the device's key ends, once somebody has said yes."""


async def list_members(
    connection: Connection, tenant: TenantId, *, after: UUID, most: int
) -> list[Member]:
    """A page of members."""
    rows = await many(connection, SQL["list_members"], tenant=tenant, after=after, most=most)
    return [Member(**dict(row)) for row in rows]


async def read_member(connection: Connection, tenant: TenantId, member: UUID) -> Member | None:
    """One member."""
    row = await maybe(connection, SQL["read_member"], tenant=tenant, id=member)
    return None if row is None else Member(**dict(row))


async def insert_member(
    connection: Connection, tenant: TenantId, member: Member, *, code: bytes
) -> bool:
    """Keep a new member; False when the address is taken."""
    row = await maybe(
        connection,
        SQL["insert_member"],
        tenant=tenant,
        id=member.id,
        email=member.email,
        name=member.name,
        role=member.role,
        code=code,
        code_until=member.code_until,
        now=member.created_at,
        created_by=member.created_by,
    )
    return row is not None


async def change_member(
    connection: Connection, tenant: TenantId, member: Member, *, code: bytes | None
) -> int | None:
    """Store a member over the revision it was read at; the new one, or None."""
    row = await maybe(
        connection,
        SQL["change_member"],
        tenant=tenant,
        id=member.id,
        name=member.name,
        role=member.role,
        code=code,
        code_until=None if code is None else member.code_until,
        revision=member.revision,
        now=member.updated_at,
    )
    return None if row is None else int(row["revision"])


async def delete_member(connection: Connection, tenant: TenantId, member: UUID) -> bool:
    """Forget a member."""
    return await maybe(connection, SQL["delete_member"], tenant=tenant, id=member) is not None


async def find_sign_in(database: Database, slug: str, email: str) -> SignIn | None:
    """Who might have this address; asked by the system, because nobody is known yet."""
    row = await database.maybe(SQL["find_sign_in"], lane=Lane.API, slug=slug, email=email)
    if row is None:
        return None
    return SignIn(tenant=row["tenant_id"], id=row["id"], password=row["password"], salt=row["salt"])


async def use_code(
    connection: Connection,
    code: bytes,
    *,
    password: bytes | None,
    salt: bytes | None,
    now: datetime,
) -> tuple[TenantId, UUID] | None:
    """Use up a code; whose it was."""
    row = await maybe(connection, SQL["use_code"], code=code, password=password, salt=salt, now=now)
    return None if row is None else (row["tenant_id"], row["id"])


async def insert_session(
    connection: Connection,
    digest: bytes,
    *,
    tenant: TenantId,
    member: UUID | None,
    key: str | None,
    now: datetime,
    expires_at: datetime,
) -> None:
    """Keep a session."""
    await execute(
        connection,
        SQL["insert_session"],
        digest=digest,
        tenant=tenant,
        member=member,
        key_text=key,
        now=now,
        expires_at=expires_at,
    )
    if member is not None:
        await execute(connection, SQL["note_sign_in"], tenant=tenant, id=member, now=now)


async def read_session(
    database: Database, digest: bytes, *, now: datetime, idle_since: datetime
) -> SessionRow | None:
    """A session that is still good."""
    row = await database.maybe(
        SQL["read_session"], lane=Lane.API, digest=digest, now=now, idle_since=idle_since
    )
    return None if row is None else session_of(row)


async def see_session(database: Database, digest: bytes, *, now: datetime) -> None:
    """Remember that it is in use."""
    await database.many(SQL["see_session"], lane=Lane.API, digest=digest, now=now)


async def end_session(connection: Connection, digest: bytes) -> bool:
    """Forget a session."""
    return await maybe(connection, SQL["end_session"], digest=digest) is not None


async def insert_grant(
    database: Database,
    digest: bytes,
    *,
    user_code: str,
    name: str,
    now: datetime,
    expires_at: datetime,
) -> bool:
    """Keep the wish of a device; False when there is no room."""
    row = await database.maybe(
        SQL["insert_grant"],
        lane=Lane.API,
        digest=digest,
        user_code=user_code,
        name=name,
        now=now,
        expires_at=expires_at,
        most=GRANTS_MAX,
    )
    return row is not None


async def answer_grant(
    connection: Connection,
    user_code: str,
    *,
    granted: bool,
    tenant: TenantId,
    scopes: Sequence[str],
    by: str,
    key_until: datetime,
    now: datetime,
) -> str | None:
    """Say yes or no; the name of the device, or None when nobody waits."""
    row = await maybe(
        connection,
        SQL["answer_grant"],
        user_code=user_code,
        state=1 if granted else 2,
        tenant=tenant,
        scopes=list(scopes),
        by=by,
        key_until=key_until,
        now=now,
    )
    return None if row is None else str(row["name"])


async def poll_grant(connection: Connection, digest: bytes, *, now: datetime) -> Grant | None:
    """What became of a wish."""
    row = await maybe(connection, SQL["poll_grant"], digest=digest, now=now)
    if row is None:
        return None
    return Grant(
        name=row["name"],
        state=row["state"],
        tenant=row["tenant_id"],
        scopes=tuple(row["scopes"]),
        answered_by=row["answered_by"],
        expires_at=row["expires_at"],
        polled_at=row["polled_at"],
        key_until=row["key_until"],
    )


async def redeem_grant(connection: Connection, digest: bytes) -> bool:
    """Use up a wish that was granted; False when somebody has."""
    return await maybe(connection, SQL["redeem_grant"], digest=digest) is not None


def session_of(row: asyncpg.Record) -> SessionRow:
    """A row as a session."""
    return SessionRow(
        tenant=row["tenant_id"],
        member=row["member_id"],
        key=row["key_id"],
        name=row["name"],
        role=row["role"],
        expires_at=row["expires_at"],
        seen_at=row["seen_at"],
        tenant_slug=row["tenant_slug"],
        tenant_state=row["tenant_state"],
        tenant_reason=row["tenant_reason"],
        timezone=row["tenant_timezone"],
        quotas=from_json(row["tenant_quotas"]),
        settings=from_json(row["tenant_settings"]),
    )
