"""Replacing keys: what is sealed under an old one is sealed anew, a bounded piece at a time."""

from datetime import datetime, timedelta
from uuid import UUID

from betimes.domain.ids import TenantId
from betimes.ops.blobs import reseal_blobs
from betimes.ops.desk import Desk
from betimes.ops.endpoints import reseal_credentials
from betimes.ops.secrets import reseal_secrets, vault_of
from betimes.ops.vault import REPLACED_FOR
from betimes.store import vault as rows
from betimes.store.pool import Connection

BATCH = 50
BLOBS = 4
"""Blobs are large: few are in memory at once."""
FIRST = TenantId(UUID(int=0))
KEYS_MAX = 100


async def rewrap_keys(desk: Desk) -> int:
    """Wrap every data key under the master key in use, which is the one to have from then on."""
    vault = vault_of(desk)
    total = 0

    async def work(connection: Connection) -> int:
        return await vault.rewrap(connection, most=BATCH)

    while done := await desk.transact(work, tenant=None):
        total += done

    async def follow(connection: Connection) -> None:
        await rows.follow_master(connection, vault.master.id)

    await desk.transact(follow, tenant=None)
    return total


async def rotate_key(desk: Desk, tenant: TenantId) -> int:
    """Give a tenant a new data key, which seals from now on; its version."""
    vault = vault_of(desk)

    async def work(connection: Connection) -> int:
        # A tenant that has none gets its first when it needs one.
        if not await vault.newest(connection, tenant):
            return 0
        return await vault.add_key(connection, tenant)

    return await desk.transact(work, tenant=None)


async def aged_tenants(desk: Desk, *, older_than: timedelta) -> list[TenantId]:
    """Tenants whose data key should be replaced."""

    async def work(connection: Connection) -> list[TenantId]:
        before = await desk.now(connection) - older_than
        return await rows.aged(connection, before=before, most=KEYS_MAX)

    return await desk.transact(work, tenant=None)


async def tenants_to_reseal(desk: Desk, *, after: TenantId = FIRST) -> list[TenantId]:
    """Tenants with more than one data key, in order."""

    async def work(connection: Connection) -> list[TenantId]:
        return await rows.with_old_keys(connection, after=after, most=KEYS_MAX)

    return await desk.transact(work, tenant=None)


async def reseal_some(desk: Desk, tenant: TenantId) -> int:
    """Seal a bounded number of things anew; how many. Nothing left: old keys are forgotten."""
    vault = vault_of(desk)

    async def work(connection: Connection) -> int:
        done = await reseal_secrets(connection, vault, tenant, most=BATCH)
        return done + await reseal_credentials(connection, vault, tenant, most=BATCH)

    async def drop(connection: Connection) -> None:
        await rows.drop_unused(connection, tenant, before=_settled(await desk.now(connection)))

    done = await desk.transact(work, tenant=None)
    done = done or await reseal_blobs(desk, tenant, most=BLOBS)
    if not done:
        await desk.transact(drop, tenant=None)
    return done


def _settled(now: datetime) -> datetime:
    return now - REPLACED_FOR
