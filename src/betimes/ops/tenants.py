"""Tenants: making and changing them, and acting for one of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from betimes.domain.errors import AlreadyExists, Forbidden, Invalid, NotFound, VersionMismatch
from betimes.domain.ids import TenantId, from_text, random_ids, to_ms, to_text
from betimes.ops.checks import check_reason, check_text
from betimes.ops.desk import TAIL_BYTES, Desk
from betimes.ops.keys import ADMIN, Caller
from betimes.schedule import zone
from betimes.store import tenants as rows
from betimes.store.pool import Connection
from betimes.store.tenants import Tenant, TenantState

__all__ = [
    "QUOTAS",
    "Tenant",
    "acting_for",
    "change_tenant",
    "check_tenant",
    "create_tenant",
    "get_tenant",
    "list_tenants",
    "new_tenant",
    "resumed",
    "suspended",
]

QUOTAS = (
    *("jobs", "active_runs", "backlog", "max_in_flight", "payload_bytes", "queues", "keys"),
    *("creates_per_second", "runs_per_minute", "payload_bytes_per_minute"),
    *("catchup_per_second", "catchup_runs"),
    *("default_per_minute", "create_per_minute", "bulk_per_minute", "lease_per_minute"),
)
QUOTA_MAX = 1_000_000_000_000


async def acting_for(desk: Desk, caller: Caller, wanted: str) -> Caller:
    """An administrator's key acts for the tenant it names; any other key only for its own."""
    if caller.kind != ADMIN:
        if wanted in (caller.slug, to_text("ten", caller.tenant)):
            return caller
        raise Forbidden("only an administrator's key may act for another tenant")
    tenant = await get_tenant(desk, wanted)
    return replace(
        caller,
        tenant=tenant.id,
        slug=tenant.slug,
        timezone=tenant.timezone,
        quotas={name: value for name, value in tenant.quotas.items() if isinstance(value, int)},
        settings=dict(tenant.settings),
    )


async def get_tenant(desk: Desk, wanted: str) -> Tenant:
    """A tenant by id or slug, as the system sees it."""
    identity = _identity(wanted)

    async def work(connection: Connection) -> Tenant:
        found = await rows.find_tenant(connection, identity, wanted)
        if found is None:
            raise NotFound(f"there is no tenant {wanted[:100]!r}")
        return found

    return await desk.transact(work, tenant=None)


async def list_tenants(desk: Desk, *, after: str, most: int) -> list[Tenant]:
    """A page of tenants."""

    async def work(connection: Connection) -> list[Tenant]:
        return await rows.list_tenants(connection, after=after, most=most)

    return await desk.transact(work, tenant=None)


def new_tenant(
    desk: Desk,
    *,
    slug: str,
    name: str,
    timezone: str,
    plan: str,
    weight: float,
    quotas: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Tenant:
    """A tenant nobody has stored yet."""
    now = desk.clock.now()
    (identity,) = random_ids(to_ms(now), 0, desk.entropy(TAIL_BYTES))
    tenant = Tenant(
        id=TenantId(identity),
        slug=slug,
        name=name,
        timezone=timezone,
        plan=plan,
        weight=weight,
        quotas=quotas,
        settings=settings,
        created_at=now,
        updated_at=now,
    )
    check_tenant(tenant)
    return tenant


def check_tenant(tenant: Tenant) -> None:
    """What a tenant may be."""
    check_text(tenant.name, what="a name", most=200, pointer="/name")
    check_text(tenant.plan, what="a plan", most=64, pointer="/plan")
    zone(tenant.timezone)
    for name, limit in tenant.quotas.items():
        if name not in QUOTAS:
            raise Invalid(
                f"expected quotas out of {', '.join(sorted(QUOTAS))}; got {name[:50]!r}",
                pointer="/quotas",
            )
        if not isinstance(limit, int) or not 0 <= limit <= QUOTA_MAX:
            raise Invalid(
                f"expected a whole number from 0 to {QUOTA_MAX} for {name}, got {limit!r}",
                pointer=f"/quotas/{name}",
            )


async def create_tenant(desk: Desk, tenant: Tenant) -> Tenant:
    """Make a tenant."""

    async def work(connection: Connection) -> Tenant:
        if not await rows.insert_tenant(connection, tenant):
            found = await rows.find_tenant(connection, tenant.id, tenant.slug)
            if found is None or found.id != tenant.id:
                raise AlreadyExists(f"there is a tenant {tenant.slug!r} already", pointer="/slug")
        return tenant

    return await desk.transact(work, tenant=None)


async def change_tenant(
    desk: Desk, tenant: Tenant, *, expected_revision: int | None = None
) -> Tenant:
    """Store a changed tenant over the revision it was read at."""
    check_tenant(tenant)
    if expected_revision is not None and expected_revision != tenant.revision:
        raise VersionMismatch(
            f"expected revision {expected_revision} of the tenant, got {tenant.revision}"
        )

    async def work(connection: Connection) -> Tenant:
        now = desk.clock.now()
        revision = await rows.change_tenant(connection, tenant, now=now)
        if revision is None:
            raise VersionMismatch("the tenant was changed meanwhile; read it again")
        return replace(tenant, revision=revision, updated_at=now)

    return await desk.transact(work, tenant=None)


def suspended(tenant: Tenant, *, reason: str, stop_all: bool) -> Tenant:
    """The tenant, closed for new things or for everything."""
    check_reason(reason)
    state = TenantState.SUSPENDED if stop_all else TenantState.REJECTING
    return replace(tenant, state=state, state_reason=reason or None)


def resumed(tenant: Tenant) -> Tenant:
    """The tenant, open again."""
    return replace(tenant, state=TenantState.ACTIVE, state_reason=None)


def _identity(wanted: str) -> UUID | None:
    try:
        return from_text("ten", wanted)
    except Invalid:
        return None
