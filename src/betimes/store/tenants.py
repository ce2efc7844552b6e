"""Tenants in the store: rows in, values out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, unique
from typing import Any
from uuid import UUID

import asyncpg

from betimes.domain.ids import TenantId
from betimes.store.ask import many, maybe
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("tenants")


@unique
class TenantState(IntEnum):
    """The life of a tenant; the numbers are stored."""

    ACTIVE = 0
    REJECTING = 1
    """Nothing new is accepted; what exists goes on."""
    SUSPENDED = 2
    """Its keys open nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant as it is kept."""

    id: TenantId
    slug: str
    name: str
    timezone: str
    created_at: datetime
    updated_at: datetime
    plan: str = "standard"
    state: TenantState = TenantState.ACTIVE
    state_reason: str | None = None
    weight: float = 1.0
    quotas: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    revision: int = 1


async def find_tenant(connection: Connection, identity: UUID | None, slug: str) -> Tenant | None:
    """One tenant by id or slug."""
    row = await maybe(connection, SQL["find_tenant"], id=identity, slug=slug)
    return None if row is None else tenant_of(row)


async def list_tenants(connection: Connection, *, after: str, most: int) -> list[Tenant]:
    """A page of tenants."""
    rows = await many(connection, SQL["list_tenants"], after=after, most=most)
    return [tenant_of(row) for row in rows]


async def insert_tenant(connection: Connection, tenant: Tenant) -> bool:
    """Make a tenant; False when the slug is taken."""
    row = await maybe(
        connection,
        SQL["insert_tenant"],
        id=tenant.id,
        slug=tenant.slug,
        name=tenant.name,
        timezone=tenant.timezone,
        plan=tenant.plan,
        weight=tenant.weight,
        quotas=to_json(tenant.quotas),
        settings=to_json(tenant.settings),
        now=tenant.created_at,
    )
    return row is not None


async def change_tenant(connection: Connection, tenant: Tenant, *, now: datetime) -> int | None:
    """Store a tenant over the revision it was made from; the new revision, or None."""
    row = await maybe(
        connection,
        SQL["change_tenant"],
        id=tenant.id,
        revision=tenant.revision,
        name=tenant.name,
        timezone=tenant.timezone,
        plan=tenant.plan,
        weight=tenant.weight,
        quotas=to_json(tenant.quotas),
        settings=to_json(tenant.settings),
        state=int(tenant.state),
        state_reason=tenant.state_reason,
        now=now,
    )
    return None if row is None else int(row["revision"])


def tenant_of(row: asyncpg.Record) -> Tenant:
    """A row as a tenant."""
    return Tenant(
        id=row["id"],
        slug=row["slug"],
        name=row["name"],
        timezone=row["timezone"],
        plan=row["plan"],
        state=TenantState(row["state"]),
        state_reason=row["state_reason"],
        weight=row["weight"],
        quotas=from_json(row["quotas"]),
        settings=from_json(row["settings"]),
        revision=row["revision"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
