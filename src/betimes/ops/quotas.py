"""Quotas: what a tenant may store and have under way, counted before anything is written."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta

from betimes.domain.errors import OverQuota
from betimes.domain.ids import TenantId
from betimes.ops.desk import Desk
from betimes.store.keys import count_keys
from betimes.store.listing import count_jobs, count_work
from betimes.store.pool import Connection
from betimes.store.queues import count_queues
from betimes.store.telling import QuotaNews, tell_quota

COUNTED_MAX = 1_000_000
SOFT_SHARE = 0.8
TOLD_EVERY = timedelta(hours=1)


def soft_limit(limit: int) -> int:
    """From here on a quota is nearly used."""
    return int(limit * SOFT_SHARE)


class QuotaReached(OverQuota):
    """A quota by name, with its limit and what is used of it."""

    def __init__(
        self,
        quota: str,
        limit: int,
        used: int,
        *,
        resets_at: datetime | None = None,
        wait: timedelta | None = None,
        sentence: str | None = None,
    ) -> None:
        super().__init__(sentence or f"the quota {quota} allows {limit}, and {used} are in use")
        self.quota = quota
        self.limit = limit
        self.used = used
        self.resets_at = resets_at
        self.wait = wait


async def usage_of(desk: Desk, tenant: TenantId) -> dict[str, int]:
    """What is used of the quotas that are counted; jobs no further than a million."""

    async def work(connection: Connection) -> dict[str, int]:
        waiting, leased = await count_work(connection, tenant)
        return {
            "jobs": await count_jobs(connection, tenant, most=COUNTED_MAX),
            "active_runs": waiting + leased,
            "backlog": waiting,
            "max_in_flight": leased,
            "keys": await count_keys(connection, tenant, desk.clock.now()),
            "queues": await count_queues(connection, tenant),
        }

    return await desk.transact(work, tenant=tenant)


async def check_jobs(desk: Desk, tenant: TenantId, quotas: Mapping[str, int], *, more: int) -> None:
    """Refuse jobs beyond the quota; costs nothing where there is none."""
    limit = quotas.get("jobs")
    if limit is None:
        return

    async def work(connection: Connection) -> int:
        return await count_jobs(connection, tenant, most=limit + 1)

    used = await desk.transact(work, tenant=tenant)
    if used + more > limit:
        raise QuotaReached("jobs", limit, used)


async def check_keys(desk: Desk, tenant: TenantId, quotas: Mapping[str, int]) -> None:
    """Refuse one more key than the tenant may have."""

    async def work(connection: Connection) -> int:
        return await count_keys(connection, tenant, desk.clock.now())

    await _check_one(desk, tenant, "keys", quotas.get("keys"), work)


async def check_queues(
    desk: Desk, tenant: TenantId, quotas: Mapping[str, int], *, name: str
) -> None:
    """Refuse settings for one more queue than the tenant may have."""

    async def work(connection: Connection) -> int:
        return await count_queues(connection, tenant, beside=name)

    await _check_one(desk, tenant, "queues", quotas.get("queues"), work)


async def _check_one(
    desk: Desk,
    tenant: TenantId,
    quota: str,
    limit: int | None,
    count: Callable[[Connection], Awaitable[int]],
) -> None:
    if limit is None:
        return
    used = await desk.transact(count, tenant=tenant)
    if used >= limit:
        raise QuotaReached(quota, limit, used)


async def tell_use(desk: Desk, tenant: TenantId, news: QuotaNews) -> bool:
    """Tell a tenant what is used, at most once an hour over all nodes; whether it was told."""

    async def work(connection: Connection) -> bool:
        now = await desk.now(connection)
        shard = desk.next_shard()
        return await tell_quota(connection, shard, tenant, news, now=now, pause=TOLD_EVERY)

    return await desk.transact(work, tenant=tenant)
