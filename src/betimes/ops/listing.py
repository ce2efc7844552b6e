"""Pages of jobs and of runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from betimes.domain.errors import Invalid
from betimes.domain.ids import JobId, RunId, TenantId, floor_of, to_ms
from betimes.domain.job import Job
from betimes.domain.run import Run, shown_state
from betimes.domain.states import FINAL, Shown
from betimes.ops.ahead import look
from betimes.ops.contents import open_jobs
from betimes.ops.desk import Desk
from betimes.ops.runs import RunView
from betimes.ops.sayings import open_errors, says
from betimes.store import listing
from betimes.store.listing import JobFilter, RunFilter, Spot
from betimes.store.pool import Connection

__all__ = [
    "JobFilter",
    "JobsFound",
    "LastRun",
    "RunFilter",
    "Span",
    "Spot",
    "estimate_jobs",
    "estimate_runs",
    "find_all_jobs",
    "find_all_runs",
    "find_every_job",
    "find_job_page",
    "find_jobs",
    "find_jobs_sorted",
    "find_runs",
    "last_runs",
]

FIRST = UUID(int=0)
LAST = UUID(int=(1 << 128) - 1)
PAGE_MAX = 1_000
SCANS_MAX = 10
SORTED_MAX = 20_000
"""So many jobs are sorted by something that no index has."""
WALKED_MAX = 200_000
"""Of tenants with more jobs than this none are."""
LOOKED_AT_MAX, LOOKED_INTO_MAX = 10_000, 1_000
"""So many rows a page looks at for those that fit; fewer where the runs of each are asked, too."""


@dataclass(frozen=True, slots=True)
class JobsFound:
    """A page of jobs, and the job after which the next one begins; None at the end."""

    jobs: list[Job]
    more: UUID | None


async def find_job_page(
    desk: Desk,
    tenant: TenantId,
    chosen: JobFilter,
    *,
    after: UUID | None,
    newest_first: bool,
    limit: int,
    payloads: bool = True,
) -> JobsFound:
    """A page of jobs that fit.

    A bounded number of jobs is looked at, whatever the filter: a short page is not the end.
    """
    start = (LAST if newest_first else FIRST) if after is None else after

    async def work(connection: Connection) -> JobsFound:
        now = desk.clock.now()
        rows, end = await listing.list_jobs(
            connection,
            tenant,
            chosen,
            after=start,
            newest_first=newest_first,
            most=limit,
            scan=max(limit, LOOKED_INTO_MAX if _is_costly(chosen) else LOOKED_AT_MAX),
            now=now,
            payloads=payloads,
        )
        more = rows[-1].id if len(rows) == limit else end
        if payloads:
            rows = await open_jobs(desk, connection, tenant, rows)
        return JobsFound(await look(connection, rows, now=now), more)

    return await desk.transact(work, tenant=tenant)


def _is_costly(chosen: JobFilter) -> bool:
    """Whether the runs of each job have to be asked."""
    return bool(chosen.states) or chosen.fire_after is not None or chosen.fire_before is not None


async def find_jobs(
    desk: Desk,
    tenant: TenantId,
    chosen: JobFilter,
    *,
    after: UUID | None,
    newest_first: bool,
    limit: int,
) -> list[Job]:
    """Some jobs that fit, as many as one page finds."""
    page = await find_job_page(
        desk, tenant, chosen, after=after, newest_first=newest_first, limit=limit
    )
    return page.jobs


async def find_jobs_sorted(
    desk: Desk,
    tenant: TenantId,
    chosen: JobFilter,
    *,
    by: str,
    at: Spot | None,
    upwards: bool,
    limit: int,
    payloads: bool = True,
) -> list[tuple[Spot, Job]]:
    """A page of jobs by name, next fire or last change, each with its place.

    Raises:
        Invalid: more jobs fit than are sorted, or there are more than are looked at; no index
            has these orders.

    """

    async def work(connection: Connection) -> tuple[list[listing.Sorted], int]:
        walked = await listing.count_jobs(connection, tenant, most=WALKED_MAX + 1)
        if walked > WALKED_MAX:
            raise _too_many(by, WALKED_MAX, "in all", "list them by created_at")
        found, fitting = await listing.list_jobs_sorted(
            connection,
            tenant,
            chosen,
            by=by,
            at=at,
            upwards=upwards,
            most=limit,
            bound=SORTED_MAX,
            now=desk.clock.now(),
            payloads=payloads,
        )
        opened = [one.job for one in found]
        if payloads:
            opened = await open_jobs(desk, connection, tenant, opened)
        shown = await look(connection, opened, now=desk.clock.now())
        return [one._replace(job=job) for one, job in zip(found, shown, strict=True)], fitting

    rows, fitting = await desk.transact(work, tenant=tenant)
    if fitting > SORTED_MAX:
        fix = "narrow them by filters, or list them by created_at"
        raise _too_many(by, SORTED_MAX, "that fit", fix)
    return [((row.key, row.job.id), row.job) for row in rows]


def _too_many(by: str, most: int, which: str, fix: str) -> Invalid:
    return Invalid(
        f"expected at most {most} jobs {which} to sort by {by}, got more; {fix}", pointer="/sort"
    )


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run of a job, with its public state."""

    id: RunId
    state: Shown
    finished_at: datetime | None


