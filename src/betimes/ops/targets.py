"""What is known about the origins that a tenant's jobs call."""

from betimes.domain.ids import TenantId
from betimes.ops.desk import Desk
from betimes.store import breakers as rows
from betimes.store.breakers import BreakerRow
from betimes.store.pool import Connection

__all__ = ["BreakerRow", "list_origins"]


async def list_origins(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[BreakerRow]:
    """A page of origins in their order."""

    async def work(connection: Connection) -> list[BreakerRow]:
        return await rows.list_breakers(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)
