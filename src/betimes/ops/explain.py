"""Why did this not run? Every reason that is known, what must be fixed first comes first.

All answers come from stored facts: rows of the run, its parcel, the decisions of its job, and what
stands around them. Each look is bounded; nothing is searched for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.ids import JobId, RunId, TenantId, floor_of, shard_of, to_ms, to_text, to_us
from betimes.domain.job import Job
from betimes.domain.states import Shown, Trigger
from betimes.ops.desk import Desk
from betimes.ops.facts import gather, look_around
from betimes.ops.outlook import just_before
from betimes.ops.read import get_job
from betimes.ops.reasons import Reason, estimate, of_job_state, why_it_waits
from betimes.ops.runs import RunView, get_run
from betimes.ops.timetable import read_timetable
from betimes.schedule import Fire, Schedule
from betimes.store import explain as rows
from betimes.store.control import find_fires, find_planned
from betimes.store.explain import DecisionRow
from betimes.store.pool import Connection

__all__ = ["DecisionRow", "Explanation", "Reason", "explain_job", "explain_run"]

HISTORY_MAX = 20
ERROR_MAX = 200
MICROSECOND = timedelta(microseconds=1)
DROPPED_MAX = 20
"""Fires taken away by calendars or clocks that are counted before the next one."""
FIRES_LOOKED_AT = 20
"""Last fires of a job that are looked at for overlap."""
OF_FIRE = ("job", "calendar", "dst", "catchup")
OF_FUTURE_FIRE = ("cluster", "tenant", *OF_FIRE, "queue", "workers")
OF_NEXT_FIRE = ("cluster", "tenant", "job", "calendar", "dst", "overlap", "queue", "workers")
OF_WAITING = (
    *("cluster", "tenant", "catchup", "overlap", "concurrency", "quota", "rate"),
    *("queue", "workers", "coordinators"),
)
OF_RUN = ("run",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What will become of it, or has, and why."""

    verdict: str
    reasons: Sequence[Reason]
    history: Sequence[DecisionRow] = ()
    run: RunId | None = None
    ahead: int | None = None
    ahead_at_least: bool = False
    """Whether so many were counted that there may be more."""
    expected_at: datetime | None = None
    next_fire_at: datetime | None = None
    """When the job fires next, where that was asked."""
    checked: Sequence[str] = ()
    """What was looked at; about everything else nothing is said."""

    @property
    def eligible(self) -> bool:
        """Whether it would run if there were room."""
        return not any(reason.blocking for reason in self.reasons)


async def explain_job(
    desk: Desk, tenant: TenantId, job: JobId, *, at: datetime | None
) -> Explanation:
    """Why a job fires or does not: next, or at one fire time."""
    if at is None:
        return await _of_next(desk, tenant, job)

    async def work(connection: Connection) -> tuple[Job, Explanation, RunId | None]:
        inner = desk.inside(connection, desk.hints)
        found = await get_job(inner, tenant, job)
        history = await _history(connection, found)
        states = of_job_state(found)
        run = await _run_of(connection, found, at)
        if run is not None:
            return found, Explanation(verdict="ran", reasons=[], history=history), run
        told = await _of_fire(desk, connection, found, at)
        if told.verdict == "will_run" and states:
            told = Explanation(verdict="will_not_run", reasons=[*states, *told.reasons])
        return found, replace(told, history=history, checked=OF_FIRE), None

    found, told, run = await desk.transact(work, tenant=tenant)
    if run is None and told.verdict == "will_run":
        return replace(await _among_others(desk, found, told, at=at), checked=OF_FUTURE_FIRE)
    if run is None:
        return told
    return replace(await explain_run(desk, tenant, run), history=told.history, run=run)


async def _of_next(desk: Desk, tenant: TenantId, job: JobId) -> Explanation:
    """When a job fires next, and what stands in its way."""

    async def work(connection: Connection) -> tuple[Job, Explanation]:
        found = await get_job(desk.inside(connection, desk.hints), tenant, job)
        now = await desk.now(connection)
        told = Explanation(
            verdict="will_not_run",
            reasons=of_job_state(found),
            history=await _history(connection, found),
            checked=("job",),
        )
        if told.reasons:
            return found, told
        coming = await _next_fire(connection, found, now)
        about: dict[str, Any] = {"job": to_text("job", job)}
        if coming is None:
            return found, replace(told, reasons=[_of_no_fire(found, about)])
        timetable = read_timetable(found.definition.schedule, job)
        reasons = [
            *_of_dropped(found, timetable, now, coming.nominal, about),
            *await _of_overlaps(connection, found, now, about),
            *_of_moves(coming, timetable, about),
        ]
        return found, replace(
            told,
            verdict="will_run",
            reasons=reasons,
            next_fire_at=coming.effective,
            checked=OF_NEXT_FIRE,
        )

    found, told = await desk.transact(work, tenant=tenant)
    if told.verdict != "will_run":
        return told
    return await _among_others(desk, found, told, at=told.next_fire_at)


