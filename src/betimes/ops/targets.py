"""What is known about the origins that a tenant's jobs call."""

from betimes.domain.errors import NotFound
from betimes.domain.ids import TenantId
from betimes.ops.desk import Desk
from betimes.store import breakers as rows
from betimes.store.breakers import BreakerRow
from betimes.store.pool import Connection

__all__ = ["BreakerRow", "list_origins", "reset_origin"]


async def list_origins(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[BreakerRow]:
    """A page of origins in their order."""

    async def work(connection: Connection) -> list[BreakerRow]:
        return await rows.list_breakers(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def reset_origin(desk: Desk, tenant: TenantId, origin: str) -> BreakerRow:
    """Close the breaker of an origin; workers hear of it within seconds and begin gently."""

    async def work(connection: Connection) -> BreakerRow:
        found = await rows.reset_breaker(connection, tenant, origin, now=desk.clock.stated())
        if found is None:
            raise NotFound(f"nothing is known about the origin {origin[:200]!r}")
        return found

    return await desk.transact(work, tenant=tenant)
