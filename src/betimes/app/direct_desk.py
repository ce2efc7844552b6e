"""What a worker of an app on the database stands on."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from betimes.app import database as databases
from betimes.app.database import Place
from betimes.app.demo import TENANT
from betimes.app.desk import seen_within
from betimes.app.dice import Dice
from betimes.app.direct import DirectNotes
from betimes.app.masters import vault_beside
from betimes.app.task_worker import Grounds
from betimes.config import Settings
from betimes.domain.clock import Clock
from betimes.domain.ids import NodeId
from betimes.ops.desk import Desk
from betimes.ops.tenants import get_tenant
from betimes.store.database import Database
from betimes.store.hints import NoHints
from betimes.store.listen import Hear, Listener
from betimes.store.pool import Lane
from betimes.store.shards import Shards
from betimes.worker import Chance
from betimes.worker.hints import CHANNEL
from betimes.worker.service import OpenDatabase

NOBODY = NodeId(TENANT)
"""The shards are only counted, in nobody's name."""


@asynccontextmanager
async def grounds(
    settings: Settings, *, clock: Clock, dice: Dice, tenant: str | None
) -> AsyncIterator[Grounds]:
    """A database at the right version, a desk on it, and what wakes and keeps a worker."""
    async with (
        databases.located(settings, clock=clock, dice=dice) as place,
        _opened(settings, place, clock=clock, dice=dice) as database,
    ):
        desk = await _desk(database, settings, clock=clock, dice=dice)
        owner = TENANT if tenant is None else (await get_tenant(desk, tenant)).id
        yield Grounds(
            desk=desk,
            tenant=owner,
            chance=Chance(roll=dice.roll, entropy=dice.entropy),
            open_database=_beside(settings, database, clock=clock, dice=dice),
            listen=lambda hear: _listener(settings, place, hear, clock=clock, dice=dice),
            notes=DirectNotes(desk, owner),
            settings=settings.worker,
            ttl=settings.api.lease_ttl,
            result_retention=settings.blobs.results,
        )


@asynccontextmanager
async def _opened(
    settings: Settings, place: Place, *, clock: Clock, dice: Dice
) -> AsyncIterator[Database]:
    await databases.require_schema(settings, place)
    async with databases.opened(settings, place, clock=clock, dice=dice) as database:
        yield database


async def _desk(database: Database, settings: Settings, *, clock: Clock, dice: Dice) -> Desk:
    return Desk(
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


def _beside(settings: Settings, database: Database, *, clock: Clock, dice: Dice) -> OpenDatabase:
    """A database of its own for the heartbeat, on the event loop of its thread."""
    pooled = replace(settings.database, pgbouncer=database.address.pooled)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Database]:
        beside = await Database.open(
            pooled, dsn=database.address.dsn, clock=clock, roll=dice.roll, lanes=(Lane.LEASE,)
        )
        try:
            yield beside
        finally:
            await beside.close()

    return opened


def _listener(
    settings: Settings, place: Place, hear: Hear, *, clock: Clock, dice: Dice
) -> Listener | None:
    """What tells of work; behind a pooler polls must do."""
    if settings.database.pgbouncer and place.direct_dsn == place.dsn:
        return None
    return Listener(
        dsn=place.direct_dsn,
        settings=settings.database,
        channels=[CHANNEL],
        hear=hear,
        clock=clock,
        roll=dice.roll,
    )
