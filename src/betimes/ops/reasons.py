"""From facts to reasons: everything that stands in the way of a waiting run. Pure.

Ordered by what must be fixed first: what would keep it from running even with all the room in the
world, then what only makes it wait.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.ids import time_of, to_text
from betimes.domain.job import SCHEDULE_UNREADABLE, Job
from betimes.domain.parcel import Lane
from betimes.domain.run import Run
from betimes.domain.states import JobState, RunState
from betimes.store.explain import Crowd, HeldFor, Place, Places, Standing, Surroundings
from betimes.store.queues import Queue
from betimes.store.tenants import TenantState

LAGS_AFTER = timedelta(seconds=5)
"""A coordinator publishes ahead of time; one that is this late is behind."""
OF_JOB = {
    JobState.PAUSED: "JOB_PAUSED",
    JobState.AUTO_PAUSED: "JOB_AUTO_PAUSED",
    JobState.CANCELLED: "JOB_CANCELLED",
    JobState.COMPLETED: "AFTER_END",
}


PUT_OFF = {
    "BREAKER_OPEN": "CIRCUIT_OPEN",
    "ORIGIN_BUSY": "ORIGIN_BUSY",
    "ORIGIN_RATE": "ORIGIN_RATE",
    "RETRY_BUDGET": "RETRY_BUDGET",
    "SNOOZED": "SNOOZED",
}
"""Why a run was put off without counting as an attempt, and how that is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing that stands in the way, or explains what happened."""

    code: str
    blocking: bool
    since: datetime | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """A limit on what is in flight, with what is."""

    kind: str
    name: str
    limit: int
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A rate that is used up, and when there is room again."""

    kind: str
    name: str
    limit: float
    per: timedelta
    free_at: datetime

    def turn_after(self, ahead: int) -> datetime:
        """When one may start that has so many before it."""
        return self.free_at + ahead * self.per / self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenery:
    """What stands around every run of a queue and a handler."""

    now: datetime
    above: Surroundings
    places: Places
    queue: Queue | None = None
    queue_name: str
    handler: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is stored about a waiting run and everything around it."""

    run: Run
    now: datetime
    above: Surroundings
    places: Places
    queue: Queue | None = None
    place: Place | None = None
    gate: Crowd | None = None
    line: Crowd | None = None
    standing: Standing | None = None
    ceilings: Sequence[Ceiling] = ()
    spent: Sequence[Spent] = ()
    rated: int | None = None
    """How many wait for the same rate by key, and come first."""
    took: timedelta | None = None
    """How long the last runs of its job took, where it stands in the job's line."""
    ended_lately: int = 0
    ended_since: datetime | None = None

    @property
    def scenery(self) -> Scenery:
        """What does not depend on the run itself."""
        return Scenery(
            now=self.now,
            above=self.above,
            places=self.places,
            queue=self.queue,
            queue_name=self.run.queue,
            handler=self.run.handler,
        )


def of_surroundings(scenery: Scenery) -> list[Reason]:
    """What keeps every run there from starting, however much room there is."""
    return [*_of_states(scenery), *_of_workers(scenery)]


def why_it_waits(facts: Facts) -> list[Reason]:
    """Every reason, the most stubborn first."""
    found = [*of_surroundings(facts.scenery), *_of_rules(facts), *_of_time(facts)]
    if not found:
        found = [*_of_coordinators(facts), *_of_turns(facts)]
    since = _waits_since(facts)
    told = [reason if reason.since else replace(reason, since=since) for reason in found]
    return sorted(told, key=lambda reason: not reason.blocking)


