"""Lists that people page through."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from betimes.domain.ids import JobId, RunId, TenantId, WorkerId, floor_of, shard_of, to_ms
from betimes.domain.job import Job
from betimes.domain.run import Holding, Run
from betimes.domain.states import JobState, RunState, Trigger
from betimes.store.ask import estimate, many, maybe, one
from betimes.store.jobs import job_of, to_optional_json
from betimes.store.pool import Connection
from betimes.store.queries import load
from betimes.store.runs import run_of

SQL = load("listing")
FIRST = UUID(int=0)
ALL = 2_147_483_647


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs are meant; what is empty does not matter."""

    states: Sequence[JobState] = ()
    queues: Sequence[str] = ()
    handlers: Sequence[str] = ()
    group: str | None = None
    prefix: str | None = None
    kinds: Sequence[str] = ()
    tags: "dict[str, str] | None" = None
    fire_after: datetime | None = None
    fire_before: datetime | None = None
    targets: Sequence[str] = ()
    text: str | None = None
    """Part of the name, whatever its case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are meant; what is empty does not matter."""

    job: JobId | None = None
    workflow_run: UUID | None = None
    states: Sequence[RunState] = ()
    queues: Sequence[str] = ()
    handlers: Sequence[str] = ()
    triggers: Sequence[Trigger] = ()
    worker: WorkerId | None = None
    tags: "dict[str, str] | None" = None
    text: str | None = None
    """Part of the error, whatever its case."""
    fire_after: datetime | None = None
    fire_before: datetime | None = None
    finished_after: datetime | None = None
    finished_before: datetime | None = None
    lag: timedelta | None = None
    """Those that started at least so late."""
    fingerprint: str | None = None
    """Those that died of this."""


async def list_jobs(
    connection: Connection,
    tenant: TenantId,
    chosen: JobFilter,
    *,
    after: UUID,
    newest_first: bool,
    most: int,
    scan: int,
    now: datetime,
    payloads: bool = True,
) -> tuple[list[Job], UUID | None]:
    """A page of jobs, and the last one that was looked at where the bound `scan` was met."""
    suffix = "_newest" if newest_first else ""
    rows = await many(
        connection,
        SQL[f"list_jobs_where{suffix}"],
        after=after,
        most=most,
        scan=scan,
        soon=floor_of(to_ms(now)),
        payloads=payloads,
        **_about_jobs(tenant, chosen),
    )
    end = None
    if len(rows) < most and chosen != JobFilter():
        end = await maybe(
            connection, SQL[f"find_jobs_end{suffix}"], tenant=tenant, after=after, scan=scan
        )
    return [job_of(row) for row in rows], None if end is None else end["id"]


Spot = tuple[str, UUID]
"""A place in a sorted list: just before the row with this key and id."""


class Sorted(NamedTuple):
    """A row of a sorted list."""

    key: str
    job: Job


async def list_jobs_sorted(
    connection: Connection,
    tenant: TenantId,
    chosen: JobFilter,
    *,
    by: str,
    at: Spot | None,
    upwards: bool,
    most: int,
    bound: int,
    now: datetime,
    payloads: bool = True,
) -> tuple[list[Sorted], int]:
    """A page of jobs by a member, from a place on; and how many may fit, up to a bound and one."""
    rows = await many(
        connection,
        SQL["list_jobs_sorted"],
        by=by,
        at_key=None if at is None else at[0],
        at_id=None if at is None else at[1],
        up=upwards,
        most=most,
        bound=bound,
        soon=floor_of(to_ms(now)),
        payloads=payloads,
        **_about_jobs(tenant, chosen),
    )
    found = [Sorted(row["key"], job_of(row)) for row in rows if row["id"] is not None]
    return found, rows[0]["fitting"]


async def estimate_jobs(connection: Connection, tenant: TenantId, chosen: JobFilter) -> int:
    """About how many jobs there are, by what the planner knows."""
    told = _about_jobs(tenant, chosen)
    return await estimate(
        connection,
        SQL["list_jobs_where"],
        after=FIRST,
        most=1,
        scan=ALL,
        soon=FIRST,
        payloads=False,
        **told,
    )


def _about_jobs(tenant: TenantId, chosen: JobFilter) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "states": [int(state) for state in chosen.states] or None,
        "queues": list(chosen.queues) or None,
        "handlers": list(chosen.handlers) or None,
        "group": chosen.group,
        "prefix": chosen.prefix,
        "kinds": list(chosen.kinds) or None,
        "targets": list(chosen.targets) or None,
        "tags": to_optional_json(chosen.tags or {}),
        "fire_after": chosen.fire_after,
        "fire_before": chosen.fire_before,
        "text": chosen.text,
    }


