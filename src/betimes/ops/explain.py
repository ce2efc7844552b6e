"""Why did this not run? Every reason that is known, what must be fixed first comes first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.ids import JobId, RunId, TenantId, floor_of, shard_of, to_ms
from betimes.domain.job import Job
from betimes.domain.states import JobState, Shown
from betimes.ops.desk import Desk
from betimes.ops.read import get_job
from betimes.ops.runs import RunView, get_run
from betimes.ops.timetable import read_timetable
from betimes.store.control import find_fires
from betimes.store.episodes import awaits_approval
from betimes.store.explain import DecisionRow, count_workers, list_decisions, read_decision
from betimes.store.pool import Connection
from betimes.store.queues import read_queue

__all__ = ["DecisionRow", "Explanation", "Reason", "explain_job", "explain_run"]

SEEN_WITHIN = timedelta(minutes=2)
HISTORY_MAX = 20
MICROSECOND = timedelta(microseconds=1)
OF_JOB = {
    JobState.PAUSED: ("JOB_PAUSED", "Resume the job."),
    JobState.AUTO_PAUSED: ("JOB_AUTO_PAUSED", "Look at its last failures, then resume it."),
    JobState.CANCELLED: ("JOB_CANCELLED", "Create a new job; a cancelled one stays so."),
    JobState.COMPLETED: ("AFTER_END", "Give the job a schedule with a fire in the future."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that stands in the way, or explains what happened."""

    code: str
    blocking: bool
    fix: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What will become of it, or has, and why."""

    verdict: str
    reasons: Sequence[Reason]
    history: Sequence[DecisionRow] = ()


async def explain_job(
    desk: Desk, tenant: TenantId, job: JobId, *, at: datetime | None
) -> Explanation:
    """Why a job fires or does not: now, or at one fire time."""

    async def work(connection: Connection) -> Explanation:
        inner = desk.inside(connection, desk.hints)
        found = await get_job(inner, tenant, job)
        history = await list_decisions(connection, job, most=HISTORY_MAX)
        reasons = _of_state(found)
        if at is None:
            verdict = "will_not_run" if reasons else "will_run"
            return Explanation(verdict=verdict, reasons=reasons, history=history)
        verdict, about = await _of_fire(desk, connection, found, at)
        blocked = verdict == "will_run" and bool(reasons)
        return Explanation(
            verdict="will_not_run" if blocked else verdict,
            reasons=[*about, *(reasons if blocked else [])],
            history=history,
        )

    return await desk.transact(work, tenant=tenant)


def _of_state(job: Job) -> list[Reason]:
    known = OF_JOB.get(job.state)
    if known is None:
        return []
    told = {"reason": job.state_reason.get("reason"), "by": job.state_reason.get("by")}
    return [Reason(code=known[0], blocking=True, fix=known[1], evidence=told)]


async def _of_fire(
    desk: Desk, connection: Connection, job: Job, at: datetime
) -> tuple[str, list[Reason]]:
    """What is known about one fire time."""
    fires = await find_fires(
        connection, shard_of(job.id), job.id, low=floor_of(to_ms(at)), first=at, last=at
    )
    if fires:
        return "ran", []
    decision = await read_decision(connection, job.id, at)
    if decision is not None:
        return "will_not_run", [
            Reason(code=decision.code, blocking=True, fix="", evidence=dict(decision.detail))
        ]
    if at < job.created_at:
        return "will_not_run", [
            Reason(code="CREATED_AFTER_FIRE", blocking=True, fix="Backfill the span.")
        ]
    timetable = read_timetable(job.definition.schedule, job.id)
    dropped = timetable.dropped(at - MICROSECOND, at)
    if dropped:
        return "will_not_run", [Reason(code=dropped[0].code, blocking=True, fix="")]
    coming = timetable.next(at - MICROSECOND)
    if coming is None or coming.nominal != at:
        return "will_not_run", [
            Reason(code="NOT_DUE", blocking=True, fix="The schedule has no fire at this time.")
        ]
    now = await desk.now(connection)
    return ("will_run", []) if at > now else ("unknown_purged", [])


async def explain_run(desk: Desk, tenant: TenantId, run: RunId) -> Explanation:
    """Why a run waits, or what ended it."""

    async def work(connection: Connection) -> Explanation:
        view = await get_run(desk.inside(connection, desk.hints), tenant, run)
        now = await desk.now(connection)
        if view.state in (Shown.SCHEDULED, Shown.QUEUED, Shown.RETRY_WAIT):
            return await _waiting(connection, tenant, view, now)
        if view.state is Shown.RUNNING:
            return Explanation(verdict="running", reasons=[])
        code = view.run.reason
        reasons = [] if code is None else [Reason(code=code, blocking=False, fix="")]
        ran = view.state in (Shown.SUCCEEDED, Shown.DEAD)
        return Explanation(verdict="ran" if ran else "will_not_run", reasons=reasons)

    return await desk.transact(work, tenant=tenant)


async def _waiting(
    connection: Connection, tenant: TenantId, view: RunView, now: datetime
) -> Explanation:
    run, reasons = view.run, list[Reason]()
    if view.holding is not None and await awaits_approval(connection, run.id):
        fix = "Approve the catch-up, or drop it."
        reasons.append(Reason(code="CATCHUP_NOT_APPROVED", blocking=True, fix=fix))
    queue = await read_queue(connection, tenant, run.queue)
    paused = queue is not None and queue.paused_at is not None
    if paused and (queue.paused_until is None or queue.paused_until > now):  # type: ignore[union-attr]
        told = {"reason": queue.paused_reason}  # type: ignore[union-attr]
        reasons.append(
            Reason(code="QUEUE_PAUSED", blocking=True, fix="Resume the queue.", evidence=told)
        )
    if not await count_workers(connection, tenant, run.queue, since=now - SEEN_WITHIN):
        fix = "Start a worker that serves this queue."
        reasons.append(
            Reason(
                code="NO_WORKER_FOR_QUEUE", blocking=True, fix=fix, evidence={"queue": run.queue}
            )
        )
    turn = None if view.holding is None else view.holding.visible_at
    if run.due_at <= now and turn is not None and turn > now and view.state is not Shown.RETRY_WAIT:
        told = {"visible_at": turn.isoformat()}
        reasons.append(Reason(code="CATCHUP_PACED", blocking=False, fix="", evidence=told))
    elif run.due_at > now:
        reasons.append(Reason(code="NOT_DUE", blocking=False, fix=""))
    elif not reasons:
        reasons.append(Reason(code="WORKERS_BUSY", blocking=False, fix="Add slots or workers."))
    return Explanation(verdict="waiting", reasons=reasons)
