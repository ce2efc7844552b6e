"""What alert rules look at: for each condition, the subjects for which it holds.

Every look is bounded by the jobs and queues a rule names, or by what happened since its window
began, and finds its rows by index; none walks over a tenant's jobs or runs.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

from betimes.domain.alert import TENANT, USUAL_OF, Condition, Finding, slowness
from betimes.domain.ids import JobId, floor_of, from_text, shard_of, to_ms, to_text
from betimes.store.alerts import Rule
from betimes.store.ask import many, one
from betimes.store.pool import Connection
from betimes.store.queries import load

SQL = load("watching")
MISSED_CODES = (
    "CATCHUP_NONE",
    "CATCHUP_WINDOW_EXCEEDED",
    "CATCHUP_COALESCED",
    "CATCHUP_MAX_REACHED",
    "CATCHUP_DROPPED",
)
SUBJECTS_MAX = 200
RUNS_MAX = 1_000
ROWS_MAX = 10_000
PARCELS_PER_SHARD_MAX = 1_000
LATE_SINCE_MAX = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a rule: at what time, and which subjects are open."""

    connection: Connection
    rule: Rule
    now: datetime
    open: Sequence[str]

    @property
    def high(self) -> UUID:
        """The end of what is due."""
        return floor_of(to_ms(self.now) + 1)

    @property
    def since(self) -> datetime:
        """The beginning of the window."""
        return self.now - self.rule.window


async def findings(
    connection: Connection, rule: Rule, *, now: datetime, open_subjects: Sequence[str]
) -> list[Finding]:
    """The subjects for which the condition of a rule holds."""
    if rule.tags:
        tagged = await _tagged(connection, rule)
        if not tagged and not rule.jobs:
            return []  # without a job at all, the rule would be about every job
        rule = replace(rule, jobs=(*rule.jobs, *sorted(tagged - set(rule.jobs))))
    return await LOOKS[rule.condition](Look(connection, rule, now, open_subjects))


async def _tagged(connection: Connection, rule: Rule) -> set[JobId]:
    """Jobs that carry the tags of a rule, as they do now."""
    rows = await many(
        connection,
        SQL["tagged_jobs"],
        tenant=rule.tenant,
        keys=list(rule.tags),
        values=list(rule.tags.values()),
        most=SUBJECTS_MAX,
    )
    return {JobId(row["job_id"]) for row in rows}


async def names_of(connection: Connection, jobs: Sequence[UUID]) -> dict[str, str]:
    """What jobs are called, by the text of their ids; those without a name are missing."""
    rows = await many(connection, SQL["job_names"], **_placed(jobs))
    return {to_text("job", row["id"]): row["name"] for row in rows if row["name"] is not None}


async def tenants_of(connection: Connection, jobs: Sequence[UUID]) -> dict[UUID, UUID]:
    """Whose jobs these are; those that do not exist are missing."""
    rows = await many(connection, SQL["job_names"], **_placed(jobs))
    return {row["id"]: row["tenant_id"] for row in rows}


async def _failed(look: Look) -> list[Finding]:
    jobs: set[UUID] = set(look.rule.jobs)
    if not jobs:
        # Whatever has died since the window began, and whatever is open: it may have recovered.
        rows = await many(
            look.connection,
            SQL["recently_dead"],
            tenant=look.rule.tenant,
            since=look.since,
            most=SUBJECTS_MAX,
        )
        jobs = {row["job_id"] for row in rows} | _jobs_of(look.open)
    least = int(look.rule.threshold)
    rows = await many(
        look.connection,
        SQL["failures_in_a_row"],
        **_placed(sorted(jobs)),
        high=look.high,
        most=least,
    )
    return [_of_job(row["job_id"], row["dead"]) for row in rows if row["dead"] >= least]