async def _among_others(
    desk: Desk, job: Job, told: Explanation, *, at: datetime | None
) -> Explanation:
    """A fire that will come, with what would keep its run from starting as things are now."""
    around = await look_around(desk, job, at=at)
    verdict = "waiting" if around else told.verdict
    return replace(told, verdict=verdict, reasons=[*around, *told.reasons])


async def _next_fire(connection: Connection, job: Job, now: datetime) -> Fire | None:
    """The first planned fire that is not over, or else the first one left to the planner."""
    timetable = read_timetable(job.definition.schedule, job.id)
    planned = await find_planned(connection, job.shard, job.id, low=floor_of(to_ms(now)))
    for run in planned:
        if run.trigger is Trigger.SCHEDULE and run.fire_at is not None:
            return timetable.fire(to_us(run.fire_at))._replace(effective=run.due_at)
    return None if job.next_fire_at is None else timetable.fire(to_us(job.next_fire_at))


def _of_no_fire(job: Job, about: Mapping[str, Any]) -> Reason:
    """Why an active job has no fire ahead. Pure."""
    if job.definition.is_manual:
        return Reason(code="MANUAL_ONLY", blocking=True, evidence=about)
    if job.definition.has_fixed_delay:
        return Reason(code="FOLLOWS_ITS_RUN", blocking=False, evidence=about)
    return Reason(code="SCHEDULE_NEVER_FIRES", blocking=True, evidence=about)


def _of_dropped(
    job: Job, timetable: Schedule, now: datetime, until: datetime, about: Mapping[str, Any]
) -> list[Reason]:
    """Fires before the next one that a calendar or a clock change takes away. Pure."""
    dropped = timetable.dropped(now, just_before(until), DROPPED_MAX)
    found: list[Reason] = []
    for code in dict.fromkeys(drop.code for drop in dropped):
        alike = [drop for drop in dropped if drop.code == code]
        told = {**about, **_lost(job, timetable, alike[0].local), "fires": len(alike)}
        found.append(Reason(code=code, blocking=False, evidence=told))
    return found


def _lost(job: Job, timetable: Schedule, local: str) -> dict[str, Any]:
    """A fire that was taken away, and who may have done it. Pure."""
    told: dict[str, Any] = {"local": local, "timezone": timetable.timezone}
    calendars = sorted(job.definition.options.get("calendars") or ())
    return told | ({"calendars": calendars} if calendars else {})


async def _of_overlaps(
    connection: Connection, job: Job, now: datetime, about: Mapping[str, Any]
) -> list[Reason]:
    """Whether the last fires gave way to earlier runs of the job."""
    lately = await rows.read_overlaps(
        connection, job.id, high=floor_of(to_ms(now)), most=FIRES_LOOKED_AT
    )
    if not lately.skipped:
        return []
    told: dict[str, Any] = {**about, "skipped": lately.skipped, "looked_at": lately.looked_at}
    if lately.blocked_by is not None:
        told["blocked_by"] = to_text("run", lately.blocked_by)
    return [Reason(code="OVERLAP_LATELY", blocking=False, since=lately.since, evidence=told)]


async def _history(connection: Connection, job: Job) -> list[DecisionRow]:
    """The latest decisions about a job, each with what its sentence needs."""
    found = await rows.list_decisions(connection, job.id, most=HISTORY_MAX)
    return [_told(job, row) for row in found]


def _told(job: Job, row: DecisionRow) -> DecisionRow:
    """A decision with what the job knows and the row does not. Pure."""
    known: dict[str, Any] = {"job": to_text("job", job.id)}
    if "local" in row.detail:
        known["timezone"] = job.definition.schedule.get("timezone")
    if row.code == "CALENDAR_EXCLUDED":
        known["calendars"] = sorted(job.definition.options.get("calendars") or ())
    return replace(row, detail=known | dict(row.detail))


async def _run_of(connection: Connection, job: Job, at: datetime) -> RunId | None:
    """The run that a fire became; its due time may lie later, never earlier."""
    shard, low = shard_of(job.id), floor_of(to_ms(at))
    fires = await find_fires(connection, shard, job.id, low=low, first=at, last=at)
    return fires[at][0] if at in fires else None


async def _of_fire(desk: Desk, connection: Connection, job: Job, at: datetime) -> Explanation:
    """What is known about a fire time that has no run."""
    about: dict[str, Any] = {"job": to_text("job", job.id)}
    decision = await rows.read_decision(connection, job.id, at)
    if decision is not None:
        told = _told(job, decision)
        return _no(told.code, told.detail, since=told.decided_at)
    if at < job.created_at:
        return _no("CREATED_AFTER_FIRE", about)
    timetable = read_timetable(job.definition.schedule, job.id)
    dropped = timetable.dropped(at - MICROSECOND, at)
    if dropped:
        return _no(dropped[0].code, about | _lost(job, timetable, dropped[0].local))
    coming = timetable.next(at - MICROSECOND)
    if coming is None or coming.nominal != at:
        return _no(*_off(timetable, job, at, about))
    if at > await desk.now(connection):
        return Explanation(verdict="will_run", reasons=_of_moves(coming, timetable, about))
    return Explanation(
        verdict="unknown_purged", reasons=[Reason(code="PURGED_BY_RETENTION", blocking=False)]
    )