def _waits_since(facts: Facts) -> datetime | None:
    """Since when it has been ready to go; before that, since when it is known."""
    run, now = facts.run, facts.now
    visible_at = run.due_at if facts.place is None else facts.place.visible_at
    if visible_at <= now:
        return visible_at
    # What was put off or is paced has been due all the same.
    return run.started_at or run.created_at or (run.due_at if run.due_at <= now else None)


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many go first (`least`: so many at least), and when its turn may come."""

    ahead: int | None
    expected_at: datetime | None
    least: bool = False


def estimate(facts: Facts, reasons: Sequence[Reason]) -> Estimate:
    """Whose turn comes when; what somebody has to mend first comes nobody knows when."""
    ahead, least = _ahead(facts)
    if ahead is None or any(reason.blocking for reason in reasons):
        return Estimate(ahead, None, least)
    visible_at = facts.run.due_at if facts.place is None else facts.place.visible_at
    turns = list(_turns(facts, ahead))
    if visible_at > facts.now:
        turns.append(visible_at)
    return Estimate(ahead, max(turns, default=None), least)


def _ahead(facts: Facts) -> tuple[int | None, bool]:
    """How many go first, and whether there may be more."""
    place, standing = facts.place, facts.standing
    crowd = _crowd(facts)
    if place is not None and place.held in (HeldFor.FULL, HeldFor.OVERLAP) and crowd is not None:
        return crowd.ahead, False
    if standing is None:
        return None, False
    if facts.rated is not None and facts.rated > standing.ahead:
        return facts.rated, False
    return standing.ahead, standing.more


def _crowd(facts: Facts) -> Crowd | None:
    """The gate or the line it stands at: the gate if that is full."""
    if facts.gate is not None and (_is_full(facts.gate) or facts.line is None):
        return facts.gate
    return facts.line


def _turns(facts: Facts, ahead: int) -> Iterator[datetime]:
    """When its turn comes, by everything that is known to set the pace."""
    if facts.spent:
        yield from (spent.turn_after(ahead) for spent in facts.spent)
    elif facts.took is not None and facts.line is not None and facts.line.holders:
        # Runs in a line begin when they are due or when the one before has ended.
        began_at = time_of(facts.line.holders[0])
        yield max(facts.now, began_at + facts.took) + ahead * facts.took
    elif facts.ended_since is not None and facts.ended_lately:
        span = max((facts.now - facts.ended_since).total_seconds(), 0.001)
        wait = (ahead + 1) * span / facts.ended_lately
        yield max(facts.now, facts.run.due_at) + timedelta(seconds=min(wait, 10**8))


def _of_states(scenery: Scenery) -> Iterator[Reason]:
    above, queue = scenery.above, scenery.queue
    if above.cluster_paused_at is not None:
        yield Reason(code="CLUSTER_PAUSED", blocking=True, since=above.cluster_paused_at)
    if above.tenant_state == TenantState.SUSPENDED:
        told = {"reason": above.tenant_reason}
        yield Reason(code="TENANT_SUSPENDED", blocking=True, evidence=told)
    if queue is not None and queue.is_paused(scenery.now):
        told = {"queue": queue.name, "reason": queue.paused_reason}
        yield Reason(code="QUEUE_PAUSED", blocking=True, since=queue.paused_at, evidence=told)


def of_job_state(job: Job) -> list[Reason]:
    """A job that is not active makes no fires."""
    code = OF_JOB.get(job.state)
    if code is None:
        return []
    if job.state_reason.get("code") == SCHEDULE_UNREADABLE:
        code = SCHEDULE_UNREADABLE
    told: dict[str, Any] = {
        "job": to_text("job", job.id),
        "reason": job.state_reason.get("reason") or job.state_reason.get("detail"),
        "by": job.state_reason.get("by"),
    }
    if "failures" in job.state_reason:
        told["failures"] = job.state_reason["failures"]
    if "detail" in job.state_reason:
        told["detail"] = job.state_reason["detail"]
    return [Reason(code=code, blocking=True, since=job.updated_at, evidence=told)]


def _of_workers(scenery: Scenery) -> Iterator[Reason]:
    places, told = scenery.places, {"queue": scenery.queue_name, "handler": scenery.handler}
    if not places.serving:
        code = "WORKERS_DRAINING" if places.draining else "NO_WORKER_FOR_QUEUE"
        yield Reason(code=code, blocking=True, evidence=told)
    elif not places.able:
        yield Reason(code="NO_WORKER_FOR_HANDLER", blocking=True, evidence=told)


def _of_rules(facts: Facts) -> Iterator[Reason]:
    place = facts.place
    if place is not None and place.held not in (HeldFor.NOTHING, HeldFor.RATE):
        yield _of_held(facts, place)
    for ceiling in facts.ceilings:
        if ceiling.in_flight >= ceiling.limit:
            told = {
                "kind": ceiling.kind,
                "name": ceiling.name,
                "whose": f"{ceiling.kind} {ceiling.name}".strip(),
                "limit": ceiling.limit,
                "in_flight": ceiling.in_flight,
            }
            yield Reason(code="QUOTA_EXCEEDED", blocking=False, evidence=told)
    for spent in facts.spent:
        told = {
            "kind": spent.kind,
            "name": spent.name,
            "whose": f"{spent.kind} {spent.name}".strip(),
            "limit": spent.limit,
            "per_seconds": spent.per.total_seconds(),
            "free_at": spent.free_at.isoformat(),
        }
        waits = place is not None and place.held is HeldFor.RATE and spent.kind == "key"
        since = place.held_at if place is not None and waits else None
        yield Reason(code="RATE_LIMITED", blocking=False, since=since, evidence=told)


def _of_held(facts: Facts, place: Place) -> Reason:
    since = place.held_at
    if place.held is HeldFor.APPROVAL:
        episode = None if place.episode is None else {"episode": to_text("ctu", place.episode)}
        return Reason(
            code="CATCHUP_AWAITS_APPROVAL", blocking=True, since=since, evidence=episode or {}
        )
    crowd, code, told = facts.line, "OVERLAP_BUFFERED", _whose(facts.run)
    if facts.gate is not None and _is_full(facts.gate):
        crowd, code = facts.gate, "CONCURRENCY_KEY_FULL"
        told |= {"key": place.gate, "limit": crowd.limit, "in_flight": crowd.in_flight}
    if place.held is HeldFor.OVERLAP:
        told["decided_at"] = place.visible_at.isoformat()
    told["holders"] = [to_text("run", run) for run in crowd.holders] if crowd else []
    if crowd is not None:
        told["ahead"] = crowd.ahead
    return Reason(code=code, blocking=False, since=since, evidence=told)


def _whose(run: Run) -> dict[str, Any]:
    return {} if run.job is None else {"job": to_text("job", run.job)}


def _is_full(crowd: Crowd) -> bool:
    return crowd.limit is not None and crowd.in_flight >= crowd.limit


def _of_time(facts: Facts) -> Iterator[Reason]:
    run, place, now = facts.run, facts.place, facts.now
    visible_at = run.due_at if place is None else place.visible_at
    if visible_at <= now:
        return
    told: dict[str, Any] = {"due_at": visible_at.isoformat()}
    if run.state is RunState.RETRY_WAIT:
        told["attempt"] = run.attempt
        code = PUT_OFF.get(run.reason or "", "RETRY_BACKOFF")
        yield Reason(code=code, blocking=False, evidence=told)
    elif place is not None and place.lane is Lane.CATCH_UP:
        yield Reason(code="CATCHUP_PACED", blocking=False, evidence=told)
    elif run.fire_at is not None and run.fire_at <= now < run.due_at:
        told["fire_time"] = run.fire_at.isoformat()
        yield Reason(code="JITTER_DELAY", blocking=False, evidence=told)
    else:
        yield Reason(code="NOT_DUE", blocking=False, evidence=told)


def _of_coordinators(facts: Facts) -> Iterator[Reason]:
    """A run that is due and in no parcel waits for the owner of its shard."""
    above = facts.above
    if facts.place is not None:
        return
    if above.owner is None or (above.lease_until is not None and above.lease_until < facts.now):
        yield Reason(code="SHARD_UNOWNED", blocking=True, since=above.lease_until)
    elif above.published_through is None or above.published_through + LAGS_AFTER < facts.now:
        through = above.published_through
        told = {"published_through": None if through is None else through.isoformat()}
        yield Reason(code="SCHEDULER_LAGGING", blocking=False, since=through, evidence=told)


def _of_turns(facts: Facts) -> Iterator[Reason]:
    """Nothing stands in the way but others."""
    standing, places = facts.standing, facts.places
    if standing is not None and standing.higher:
        yield Reason(code="LOWER_PRIORITY", blocking=False, evidence={"ahead": standing.higher})
    if standing is not None and standing.others:
        yield Reason(code="FAIR_SHARE_WAIT", blocking=False)
    told = {"workers": places.able, "slots": places.slots, "busy": places.busy}
    if standing is not None:
        told["ahead"] = standing.ahead
    if places.busy >= places.slots:
        yield Reason(code="WORKERS_BUSY", blocking=False, evidence=told)
    else:
        told["free"] = places.slots - places.busy
        yield Reason(code="OFFERED", blocking=False, evidence=told)
