"""Due soon: runs that exist, those that are tried again, and fires beyond what is planned.

A computed fire is listed under the id its run will have. So the order, and with it the place where
the next page begins, stays the same while the planner turns fires into runs between two pages.
"""

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import merge
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from betimes.domain.errors import Invalid, TooExpensive
from betimes.domain.ids import (
    JobId,
    RunId,
    ShardId,
    TenantId,
    floor_of,
    shard_of,
    time_of,
    to_ms,
    to_us,
)
from betimes.domain.states import RunState
from betimes.ops.desk import Desk
from betimes.ops.evaluating import beside_many
from betimes.ops.outlook import just_before, run_id
from betimes.ops.timetable import read_timetable
from betimes.schedule import Budget, Fire, Schedule
from betimes.schedule.bounds import EVALUATION_STEPS_MAX
from betimes.store.jobs import from_json
from betimes.store.pool import Connection
from betimes.store.tenants import TenantState
from betimes.store.upcoming import (
    Brakes,
    FiringJob,
    Pace,
    SoonFilter,
    SoonRun,
    Title,
    read_brakes,
    read_ended,
    read_jobs,
    read_paces,
    read_retries,
    read_runs,
    read_titles,
)
from betimes.wire.base import shown_duration

WITHIN_DEFAULT = timedelta(minutes=5)
WITHIN_MAX = timedelta(days=7)
PAGE_MAX = 1_000
JOBS_MAX = 5_000
STEPS_MAX = 2_000_000
"""Steps of evaluation that a page may take, in a thread; it leaves jobs beyond out, and says so."""
MICROSECOND = timedelta(microseconds=1)
LATELY = timedelta(minutes=15)
RUNS_LOOKED_AT = 2_000
PARCELS_LOOKED_AT = 20_000
"""From what was due lately, and waits now, a start is predicted."""


class SoonKind(StrEnum):
    """Whether it exists already or is computed."""

    RUN = "run"
    FIRE = "fire"
    RETRY = "retry"


EVERY_KIND = frozenset(SoonKind)


class LeftOut(StrEnum):
    """Why fires of jobs are not on a page where they belong."""

    SCHEDULE = "schedule_too_expensive"
    BUDGET = "evaluation_budget_used"
    JOBS = "too_many_jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Soon:
    """One thing that is due soon; `id` is the run's, now or later."""

    kind: SoonKind
    id: RunId
    due_at: datetime
    fire_at: datetime | None
    job: JobId | None
    queue: str
    priority: int
    place: UUID
    """In the order of dueness."""
    handler: str | None = None
    title: Title | None = None
    """What its job is called."""
    will_run: bool = True
    reason: str | None = None
    predicted_start: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SoonPage:
    """A page; `next` is the (due_at, place) after which the following one begins.

    `left_out` says of which jobs fires may be missing, and why: those that cost too much, and, with
    no name, those beyond the most that are looked at.
    """

    items: Sequence[Soon]
    next: tuple[datetime, UUID] | None
    left_out: Mapping[LeftOut, Sequence[JobId]]


class Merged(NamedTuple):
    """The first things of a span, and the jobs whose fires may be missing among them."""

    items: list[Soon]
    left_out: dict[LeftOut, list[JobId]]


