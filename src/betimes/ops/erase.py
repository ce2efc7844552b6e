"""Deleting a tenant: an operation that begins when the grace is over, and then cannot be undone."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from betimes.domain.errors import Conflict, IllegalTransition, Invalid
from betimes.domain.ids import TenantId
from betimes.ops.blobs import forget_objects
from betimes.ops.desk import Desk
from betimes.ops.operating import Part, Step, forward
from betimes.ops.operations import Operation, new_operation
from betimes.ops.tenants import Tenant
from betimes.store import erase as rows
from betimes.store import tenants
from betimes.store.pool import Connection
from betimes.store.tenants import TenantState

DELETE = "tenants.delete"
GRACE_MAX = timedelta(days=90)


def deletion_of(
    desk: Desk, tenant: Tenant, *, of: TenantId, by: str, grace: timedelta
) -> Operation:
    """The operation that deletes a tenant; it belongs to whoever asked, so that it outlives it."""
    if tenant.id == of:
        raise Conflict("expected another tenant than one's own to delete", code="dependency_in_use")
    if tenant.state is not TenantState.SUSPENDED:
        raise IllegalTransition(
            f"expected a suspended tenant to delete (mode stop_all), got one that is "
            f"{tenant.state.name.lower()}"
        )
    if grace > GRACE_MAX:
        raise Invalid(f"expected a grace of at most {GRACE_MAX.days} days", pointer="/grace")
    return new_operation(
        desk, of, DELETE, {"tenant": str(tenant.id), "slug": tenant.slug}, after=grace, by=by
    )


async def step_delete(desk: Desk, operation: Operation) -> Step:
    """The next bounded piece; the tenant's own row goes last, and only while it is suspended."""
    tenant = TenantId(UUID(str(operation.request["tenant"])))
    if not await _is_doomed(desk, tenant):
        return Step(operation=operation, wait=None)
    place = int(operation.cursor or 0)
    moved = replace(operation, done=operation.done + 1)
    if place == len(rows.PARTS):
        return Step(operation=await forward(desk, moved, _last(tenant), tenant=None), wait=None)
    part = rows.PARTS[place]
    if part == "blobs" and await forget_objects(desk, tenant):
        return Step(operation=moved)
    rows_gone = 0

    async def erase(inner: Desk) -> None:
        nonlocal rows_gone
        if inner.connection is not None:
            rows_gone = await rows.erase_some(inner.connection, tenant, part)

    moved = await forward(desk, moved, erase, tenant=None)
    return Step(operation=moved if rows_gone else replace(moved, cursor=str(place + 1)))


def _last(tenant: TenantId) -> Part:
    async def erase(inner: Desk) -> None:
        if inner.connection is not None:
            await rows.erase_tenant(inner.connection, tenant)

    return erase


async def _is_doomed(desk: Desk, tenant: TenantId) -> bool:
    """Whether it is there, and still suspended: opening it again calls the deletion off."""

    async def work(connection: Connection) -> bool:
        found = await tenants.find_tenant(connection, tenant, "")
        if found is None:
            return False
        if found.state is not TenantState.SUSPENDED:
            raise IllegalTransition("the tenant was opened again; its deletion is called off")
        return True

    return await desk.transact(work, tenant=None)