async def list_runs(
    connection: Connection,
    tenant: TenantId,
    chosen: RunFilter,
    *,
    before: UUID,
    low: UUID,
    most: int,
    scan: int,
    earliest_first: bool = False,
) -> tuple[list[Run], UUID | None]:
    """A page of runs with ids in [low, before), without their payloads and results.

    Beside it the last one that was looked at, where the bound `scan` was met before the page was
    full.
    """
    statement = _runs_statement(chosen) + ("_earliest" if earliest_first else "")
    span: dict[str, Any] = {"high": before, "low": low, "scan": scan}
    told = _about_runs(tenant, chosen)
    rows = await many(connection, SQL[statement], most=most, **span, **told)
    end = None
    if len(rows) < most and chosen != RunFilter(job=chosen.job):
        end = await one(
            connection,
            SQL["find_runs_end"],
            tenant=tenant,
            job=chosen.job,
            shard=None if chosen.job is None else shard_of(chosen.job),
            up=earliest_first,
            **span,
        )
    return [run_of(row) for row in rows], None if end is None else end["id"]


async def list_running(
    connection: Connection,
    tenant: TenantId,
    chosen: RunFilter,
    *,
    before: UUID,
    low: UUID,
    most: int,
    scan: int,
    earliest_first: bool = False,
) -> tuple[list[Run], UUID | None]:
    """The same of the runs that workers have, by what is leased; `worker` is who has them."""
    span: dict[str, Any] = {"high": before, "low": low, "scan": scan}
    told = _conditions(tenant, chosen) | {"job": chosen.job}
    statement = "list_running_earliest" if earliest_first else "list_running"
    rows = await many(connection, SQL[statement], most=most, **span, **told)
    end = None
    if len(rows) < most:
        whose = {"tenant": tenant, "worker": chosen.worker}
        end = await one(connection, SQL["find_running_end"], up=earliest_first, **span, **whose)
    return [run_of(row) for row in rows], None if end is None else end["id"]


def _runs_statement(chosen: RunFilter) -> str:
    return "list_runs_where" if chosen.job is None else "list_runs_of_job"


async def estimate_runs(
    connection: Connection, tenant: TenantId, chosen: RunFilter, *, before: UUID, low: UUID
) -> int:
    """About how many runs there are in a span, by what the planner knows."""
    told = _about_runs(tenant, chosen)
    statement = SQL[_runs_statement(chosen)]
    return await estimate(connection, statement, high=before, low=low, most=1, scan=ALL, **told)


def _about_runs(tenant: TenantId, chosen: RunFilter) -> dict[str, Any]:
    whose = {} if chosen.job is None else {"job": chosen.job, "shard": shard_of(chosen.job)}
    states = [int(state) for state in chosen.states] or None
    return {**whose, "states": states, **_conditions(tenant, chosen)}


def _conditions(tenant: TenantId, chosen: RunFilter) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "workflow_run": chosen.workflow_run,
        "queues": list(chosen.queues) or None,
        "handlers": list(chosen.handlers) or None,
        "triggers": [int(trigger) for trigger in chosen.triggers] or None,
        "worker": chosen.worker,
        "tags": to_optional_json(chosen.tags or {}),
        "text": chosen.text,
        "fire_after": chosen.fire_after,
        "fire_before": chosen.fire_before,
        "finished_after": chosen.finished_after,
        "finished_before": chosen.finished_before,
        "lag": chosen.lag,
        "fingerprint": chosen.fingerprint,
    }


async def read_holdings(
    connection: Connection, tenant: TenantId, runs: Sequence[RunId]
) -> dict[RunId, Holding]:
    """Who holds which of these runs."""
    rows = await many(
        connection,
        SQL["read_holdings"],
        tenant=tenant,
        shards=sorted({shard_of(run) for run in runs}),
        runs=list(runs),
    )
    return {
        row["run_id"]: Holding(
            parcel=row["parcel_id"],
            worker=row["worker_id"],
            fence=row["fence"],
            lease_until=row["lease_until"],
            visible_at=row["visible_at"],
            deliveries=row["deliveries"],
            leased_at=row["leased_at"],
        )
        for row in rows
    }


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run of a job."""

    id: RunId
    state: RunState
    finished_at: datetime | None


async def read_last_runs(
    connection: Connection, jobs: Sequence[JobId], *, now: datetime
) -> dict[JobId, LastRun]:
    """The latest run of each job that was due by now."""
    rows = await many(
        connection,
        SQL["read_last_runs"],
        shards=[shard_of(job) for job in jobs],
        jobs=list(jobs),
        before=floor_of(to_ms(now) + 1),
    )
    return {
        row["job_id"]: LastRun(row["id"], RunState(row["state"]), row["finished_at"])
        for row in rows
    }


async def count_jobs(connection: Connection, tenant: TenantId, *, most: int) -> int:
    """How many jobs there are, up to a bound."""
    return int((await one(connection, SQL["count_jobs"], tenant=tenant, most=most))["jobs"])


async def count_work(connection: Connection, tenant: TenantId) -> tuple[int, int]:
    """How many runs wait, and how many are under way."""
    row = await one(connection, SQL["count_work"], tenant=tenant)
    return int(row["waiting"]), int(row["leased"])
