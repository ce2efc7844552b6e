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
from betimes.domain.states import Shown
from betimes.ops.desk import Desk
from betimes.ops.read import get_job
from betimes.ops.reasons import (
    Ceiling,
    Facts,
    Reason,
    Spent,
    estimate,
    of_job_state,
    why_it_waits,
)
from betimes.ops.runs import RunView, get_run
from betimes.ops.timetable import read_timetable
from betimes.schedule import Fire, Schedule
from betimes.store import explain as rows
from betimes.store.control import find_fires
from betimes.store.explain import DecisionRow, Places, UsedRate
from betimes.store.pool import Connection
from betimes.store.queues import Queue, read_queue

__all__ = ["CHECKED", "DecisionRow", "Explanation", "Reason", "explain_job", "explain_run"]

SEEN_WITHIN = timedelta(minutes=2)
HISTORY_MAX = 20
AHEAD_MAX = 1_000
"""Beyond this a position is told as at least so many."""
LATELY = timedelta(hours=1)
ENDED_MAX = 2_000
"""Rows that are looked at for what ended lately."""
MICROSECOND = timedelta(microseconds=1)
CHECKED = (
    "cluster",
    "tenant",
    "job",
    "calendar",
    "dst",
    "catchup",
    "overlap",
    "concurrency",
    "quota",
    "rate",
    "queue",
    "workers",
    "coordinators",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What will become of it, or has, and why."""

    verdict: str
    reasons: Sequence[Reason]
    history: Sequence[DecisionRow] = ()
    run: RunId | None = None
    ahead: int | None = None
    expected_at: datetime | None = None

    @property
    def eligible(self) -> bool:
        """Whether it would run if there were room."""
        return not any(reason.blocking for reason in self.reasons)


async def explain_job(
    desk: Desk, tenant: TenantId, job: JobId, *, at: datetime | None
) -> Explanation:
    """Why a job fires or does not: now, or at one fire time."""

    async def work(connection: Connection) -> tuple[Explanation, RunId | None]:
        inner = desk.inside(connection, desk.hints)
        found = await get_job(inner, tenant, job)
        history = await rows.list_decisions(connection, job, most=HISTORY_MAX)
        states = of_job_state(found)
        if at is None:
            verdict = "will_not_run" if states else "will_run"
            return Explanation(verdict=verdict, reasons=states, history=history), None
        run = await _run_of(connection, found, at)
        if run is not None:
            return Explanation(verdict="ran", reasons=[], history=history), run
        told = await _of_fire(desk, connection, found, at)
        if told.verdict == "will_run" and states:
            told = Explanation(verdict="will_not_run", reasons=[*states, *told.reasons])
        return replace(told, history=history), None

    told, run = await desk.transact(work, tenant=tenant)
    if run is None:
        return told
    return replace(await explain_run(desk, tenant, run), history=told.history, run=run)


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
        return _no(decision.code, about | dict(decision.detail), since=decision.decided_at)
    if at < job.created_at:
        return _no("CREATED_AFTER_FIRE", about)
    timetable = read_timetable(job.definition.schedule, job.id)
    dropped = timetable.dropped(at - MICROSECOND, at)
    if dropped:
        told = {"local": dropped[0].local, "timezone": timetable.timezone}
        return _no(dropped[0].code, about | told)
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
    return "NOT_DUE", {**about, "until": ": the schedule has no fire then"}


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
        facts = await _facts(desk, tenant, view, now)
        ahead, expected_at = estimate(facts)
        reasons = why_it_waits(facts)
        return Explanation(
            verdict="waiting", reasons=reasons, run=run, ahead=ahead, expected_at=expected_at
        )
    if view.state is Shown.RUNNING:
        return Explanation(verdict="running", reasons=_of_lease(view, now), run=run)
    blocker = await _blocker(desk, tenant, run)
    return _ended(view, blocker)


def _of_lease(view: RunView, now: datetime) -> list[Reason]:
    holding = view.holding
    if holding is None or holding.lease_until is None:
        return []
    code = "LEASE_EXPIRED_WAIT" if holding.lease_until < now else "LEASED"
    told = {"lease_until": holding.lease_until.isoformat(), "attempt": view.run.attempt}
    return [Reason(code=code, blocking=False, since=view.run.started_at, evidence=told)]


def _ended(view: RunView, blocker: RunId | None) -> Explanation:
    run = view.run
    ran = view.state in (Shown.SUCCEEDED, Shown.DEAD)
    told: dict[str, Any] = {"run": to_text("run", run.id), "attempt": run.attempt}
    if run.job is not None:
        told["job"] = to_text("job", run.job)
    if blocker is not None:
        told["blocked_by"] = to_text("run", blocker)
    code = run.reason
    reasons = (
        []
        if code is None
        else [Reason(code=code, blocking=not ran, since=run.finished_at, evidence=told)]
    )
    return Explanation(verdict="ran" if ran else "will_not_run", reasons=reasons, run=run.id)


async def _look(desk: Desk, tenant: TenantId, run: RunId) -> tuple[datetime, RunView]:
    async def work(connection: Connection) -> tuple[datetime, RunView]:
        view = await get_run(desk.inside(connection, desk.hints), tenant, run)
        return await desk.now(connection), view

    return await desk.transact(work, tenant=tenant)


async def _blocker(desk: Desk, tenant: TenantId, run: RunId) -> RunId | None:
    async def work(connection: Connection) -> RunId | None:
        return await rows.read_blocker(connection, run)

    return await desk.transact(work, tenant=tenant)


async def _facts(desk: Desk, tenant: TenantId, view: RunView, now: datetime) -> Facts:
    """Everything around a waiting run, in a handful of bounded looks."""
    run = view.run

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
                shard=run.shard,
                queue=run.queue,
                priority=run.priority,
                most=AHEAD_MAX,
            )
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
            places=Places(serving=0, able=0, draining=0, slots=0, busy=0),
            queue=queue,
            place=place,
            gate=gate,
            line=line,
            standing=standing,
            ceilings=ceilings(above.quotas, queue, of_tenant, of_queue),
            spent=spent_of(used, now),
            rated=rated,
            ended_lately=ended,
            ended_since=since,
        )

    async def around(connection: Connection) -> Places:
        return await rows.read_places(
            connection, tenant, run.queue, run.handler, since=now - SEEN_WITHIN
        )

    facts = await desk.transact(own, tenant=tenant)
    # The workers of the service belong to no tenant: only the service sees them.
    return replace(facts, places=await desk.transact(around, tenant=None))


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