async def _late(look: Look) -> list[Finding]:
    rows = await many(
        look.connection,
        SQL["late_runs"],
        **_placed(look.rule.jobs),
        low=floor_of(to_ms(look.now - LATE_SINCE_MAX)),
        high=look.high,
        due_before=look.now - timedelta(seconds=look.rule.threshold),
        most=RUNS_MAX,
    )
    return [
        _of_job(row["job_id"], (look.now - row["due_at"]).total_seconds())
        for row in rows
        if row["due_at"] is not None
    ]


async def _missed(look: Look) -> list[Finding]:
    rows = await many(
        look.connection,
        SQL["missed_fires"],
        tenant=look.rule.tenant,
        since=look.since,
        codes=list(MISSED_CODES),
        jobs=list(look.rule.jobs) or None,
        most=ROWS_MAX,
    )
    found = [_of_job(row["job_id"], row["fires"]) for row in rows]
    return [one for one in found if one.value >= look.rule.threshold][:SUBJECTS_MAX]


async def _slow(look: Look) -> list[Finding]:
    rows = await many(
        look.connection,
        SQL["run_seconds"],
        **_placed(look.rule.jobs),
        high=look.high,
        most=USUAL_OF + 1,
    )
    told = [(row["job_id"], slowness(row["seconds"])) for row in rows]
    return [
        _of_job(job, factor)
        for job, factor in told
        if factor is not None and factor >= look.rule.threshold
    ]


async def _no_success(look: Look) -> list[Finding]:
    rows = await many(
        look.connection,
        SQL["last_successes"],
        **_placed(look.rule.jobs),
        high=look.high,
        most=RUNS_MAX,
    )
    told = [
        (row["job_id"], (look.now - (row["success_at"] or row["created_at"])).total_seconds())
        for row in rows
    ]
    return [_of_job(job, seconds) for job, seconds in told if seconds >= look.rule.threshold]


async def _dead(look: Look) -> list[Finding]:
    row = await one(
        look.connection,
        SQL["count_dead"],
        tenant=look.rule.tenant,
        since=look.since,
        queues=list(look.rule.queues) or None,
        most=ROWS_MAX,
    )
    held = row["dead"] >= look.rule.threshold
    return [Finding(TENANT, float(row["dead"]))] if held else []


async def _queue(look: Look, value: Callable[[Any], float]) -> list[Finding]:
    found = []
    for queue in look.rule.queues:
        row = await one(
            look.connection,
            SQL["queue_backlog"],
            tenant=look.rule.tenant,
            queue=queue,
            now=look.now,
            most=PARCELS_PER_SHARD_MAX,
        )
        told = value(row)
        if told >= look.rule.threshold:
            found.append(Finding(f"queue:{queue}", told))
    return found


async def _lag(look: Look) -> list[Finding]:
    def seconds(row: Any) -> float:
        oldest = row["oldest"]
        return 0.0 if oldest is None else (look.now - oldest).total_seconds()

    return await _queue(look, seconds)


async def _depth(look: Look) -> list[Finding]:
    return await _queue(look, lambda row: float(row["waiting"]))


LOOKS: Mapping[Condition, Callable[[Look], Awaitable[list[Finding]]]] = MappingProxyType(
    {
        Condition.JOB_FAILED_N: _failed,
        Condition.JOB_LATE: _late,
        Condition.JOB_MISSED: _missed,
        Condition.JOB_SLOW: _slow,
        Condition.NO_SUCCESS_SINCE: _no_success,
        Condition.DEAD_LETTER_RATE: _dead,
        Condition.QUEUE_LAG: _lag,
        Condition.QUEUE_DEPTH: _depth,
    }
)


def _of_job(job: UUID, value: float) -> Finding:
    return Finding(to_text("job", job), float(value))


def _jobs_of(subjects: Sequence[str]) -> set[UUID]:
    return {from_text("job", one) for one in subjects if one.startswith("job_")}


def _placed(jobs: Sequence[UUID] | Sequence[JobId]) -> dict[str, Any]:
    return {"shards": [shard_of(job) for job in jobs], "jobs": list(jobs)}
