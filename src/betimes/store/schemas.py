"""What handlers accept, as it is stored."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from betimes.domain.ids import TenantId
from betimes.store.ask import execute, many
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("schemas")
SCHEMAS_MAX = 10_000


class Declared(NamedTuple):
    """A schema that some worker has declared for a handler."""

    handler: str
    digest: str
    schema: str


async def declare_schemas(
    connection: Connection,
    tenant: TenantId,
    schemas: Mapping[str, Declared],
    *,
    now: datetime,
    forget_before: datetime,
) -> None:
    """Keep what a worker declares, and drop what is long out of use."""
    told = list(schemas.values())
    await execute(
        connection,
        SQL["declare_schemas"],
        tenant=tenant,
        handlers=[one.handler for one in told],
        digests=[one.digest for one in told],
        schemas=[one.schema for one in told],
        now=now,
    )
    handlers = sorted(schemas)
    await execute(
        connection, SQL["forget_schemas"], tenant=tenant, handlers=handlers, before=forget_before
    )


async def read_schemas(
    connection: Connection, tenant: TenantId, *, alive_after: datetime
) -> list[Declared]:
    """What the handlers of a tenant accept now; a handler may accept several."""
    rows = await many(
        connection,
        SQL["read_schemas"],
        tenant=tenant,
        alive_after=alive_after,
        most=SCHEMAS_MAX,
    )
    return [Declared(*row) for row in rows]
