"""Forgetting a tenant, table by table."""

from betimes.domain.ids import TenantId
from betimes.store.ask import maybe, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("erase")
ROWS = 500
PARTS = (
    *("vault", "intake", "parcels", "runs", "jobs", "letters", "events", "deliveries", "alerts"),
    *("keys", "blobs", "workflows"),
)


async def erase_some(connection: Connection, tenant: TenantId, part: str) -> int:
    """Forget a bounded number of rows of one part; how many went."""
    row = await one(connection, SQL[f"erase_{part}"], tenant=tenant, most=ROWS)
    return int(row["rows"])


async def erase_tenant(connection: Connection, tenant: TenantId) -> bool:
    """Forget the tenant itself; False when there is none, or it was opened again."""
    return await maybe(connection, SQL["erase_tenant"], tenant=tenant) is not None