def _off(
    timetable: Schedule, job: Job, at: datetime, about: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Why a schedule has no fire at a time. Pure."""
    members = job.definition.schedule
    common = timetable.common
    start = None if common.start_at is None else common.start_at.instant(common.zone)
    if start is not None and to_us(at) < start:
        return "BEFORE_START", {**about, "start_at": members.get("start_at")}
    if common.max_fires is not None and job.fires >= common.max_fires:
        return "MAX_FIRES_REACHED", {**about, "max_fires": common.max_fires}
    if timetable.next(at - MICROSECOND) is None:
        return "AFTER_END", {**about, "end_at": members.get("end_at")}
    return "NOT_DUE", dict(about)


def _of_moves(fire: Fire, timetable: Schedule, about: Mapping[str, Any]) -> list[Reason]:
    """What moves a start, without standing in its way. Pure."""
    found: list[Reason] = []
    if "dst_gap_shifted" in fire.flags:
        told = {**about, "local": timetable.intended(fire), "timezone": timetable.timezone}
        found.append(Reason(code="DST_GAP_SHIFTED", blocking=False, evidence=told))
    if fire.effective != fire.nominal:
        told = {
            **about,
            "fire_time": fire.nominal.isoformat(),
            "due_at": fire.effective.isoformat(),
        }
        found.append(Reason(code="JITTER_DELAY", blocking=False, evidence=told))
    return found


def _no(code: str, evidence: Mapping[str, Any], *, since: datetime | None = None) -> Explanation:
    reason = Reason(code=code, blocking=True, since=since, evidence=evidence)
    return Explanation(verdict="will_not_run", reasons=[reason])


async def explain_run(desk: Desk, tenant: TenantId, run: RunId) -> Explanation:
    """Why a run waits, or what ended it."""
    now, view = await _look(desk, tenant, run)
    if view.state in (Shown.SCHEDULED, Shown.QUEUED, Shown.RETRY_WAIT):
        facts = await gather(desk, tenant, view.run, now)
        waits = why_it_waits(facts)
        turn = estimate(facts, waits)
        return Explanation(
            verdict="waiting",
            reasons=waits,
            run=run,
            ahead=turn.ahead,
            ahead_at_least=turn.least,
            expected_at=turn.expected_at,
            checked=OF_WAITING,
        )
    if view.state is Shown.RUNNING:
        reasons = _of_lease(view, now)
        return Explanation(verdict="running", reasons=reasons, run=run, checked=OF_RUN)
    blocker = await _blocker(desk, tenant, run)
    return _ended(view, blocker)


def _of_lease(view: RunView, now: datetime) -> list[Reason]:
    holding = view.holding
    if holding is None or holding.lease_until is None:
        return []
    code = "LEASE_EXPIRED_WAIT" if holding.lease_until < now else "LEASED"
    told = {"lease_until": holding.lease_until.isoformat(), "attempt": view.run.attempt}
    return [Reason(code=code, blocking=False, since=holding.leased_at, evidence=told)]


def _ended(view: RunView, blocker: RunId | None) -> Explanation:
    run = view.run
    ran = view.state in (Shown.SUCCEEDED, Shown.DEAD)
    told: dict[str, Any] = {"run": to_text("run", run.id), "attempt": run.attempt}
    if run.job is not None:
        told["job"] = to_text("job", run.job)
    if blocker is not None:
        told["blocked_by"] = to_text("run", blocker)
    if run.words is not None:
        told["reason"] = run.words
    if run.terms.gate is not None:
        told["key"] = run.terms.gate
    if ran and run.error is not None:
        told["error"] = error_text(run.error)
    code = run.reason
    reasons = (
        []
        if code is None
        else [Reason(code=code, blocking=not ran, since=run.finished_at, evidence=told)]
    )
    verdict = "ran" if ran else "will_not_run"
    return Explanation(verdict=verdict, reasons=reasons, run=run.id, checked=OF_RUN)


def error_text(error: Mapping[str, Any]) -> str:
    """The kind of an error and the beginning of what it says. Pure."""
    kind, said = str(error.get("type") or ""), str(error.get("message") or "").strip()
    told = f"{kind}: {said}" if kind and said else kind or said
    return told.splitlines()[0][:ERROR_MAX].rstrip(".") if told else ""


async def _look(desk: Desk, tenant: TenantId, run: RunId) -> tuple[datetime, RunView]:
    async def work(connection: Connection) -> tuple[datetime, RunView]:
        view = await get_run(desk.inside(connection, desk.hints), tenant, run)
        return await desk.now(connection), view

    return await desk.transact(work, tenant=tenant)


async def _blocker(desk: Desk, tenant: TenantId, run: RunId) -> RunId | None:
    async def work(connection: Connection) -> RunId | None:
        return await rows.read_blocker(connection, run)

    return await desk.transact(work, tenant=tenant)
