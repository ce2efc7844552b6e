"""What a direct line stands on: a desk, the tenant, and hints."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from betimes.api.waiters import Waiters
from betimes.app.database import Place
from betimes.app.demo import TENANT
from betimes.app.desk import seen_within
from betimes.app.dice import Dice
from betimes.app.direct import DirectLine
from betimes.app.masters import vault_beside
from betimes.config import Settings
from betimes.domain.clock import Clock
from betimes.domain.ids import NodeId, TenantId
from betimes.ops.desk import Desk
from betimes.ops.tenants import get_tenant
from betimes.store.database import Database
from betimes.store.hints import READY, NoHints
from betimes.store.listen import Listener
from betimes.store.shards import Shards

NOBODY = NodeId(TENANT)
"""The shards are only counted, in nobody's name."""


async def direct_line(
    database: Database,
    settings: Settings,
    *,
    clock: Clock,
    dice: Dice,
    tenant: str | None,
    waiters: Waiters,
    secret: bytes,
) -> DirectLine:
    """A line on an open database."""
    desk = Desk(
        database=database,
        clock=clock,
        hints=NoHints(),
        entropy=dice.entropy,
        shards=await Shards(database, NOBODY).count(),
        tzdata="",
        margin=settings.coordinator.margin,
        vault=await vault_beside(database, settings, clock, dice),
        seals=settings.vault.payloads == "sealed",
        seen_within=seen_within(settings),
    )
    owner: TenantId = TENANT if tenant is None else (await get_tenant(desk, tenant)).id
    return DirectLine(
        desk=desk,
        tenant=owner,
        waiters=waiters,
        secret=secret,
        roll=dice.roll,
        ttl=settings.api.lease_ttl,
    )


@asynccontextmanager
async def listening(
    settings: Settings, place: Place, *, clock: Clock, dice: Dice
) -> AsyncIterator[Waiters]:
    """Whoever waits for work is woken by hints; behind a pooler only by polls."""
    waiters = Waiters(clock)
    if settings.database.pgbouncer and place.direct_dsn == place.dsn:
        yield waiters
        return
    ear = Listener(
        dsn=place.direct_dsn,
        settings=settings.database,
        channels=[READY],
        hear=lambda _, payload: waiters.heard(payload),
        clock=clock,
        roll=dice.roll,
    )
    async with asyncio.TaskGroup() as group:
        listener = group.create_task(ear.run(), name="worker.listen")
        try:
            yield waiters
        finally:
            listener.cancel()