async def list_upcoming(
    desk: Desk,
    tenant: TenantId,
    *,
    within: timedelta = WITHIN_DEFAULT,
    queue: str | None = None,
    job: JobId | None = None,
    after: tuple[datetime, UUID] | None = None,
    limit: int = 50,
    until: datetime | None = None,
    kinds: Collection[SoonKind] = EVERY_KIND,
) -> SoonPage:
    """A page of what is due within a span; give `until` of the first page to the next ones."""
    if not timedelta(0) < within <= WITHIN_MAX:
        raise Invalid(
            f"expected a span above 0 and of at most 7 days, got {shown_duration(within)}",
            pointer="/within",
        )
    most = min(max(limit, 1), PAGE_MAX)
    chosen = SoonFilter(tenant=tenant, queue=queue, job=job)

    async def work(connection: Connection) -> SoonPage:
        now = await desk.now(connection)
        low = floor_of(to_ms(now)) if after is None else after[1]
        end = now + within if until is None else until
        high = floor_of(to_ms(end) + 1)
        shards = range(desk.shards) if job is None else [shard_of(job)]
        runs: list[SoonRun] = []
        jobs: list[FiringJob] = []
        if SoonKind.RUN in kinds:
            runs = await read_runs(connection, chosen, low=low, high=high, most=most + 1)
        if SoonKind.RETRY in kinds:
            runs += await read_retries(connection, chosen, low=low, high=high, most=most + 1)
        if SoonKind.FIRE in kinds:
            places = [ShardId(one) for one in shards]
            jobs = await read_jobs(connection, chosen, shards=places, until=end, most=JOBS_MAX)
        items, left_out = await beside_many(
            lambda: merge_soon(runs, jobs, low=low, high=high, most=most + 1)
        )
        if len(jobs) == JOBS_MAX:
            left_out[LeftOut.JOBS] = []
        marked = await _mark(connection, tenant, items[:most], now)
        last = (marked[-1].due_at, marked[-1].place) if len(items) > most else None
        return SoonPage(items=marked, next=last, left_out=left_out)

    return await desk.transact(work, tenant=tenant)


def merge_soon(
    runs: Iterable[SoonRun],
    jobs: Iterable[FiringJob],
    *,
    low: UUID,
    high: UUID,
    most: int,
    steps: int = STEPS_MAX,
) -> Merged:
    """The first things with places between two bounds, each once. Pure."""
    waiting = sorted((_of_run(run) for run in runs), key=lambda item: item.place)
    streams: list[Iterator[Soon]] = [iter(waiting)]
    left_out: dict[LeftOut, list[JobId]] = {}
    left = steps
    for job in jobs:
        budget = Budget(min(EVALUATION_STEPS_MAX, left))
        try:
            streams.append(iter(fires_of(job, budget, low=low, high=high, most=most)))
        except TooExpensive:
            # The planner sets a job aside that cannot be evaluated; the others wait for their page.
            alone = budget.steps == EVALUATION_STEPS_MAX
            why = LeftOut.SCHEDULE if alone else LeftOut.BUDGET
            left_out.setdefault(why, []).append(job.id)
        left = max(left - budget.spent, 0)
    items = islice(_each_once(merge(*streams, key=lambda item: item.place)), most)
    return Merged(list(items), left_out)


def fires_of(job: FiringJob, budget: Budget, *, low: UUID, high: UUID, most: int) -> list[Soon]:
    """The first fires of a job with ids between two bounds, in the order of their ids.

    Jitter can change the order: a later fire may be due earlier. So fires are read on until the
    nominal time has passed the last due time that counts.

    Raises:
        TooExpensive: the budget does not suffice.

    """
    timetable = read_timetable(from_json(job.schedule), job.id, budget)
    found: list[Soon] = []
    for fire in _ahead(job, timetable, low, budget):
        if len(found) >= most and fire.nominal > found[most - 1].due_at:
            break
        if fire.nominal > time_of(high):
            break
        identifier = run_id(job.id, fire)
        if low < identifier < high:
            insort(
                found,
                Soon(
                    kind=SoonKind.FIRE,
                    id=identifier,
                    due_at=fire.effective,
                    fire_at=fire.nominal,
                    job=job.id,
                    queue=job.queue,
                    priority=job.priority,
                    place=identifier,
                ),
                key=lambda item: item.id,
            )
    return found[:most]


def _ahead(job: FiringJob, timetable: Schedule, low: UUID, budget: Budget) -> Iterable[Fire]:
    if timetable.is_fixed_delay:
        # Only the next one is known; those after it follow the ends of runs.
        return [timetable.fire(to_us(job.next_fire_at), budget=budget)]
    return timetable.fires(_start(job, timetable, low), budget=budget)


