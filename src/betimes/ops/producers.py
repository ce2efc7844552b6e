"""Producers: database roles that may enqueue inside transactions of their own."""

from betimes.domain.errors import Invalid, NotFound
from betimes.domain.ids import TenantId
from betimes.ops.checks import check_text
from betimes.store import intake
from betimes.store.database import Database
from betimes.store.intake import Producer
from betimes.store.pool import Connection, Lane
from betimes.store.tenants import find_tenant

__all__ = ["Producer", "admit_producer", "dismiss_producer", "list_producers"]

ROLE_LENGTH_MAX = 63
OURS = ("betimes_api", "betimes_system")


async def admit_producer(database: Database, role: str, tenant: str, *, hints: bool = True) -> None:
    """Let a database role call the function, and nothing else, for one tenant."""
    _check(role)

    async def work(connection: Connection) -> None:
        found = await _tenant(connection, tenant)
        await intake.admit_producer(connection, role, found, hints=hints)

    await database.transact(work, lane=Lane.API, repeatable=True)


async def dismiss_producer(database: Database, role: str, tenant: str) -> None:
    """Do not let it any longer."""
    _check(role)

    async def work(connection: Connection) -> bool:
        return await intake.dismiss_producer(connection, role, await _tenant(connection, tenant))

    if not await database.transact(work, lane=Lane.API, repeatable=True):
        raise NotFound(f"the role {role!r} is no producer of the tenant {tenant!r}")


async def list_producers(database: Database) -> list[Producer]:
    """Everybody who may."""
    return await database.transact(intake.list_producers, lane=Lane.API, repeatable=True)


def _check(role: str) -> None:
    check_text(role, what="a database role", most=ROLE_LENGTH_MAX, pointer="/role")
    if role in OURS:
        raise Invalid(f"expected a role of yours, got our own {role}", pointer="/role")


async def _tenant(connection: Connection, slug: str) -> TenantId:
    found = await find_tenant(connection, None, slug)
    if found is None:
        raise NotFound(f"there is no tenant {slug!r}")
    return found.id
