"""Queues: settings, pausing, and what waits in them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from betimes.domain.errors import Conflict, NotFound
from betimes.domain.ids import TenantId
from betimes.ops.checks import check_instant, check_queue, check_reason
from betimes.ops.desk import Desk
from betimes.store import queues as rows
from betimes.store.pool import Connection
from betimes.store.queues import SERVICE_DEFAULT, Depth, Queue, Service

__all__ = [
    "Depth",
    "Gates",
    "Put",
    "Queue",
    "Service",
    "delete_queue",
    "drain_queue",
    "get_queue",
    "list_queues",
    "measure",
    "pause_queue",
    "put_queue",
    "resume_queue",
]


BELIEVED_FOR = 2.0
TENANTS_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A queue with its new settings, and whether it was paused (or resumed) with them."""

    queue: Queue
    paused: bool | None = None


async def list_queues(desk: Desk, tenant: TenantId, *, after: str, most: int) -> list[Queue]:
    """Queues that have settings, and those in which something waits, by name."""

    async def work(connection: Connection) -> list[Queue]:
        kept = await rows.list_queues(connection, tenant, after=after, most=most)
        known = {queue.name for queue in kept}
        used = await rows.names_in_use(connection, tenant)
        fresh = [Queue(name=name) for name in used if name > after and name not in known]
        return sorted([*kept, *fresh], key=lambda queue: queue.name)[:most]

    return await desk.transact(work, tenant=tenant)


async def get_queue(desk: Desk, tenant: TenantId, name: str) -> Queue:
    """One queue; any name is one, with the defaults."""
    check_queue(name)

    async def work(connection: Connection) -> Queue:
        return await rows.read_queue(connection, tenant, name) or Queue(name=name)

    return await desk.transact(work, tenant=tenant)


async def measure(desk: Desk, tenant: TenantId, name: str) -> Depth:
    """What waits in a queue and is under way."""
    check_queue(name)

    async def work(connection: Connection) -> Depth:
        return await rows.measure(connection, tenant, name)

    return await desk.transact(work, tenant=tenant)


async def put_queue(
    desk: Desk,
    tenant: TenantId,
    name: str,
    settings: Mapping[str, Any],
    service: Service = SERVICE_DEFAULT,
    *,
    paused: bool | None = None,
) -> Put:
    """Store the settings of a queue; workers notice within seconds.

    `paused` pauses or resumes it as well; without it, and where it is so already, that stays.
    """
    check_queue(name)

    async def work(connection: Connection) -> Put:
        now = await desk.now(connection)
        await rows.put_queue(connection, tenant, name, settings, service, now=now)
        queue = await _required(connection, tenant, name)
        if paused is None or paused == queue.is_paused(now):
            return Put(queue=queue)
        await rows.pause_queue(
            connection,
            tenant,
            name,
            paused_at=now if paused else None,
            until=None,
            reason=None,
            now=now,
        )
        return Put(queue=await _required(connection, tenant, name), paused=paused)

    return await desk.transact(work, tenant=tenant)


async def pause_queue(
    desk: Desk, tenant: TenantId, name: str, *, reason: str, until: datetime | None
) -> Queue:
    """Nothing of the queue is leased until it is resumed; what is under way goes on."""
    check_queue(name)
    check_reason(reason)
    if until is not None:
        check_instant(until, pointer="/until")
    return await _pause(desk, tenant, name, paused=True, reason=reason, until=until)


async def resume_queue(desk: Desk, tenant: TenantId, name: str) -> Queue:
    """Go on."""
    check_queue(name)
    return await _pause(desk, tenant, name, paused=False, reason=None, until=None)


async def drain_queue(
    desk: Desk,
    tenant: TenantId,
    name: str,
    *,
    draining: bool = True,
    reason: str = "",
    until: datetime | None = None,
) -> Queue:
    """No new runs or jobs are accepted; what is there, and what its schedules bring, goes on."""
    check_queue(name)
    check_reason(reason)
    if until is not None:
        check_instant(until, pointer="/until")

    async def work(connection: Connection) -> Queue:
        now = await desk.now(connection)
        await rows.drain_queue(
            connection,
            tenant,
            name,
            draining=draining,
            until=until,
            reason=reason or None,
            now=now,
        )
        return await _required(connection, tenant, name)

    return await desk.transact(work, tenant=tenant)


class Gates:
    """Which queues accept nothing new, as learned a moment ago."""

    def __init__(self) -> None:
        self._known: dict[TenantId, tuple[Mapping[str, str | None], float]] = {}

    def forget(self, tenant: TenantId) -> None:
        """Ask anew: a queue was changed here."""
        self._known.pop(tenant, None)

    async def check(self, desk: Desk, tenant: TenantId, queues: Iterable[str]) -> None:
        """Refuse new work for a queue that drains."""
        now = desk.clock.monotonic()
        closed, until = self._known.get(tenant, ({}, -1.0))
        if until <= now:
            closed = await _draining(desk, tenant)
            if len(self._known) >= TENANTS_MAX:
                self._known.clear()
            self._known[tenant] = (closed, now + BELIEVED_FOR)
        for queue in queues:
            if queue in closed:
                why = f": {reason}" if (reason := closed[queue]) else ""
                raise Conflict(
                    f"the queue {queue!r} drains and accepts nothing new{why}",
                    code="queue_draining",
                )


async def _draining(desk: Desk, tenant: TenantId) -> dict[str, str | None]:
    async def work(connection: Connection) -> dict[str, str | None]:
        return await rows.draining_queues(connection, tenant)

    return await desk.transact(work, tenant=tenant)


async def _pause(
    desk: Desk,
    tenant: TenantId,
    name: str,
    *,
    paused: bool,
    reason: str | None,
    until: datetime | None,
) -> Queue:
    async def work(connection: Connection) -> Queue:
        now = await desk.now(connection)
        await rows.pause_queue(
            connection,
            tenant,
            name,
            paused_at=now if paused else None,
            until=until,
            reason=reason,
            now=now,
        )
        return await _required(connection, tenant, name)

    return await desk.transact(work, tenant=tenant)


async def delete_queue(desk: Desk, tenant: TenantId, name: str) -> None:
    """Forget the settings of a queue in which nothing is left."""
    check_queue(name)

    async def work(connection: Connection) -> None:
        depth = await rows.measure(connection, tenant, name)
        left = depth.waiting + depth.running + depth.later
        if left:
            raise Conflict(f"the queue {name!r} holds {left} runs", code="queue_not_empty")
        if not await rows.delete_queue(connection, tenant, name):
            raise NotFound(f"there is no queue {name!r}")

    await desk.transact(work, tenant=tenant)


async def _required(connection: Connection, tenant: TenantId, name: str) -> Queue:
    found = await rows.read_queue(connection, tenant, name)
    if found is None:
        raise NotFound(f"there is no queue {name!r}")
    return found
