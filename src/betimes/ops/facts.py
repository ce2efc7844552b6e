"""What is stored around a waiting run: gathered for the reasons. Each look is bounded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.ids import TenantId, floor_of, to_ms
from betimes.domain.job import Job
from betimes.domain.run import Run
from betimes.ops.desk import Desk
from betimes.ops.reasons import Ceiling, Facts, Reason, Scenery, Spent, of_surroundings
from betimes.store import explain as rows
from betimes.store.explain import Places, UsedRate
from betimes.store.pool import Connection
from betimes.store.queues import Queue, read_queue

AHEAD_MAX = 1_000
"""Beyond this a position is told as at least so many."""
AHEAD_PER_SHARD = 200
"""The same for what is offered, of each shard."""
TOOK_MAX = 20
"""Last runs of a job whose durations are looked at."""
LATELY = timedelta(hours=1)
ENDED_MAX = 2_000
"""Rows that are looked at for what ended lately."""
NOBODY = Places(serving=0, able=0, draining=0, slots=0, busy=0)


async def gather(desk: Desk, tenant: TenantId, run: Run, now: datetime) -> Facts:
    """Everything around a waiting run, in a handful of bounded looks."""

    async def own(connection: Connection) -> Facts:
        above = await rows.read_surroundings(connection, tenant, run.shard)
        place = await rows.read_place(connection, run.id)
        queue = await read_queue(connection, tenant, run.queue)
        gate = line = standing = None
        if place is not None and place.gate is not None:
            gate = await rows.read_gate(
                connection, tenant, place.gate, rank=place.rank, most=AHEAD_MAX
            )
        if place is not None and place.line is not None:
            line = await rows.read_line(
                connection, run.shard, place.line, rank=place.rank, most=AHEAD_MAX
            )
        if place is not None:
            standing = await rows.read_standing(
                connection,
                tenant,
                place,
                shards=range(desk.shards),
                queue=run.queue,
                priority=run.priority,
                most=AHEAD_PER_SHARD,
            )
        took = None
        if run.job is not None and line is not None:
            high = floor_of(to_ms(now))
            took = await rows.read_job_pace(connection, run.job, high=high, most=TOOK_MAX)
        # Those that ended lately were due before the first one that still waits.
        head = standing.head if standing is not None and standing.head is not None else now
        ended, since = await rows.read_pace(
            connection,
            tenant,
            run.queue,
            low=floor_of(to_ms(min(head, now) - LATELY)),
            high=floor_of(to_ms(min(head, now)) + 1),
            since=now - LATELY,
            most=ENDED_MAX,
        )
        rate_key = None if place is None else place.rate_key
        used = await rows.read_rates(connection, tenant, run.queue, rate_key, now=now)
        rated = None
        if place is not None and rate_key is not None:
            rated = await rows.count_rated(connection, tenant, place, most=AHEAD_MAX)
        of_tenant, of_queue = await rows.read_crowd(connection, tenant, run.queue)
        return Facts(
            run=run,
            now=now,
            above=above,
            places=NOBODY,
            queue=queue,
            place=place,
            gate=gate,
            line=line,
            standing=standing,
            ceilings=ceilings(above.quotas, queue, of_tenant, of_queue),
            spent=spent_of(used, now),
            rated=rated,
            took=took,
            ended_lately=ended,
            ended_since=since,
        )

    facts = await desk.transact(own, tenant=tenant)
    return replace(facts, places=await _places(desk, tenant, run.queue, run.handler, now))


async def _places(
    desk: Desk, tenant: TenantId, queue: str, handler: str | None, now: datetime
) -> Places:
    """The workers of the service belong to no tenant: only the service sees them."""

    async def work(connection: Connection) -> Places:
        since = now - desk.seen_within
        return await rows.read_places(connection, tenant, queue, handler, since=since)

    return await desk.transact(work, tenant=None)


async def look_around(desk: Desk, job: Job, *, at: datetime | None = None) -> list[Reason]:
    """What would stand in the way of a run of a job that is due then, as far as it is known now.

    A pause that ends before then does not.
    """
    queue, handler = job.definition.queue, job.definition.handler

    async def own(connection: Connection) -> Scenery:
        return Scenery(
            now=await desk.now(connection),
            above=await rows.read_surroundings(connection, job.tenant, job.shard),
            places=NOBODY,
            queue=await read_queue(connection, job.tenant, queue),
            queue_name=queue,
            handler=handler,
        )

    scenery = await desk.transact(own, tenant=job.tenant)
    places = await _places(desk, job.tenant, queue, handler, scenery.now)
    due = scenery.now if at is None else max(at, scenery.now)
    return of_surroundings(replace(scenery, places=places, now=due))


def spent_of(used: Sequence[UsedRate], now: datetime) -> list[Spent]:
    """Rates without a whole token, with when there is one. Pure."""
    return [
        Spent(
            kind=one.kind,
            name=one.name,
            limit=one.rate.limit,
            per=one.rate.period,
            free_at=one.bucket.next_token_at(one.rate, now),
        )
        for one in used
        if one.bucket.refilled(one.rate, now).tokens < 1
    ]


def ceilings(
    quotas: Mapping[str, Any], queue: Queue | None, of_tenant: int, of_queue: int
) -> list[Ceiling]:
    """Limits on what is in flight that apply to a run of a queue. Pure."""
    found: list[Ceiling] = []
    most = quotas.get("max_in_flight")
    if most is not None:
        found.append(Ceiling(kind="tenant", name="", limit=int(most), in_flight=of_tenant))
    most = None if queue is None else queue.settings.get("max_concurrency")
    if queue is not None and most is not None:
        found.append(Ceiling(kind="queue", name=queue.name, limit=int(most), in_flight=of_queue))
    return found
