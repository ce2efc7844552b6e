"""Whether somebody is there for work that a worker was given and cannot do."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from betimes.domain.ids import TenantId
from betimes.store.ask import many
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("remote")
HEARD_WITHIN = timedelta(minutes=1)
"""A worker that is silent for longer is no reason to expect anything."""


class Errand(NamedTuple):
    """What a worker would have to have, and to serve."""

    tenant: TenantId
    queue: str
    handler: str


async def find_attended(
    connection: Connection, errands: Collection[Errand], *, now: datetime | None
) -> set[Errand]:
    """Those of the errands that a live worker has said it does; `now` is for tests."""
    if not errands:
        return set()
    asked = list(errands)
    rows = await many(
        connection,
        SQL["find_attended"],
        tenants=[one.tenant for one in asked],
        queues=[one.queue for one in asked],
        handlers=[one.handler for one in asked],
        now=now,
        within=HEARD_WITHIN,
    )
    return {asked[row["number"] - 1] for row in rows}