async def last_runs(desk: Desk, tenant: TenantId, jobs: Sequence[JobId]) -> dict[JobId, LastRun]:
    """The latest run of each of some jobs that was due by now; those without one are left out."""

    async def work(connection: Connection) -> dict[JobId, LastRun]:
        now = await desk.now(connection)
        found = await listing.read_last_runs(connection, jobs, now=now)
        going_on = [run.id for run in found.values() if run.state not in FINAL]
        holdings = await listing.read_holdings(connection, tenant, going_on) if going_on else {}
        return {
            job: LastRun(run.id, shown_state(run.state, holdings.get(run.id), now), run.finished_at)
            for job, run in found.items()
        }

    return await desk.transact(work, tenant=tenant) if jobs else {}


async def find_all_jobs(
    desk: Desk, tenant: TenantId, chosen: JobFilter, *, most: int
) -> list[JobId]:
    """Every job that fits, up to a bound: what an action over a filter means."""
    return [job.id for job in await find_every_job(desk, tenant, chosen, most=most, payloads=False)]


async def find_every_job(
    desk: Desk, tenant: TenantId, chosen: JobFilter, *, most: int, payloads: bool = True
) -> list[Job]:
    """The same as jobs."""
    found: list[Job] = []
    after: UUID | None = None
    while len(found) < most:
        page = await find_job_page(
            desk,
            tenant,
            chosen,
            after=after,
            newest_first=False,
            limit=PAGE_MAX,
            payloads=payloads,
        )
        found += page.jobs
        after = page.more
        if after is None:
            break
    return found[:most]


async def estimate_jobs(desk: Desk, tenant: TenantId, chosen: JobFilter) -> int:
    """About how many jobs fit, without counting them."""

    async def work(connection: Connection) -> int:
        return await listing.estimate_jobs(connection, tenant, chosen)

    return await desk.transact(work, tenant=tenant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of the list of runs: due times, and the place a page begins at."""

    since: datetime
    until: datetime | None = None
    place: UUID | None = None
    backwards: bool = False

    @property
    def low(self) -> UUID:
        """The smallest id in it."""
        first = floor_of(to_ms(self.since))
        return max(first, self.place) if self.backwards and self.place else first

    @property
    def high(self) -> UUID:
        """The smallest id after it."""
        last = LAST if self.until is None else floor_of(to_ms(self.until) + 1)
        return min(last, self.place) if self.place and not self.backwards else last

    def narrowed(self, seen: UUID) -> "Span":
        """What is left of it after a run."""
        return replace(self, place=UUID(int=seen.int + 1) if self.backwards else seen)


async def find_runs(
    desk: Desk,
    tenant: TenantId,
    chosen: RunFilter,
    *,
    shown: frozenset[Shown],
    span: Span,
    limit: int,
) -> tuple[list[RunView], UUID | None]:
    """A page of runs, latest due first (backwards: earliest), and where the next one begins.

    Whether a run waits or runs is written in its parcel, so a filter by such a state reads on until
    the page is full or a bounded number of reads was made; a short page is not the end. What runs
    is in leased parcels, which are few beside the runs: alone, it is found by them.
    """
    read = listing.list_running if shown == {Shown.RUNNING} else listing.list_runs

    async def work(connection: Connection) -> tuple[list[RunView], UUID | None]:
        now = await desk.now(connection)
        left, found = span, list[RunView]()
        for _ in range(SCANS_MAX):
            rows, end = await read(
                connection,
                tenant,
                chosen,
                before=left.high,
                low=left.low,
                most=limit,
                scan=max(limit, LOOKED_AT_MAX),
                earliest_first=span.backwards,
            )
            opened = await open_errors(desk, connection, tenant, rows)
            views = await _views(connection, tenant, opened, now)
            for kept, view in zip(rows, views, strict=True):
                left = left.narrowed(view.run.id)
                said = says(kept.error, view.run.error, chosen.text)
                if said and (not shown or view.state in shown):
                    found.append(view)
                if len(found) == limit:
                    return found, left.place
            if len(rows) < limit:
                return found, None if end is None else left.narrowed(end).place
        return found, left.place

    return await desk.transact(work, tenant=tenant)


async def estimate_runs(desk: Desk, tenant: TenantId, chosen: RunFilter, span: Span) -> int:
    """About how many runs fit, without counting them."""

    async def work(connection: Connection) -> int:
        return await listing.estimate_runs(
            connection, tenant, chosen, before=span.high, low=span.low
        )

    return await desk.transact(work, tenant=tenant)


async def find_all_runs(
    desk: Desk,
    tenant: TenantId,
    chosen: RunFilter,
    *,
    shown: frozenset[Shown],
    since: datetime,
    until: datetime | None,
    most: int,
) -> list[RunId]:
    """Every run that fits, up to a bound: what an action over a filter means."""
    found: list[RunId] = []
    place: UUID | None = None
    while len(found) < most:
        span = Span(since=since, until=until, place=place)
        views, place = await find_runs(desk, tenant, chosen, shown=shown, span=span, limit=PAGE_MAX)
        found += [view.run.id for view in views]
        if place is None:
            break
    return found[:most]


async def _views(
    connection: Connection, tenant: TenantId, runs: list[Run], now: datetime
) -> list[RunView]:
    open_runs = [run.id for run in runs if run.state not in FINAL]
    holdings = await listing.read_holdings(connection, tenant, open_runs) if open_runs else {}
    return [
        RunView(
            run=run,
            holding=holdings.get(run.id),
            state=shown_state(run.state, holdings.get(run.id), now),
        )
        for run in runs
    ]
