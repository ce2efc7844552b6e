"""Reading jobs."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId, TenantId
from betimes.domain.job import GROUP_DEFAULT, Job
from betimes.ops.ahead import look, look_at_one
from betimes.ops.contents import is_sealed, open_jobs, open_revisions
from betimes.ops.create import shard_of_name
from betimes.ops.desk import Desk
from betimes.ops.grip import no_such_job
from betimes.store.jobs import Revision, list_revisions, read_job, read_jobs, read_named_job
from betimes.store.jobs import list_jobs as list_rows
from betimes.store.pool import Connection

Kept = Revision
PAGE_MAX = 1_000
BEGINNING = JobId(UUID(int=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """A page of jobs; `next` is where the following one begins, None at the end."""

    jobs: Sequence[Job]
    next: JobId | None


async def get_job(desk: Desk, tenant: TenantId, job: JobId) -> Job:
    """One job by its id."""

    async def work(connection: Connection) -> Job:
        found = await read_job(connection, job)
        if found is None or found.tenant != tenant:
            raise no_such_job(job)
        (opened,) = await open_jobs(desk, connection, tenant, [found])
        return await look_at_one(connection, opened, now=desk.clock.now())

    return await desk.transact(work, tenant=tenant)


def job_reader(
    desk: Desk,
) -> Callable[[Connection, Sequence[JobId]], Awaitable[Mapping[JobId, Job]]]:
    """Reads those of some jobs that are there, for callers who share a transaction."""

    async def read(connection: Connection, jobs: Sequence[JobId]) -> Mapping[JobId, Job]:
        found = await read_jobs(connection, jobs)
        for tenant in {job.tenant for job in found.values() if is_sealed(job.definition.payload)}:
            theirs = [job for job in found.values() if job.tenant == tenant]
            found |= {job.id: job for job in await open_jobs(desk, connection, tenant, theirs)}
        shown = await look(connection, list(found.values()), now=desk.clock.now())
        return {job.id: job for job in shown}

    return read


async def get_named_job(
    desk: Desk, tenant: TenantId, name: str, *, group: str = GROUP_DEFAULT
) -> Job:
    """One job by its name."""
    shard = shard_of_name(desk.shards, tenant, group, name)

    async def work(connection: Connection) -> Job:
        found = await read_named_job(connection, shard, tenant, group, name)
        if found is None:
            raise NotFound(f"there is no job with the name {name!r} in the group {group!r}")
        (opened,) = await open_jobs(desk, connection, tenant, [found])
        return await look_at_one(connection, opened, now=desk.clock.now())

    return await desk.transact(work, tenant=tenant)


async def list_jobs(
    desk: Desk, tenant: TenantId, *, after: JobId = BEGINNING, limit: int = 50
) -> JobPage:
    """Jobs in the order of their creation."""
    most = min(max(limit, 1), PAGE_MAX)

    async def work(connection: Connection) -> list[Job]:
        rows = await list_rows(connection, tenant, after=after, most=most)
        opened = await open_jobs(desk, connection, tenant, rows)
        return await look(connection, opened, now=desk.clock.now())

    jobs = await desk.transact(work, tenant=tenant)
    return JobPage(jobs=jobs, next=jobs[-1].id if len(jobs) == most else None)


async def get_revisions(desk: Desk, tenant: TenantId, job: JobId) -> list[Revision]:
    """What a job was before its edits, newest first; readable after it was deleted."""

    async def work(connection: Connection) -> list[Revision]:
        found = await list_revisions(connection, tenant, job)
        return await open_revisions(desk, connection, tenant, found)

    return await desk.transact(work, tenant=tenant)
