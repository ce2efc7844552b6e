"""Rates by key: how many runs that share a rate limit key may start in a time."""

from betimes.domain.errors import NotFound
from betimes.domain.ids import TenantId
from betimes.ops.checks import KEY_LENGTH_MAX, check_text
from betimes.ops.desk import Desk
from betimes.store import rates as rows
from betimes.store.pool import Connection
from betimes.store.rates import KeyRate

__all__ = ["KeyRate", "forget_rate", "get_rate", "list_rates", "put_rate"]


async def list_rates(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[KeyRate]:
    """Keys about which something was said, in order."""

    async def work(connection: Connection) -> list[KeyRate]:
        return await rows.list_rates(connection, tenant, after=after, most=most)

    return await desk.transact(work, tenant=tenant)


async def get_rate(desk: Desk, tenant: TenantId, key: str) -> KeyRate:
    """What was said about one key."""

    async def work(connection: Connection) -> KeyRate | None:
        return await rows.read_rate(connection, tenant, key)

    return _required(await desk.transact(work, tenant=tenant), key)


async def put_rate(desk: Desk, tenant: TenantId, rate: KeyRate) -> KeyRate:
    """Say what holds for a key from now on, also for what waits already."""
    check_text(rate.key, what="a rate limit key", most=KEY_LENGTH_MAX, pointer="/key")

    async def work(connection: Connection) -> KeyRate:
        return await rows.put_rate(connection, tenant, rate, now=await desk.now(connection))

    return await desk.transact(work, tenant=tenant)


async def forget_rate(desk: Desk, tenant: TenantId, key: str) -> None:
    """What the queue says counts for the key again, and without that nothing."""

    async def work(connection: Connection) -> None:
        if not await rows.forget_rate(connection, tenant, key):
            _required(None, key)

    await desk.transact(work, tenant=tenant)


def _required(rate: KeyRate | None, key: str) -> KeyRate:
    if rate is None:
        raise NotFound(f"nothing was said about the rate limit key {key!r}")
    return rate