def _start(job: FiringJob, timetable: Schedule, low: UUID) -> datetime:
    """No fire before this can be due after the bound."""
    spread = (timetable.common.jitter + timetable.common.window) * MICROSECOND
    earliest = just_before(job.next_fire_at)
    return max(earliest, time_of(low) - spread - timedelta(milliseconds=1))


def _each_once(items: Iterable[Soon]) -> Iterator[Soon]:
    """A fire that became a run between two reads of ours is listed as the run."""
    last: Soon | None = None
    for item in items:
        if last is not None and item.id != last.id:
            yield last
        if last is None or item.id != last.id or item.kind is SoonKind.RUN:
            last = item
    if last is not None:
        yield last


def _of_run(run: SoonRun) -> Soon:
    return Soon(
        kind=SoonKind.RETRY if run.state is RunState.RETRY_WAIT else SoonKind.RUN,
        place=run.place,
        id=run.id,
        due_at=run.due_at,
        fire_at=run.fire_at,
        job=run.job,
        queue=run.queue,
        priority=run.priority,
        handler=run.handler,
    )


async def _mark(
    connection: Connection, tenant: TenantId, items: Sequence[Soon], now: datetime
) -> list[Soon]:
    """What somebody has skipped ahead of time, or a brake holds, is listed but will not run."""
    if not items:
        return []
    fires = [item.id for item in items if item.kind is SoonKind.FIRE]
    ended = await read_ended(connection, tenant, fires) if fires else {}
    brakes = await read_brakes(connection, tenant, {item.queue for item in items})
    paces = await read_paces(
        connection,
        tenant,
        {item.queue for item in items},
        now=now,
        low=floor_of(to_ms(now - LATELY)),
        high=floor_of(to_ms(now) + 1),
        most=RUNS_LOOKED_AT,
        crowd=PARCELS_LOOKED_AT,
    )
    titles = await read_titles(connection, {item.job for item in items if item.job is not None})
    return [_marked(_titled(item, titles), ended, brakes, paces[item.queue], now) for item in items]


def _titled(item: Soon, titles: Mapping[JobId, Title]) -> Soon:
    title = None if item.job is None else titles.get(item.job)
    if title is None:
        return item
    return replace(item, title=title, handler=item.handler or title.handler)


def _marked(
    item: Soon, ended: Mapping[RunId, str | None], brakes: Brakes, pace: Pace, now: datetime
) -> Soon:
    if item.id in ended:
        return replace(item, will_run=False, reason=ended[item.id])
    reason = braked(item, brakes)
    if reason is None:
        return replace(item, predicted_start=predicted(item.due_at, pace, now))
    until = brakes.queues.get(item.queue) if reason == "QUEUE_PAUSED" else None
    start = None if until is None else predicted(until, pace, now)
    return replace(item, will_run=False, reason=reason, predicted_start=start)


def predicted(due_at: datetime, pace: Pace, now: datetime) -> datetime | None:
    """When something that may start then probably does; None where nobody can say. Pure.

    What waits now goes first, at the pace at which runs have ended lately; behind that it waits
    about as long as others did.
    """
    start = due_at + (pace.lag or timedelta(0))
    if not pace.waiting:
        return start
    if not pace.ended or pace.since is None:
        return None
    each = max(now - pace.since, timedelta(milliseconds=1)) / pace.ended
    return max(start, now + min(pace.waiting * each, WITHIN_MAX))


def braked(item: Soon, brakes: Brakes) -> str | None:
    """What keeps it from running at its time, if that is known already. Pure."""
    if brakes.cluster_paused:
        return "CLUSTER_PAUSED"
    if brakes.tenant_state == TenantState.SUSPENDED:
        return "TENANT_SUSPENDED"
    if item.queue not in brakes.queues:
        return None
    until = brakes.queues[item.queue]
    return "QUEUE_PAUSED" if until is None or until > item.due_at else None
