"""Load ahead: fires per step, what they need, hot minutes, and what spreading would change.

Counted with the planner's own fire iterator, once per specification, in a thread that gives way to
the event loop. Of very many jobs only some pages of the table are read, of very many specifications
only some are counted, and the answer says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from statistics import median
from typing import Any

from betimes.domain.errors import Invalid
from betimes.domain.ids import JobId, ShardId, TenantId, floor_of, to_ms, to_us
from betimes.domain.spec import to_ms as span_ms
from betimes.ops.desk import Desk
from betimes.ops.evaluating import beside_many
from betimes.ops.forecast_sample import (
    EXACT_MAX,
    FIRES_BUDGET,
    FIRES_PER_SPEC_MIN,
    sample_percent,
    thinned,
)
from betimes.ops.read import get_job
from betimes.schedule import ScheduleCache
from betimes.schedule.load import Alike, Steps, tally
from betimes.store.forecast import (
    By,
    SharedSpec,
    measure,
    read_capacity,
    read_durations,
    read_specs,
)
from betimes.store.jobs import from_json, to_json
from betimes.store.pool import Connection
from betimes.wire.base import shown_duration, shown_instant

__all__ = ["Added", "Advice", "Asked", "By", "Changes", "Forecast", "Group", "forecast", "what_if"]

SPAN_DEFAULT, SPAN_MAX = timedelta(hours=24), timedelta(days=31)
STEP_MIN = timedelta(seconds=1)
STEPS_MAX = 10_080
"""A week of minutes."""
HOT_SPOTS = 5
TOP_SPECS = 5
HOT_TIMES = 2.0
"""A step is hot when it has so many times the fires of the middle one, and more than a few."""
HOT_FIRES_MIN = 10.0
SPREAD_OVER = timedelta(minutes=10)
LATELY = timedelta(days=2)
ENDED_PER_SHARD = 200
MICROSECOND = timedelta(microseconds=1)
STRANGER = JobId(floor_of(0))
"""Stands for jobs that do not exist yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which span, in which steps, grouped by what."""

    start: datetime
    end: datetime
    step: timedelta
    by: By = "all"

    def __post_init__(self) -> None:
        if self.step < STEP_MIN:
            raise Invalid(
                f"expected steps of at least a second, got {shown_duration(self.step)}",
                pointer="/step",
            )
        span = self.end - self.start
        if span <= timedelta(0):
            raise Invalid(
                f"expected an end after {shown_instant(self.start)}, got {shown_instant(self.end)}",
                pointer="/to",
            )
        if span > SPAN_MAX:
            raise Invalid(
                f"expected a span of at most {SPAN_MAX.days} days, got {shown_duration(span)}",
                pointer="/to",
            )
        if self.steps.count > STEPS_MAX:
            raise Invalid(
                f"expected at most {STEPS_MAX} steps, got {self.steps.count}", pointer="/step"
            )

    @property
    def steps(self) -> Steps:
        """The same for the arithmetic; the last step may reach beyond the end."""
        step = self.step // MICROSECOND
        span = (self.end - self.start) // MICROSECOND
        return Steps(to_us(self.start), step, -(-span // step))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One queue, handler or tenant: fires per step, seconds that a run takes, places for them."""

    label: str
    fires: Sequence[float]
    run_seconds: float | None
    slots: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """Jobs alike that fire in a hot step."""

    jobs: float
    fires: float
    example: JobId
    schedule: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HotSpot:
    """A step that is far above the others, and who makes it so."""

    at: datetime
    fires: float
    top: Sequence[Top]


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What would flatten a hot step, and by how much."""

    job: JobId
    jobs: float
    jitter: timedelta
    at: datetime
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What lies ahead.

    `exact` says that every fire was counted; `sampled` is the part of the table of jobs that was
    read, None when it was all of it.
    """

    asked: Asked
    groups: Sequence[Group]
    hot: Sequence[HotSpot]
    advice: Sequence[Advice]
    exact: bool
    sampled: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Jobs that might be created."""

    label: str
    schedule: Mapping[str, Any]
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What if: jobs added, taken away, or given another schedule."""

    add: Sequence[Added] = ()
    remove: Sequence[JobId] = ()
    change: Sequence[tuple[JobId, Mapping[str, Any]]] = ()
    slots: int | None = None


@dataclass(slots=True)
class _Facts:
    specs: list[SharedSpec]
    durations: dict[str, float]
    capacity: list[tuple[frozenset[str], int]]
    sampled: float | None


@dataclass(slots=True)
class _Sums:
    groups: dict[str, list[float]] = field(default_factory=dict)
    total: list[float] = field(default_factory=list)
    exact: bool = True


async def forecast(desk: Desk, tenant: TenantId | None, asked: Asked) -> Forecast:
    """The load ahead of a tenant, or of all of them."""
    facts = await _gather(desk, tenant, asked)
    return await beside_many(partial(_compute, facts, asked, None))


async def what_if(
    desk: Desk, tenant: TenantId, asked: Asked, changes: Changes
) -> tuple[Forecast, Forecast]:
    """The load ahead as it is, and as it would be."""
    facts = await _gather(desk, tenant, asked)
    specs = await _changed(desk, tenant, facts.specs, changes, asked.by)
    before = await beside_many(partial(_compute, facts, asked, None))
    after = replace(facts, specs=specs)
    return before, await beside_many(partial(_compute, after, asked, changes.slots))


async def _gather(desk: Desk, tenant: TenantId | None, asked: Asked) -> _Facts:
    async def work(connection: Connection) -> _Facts:
        now = await desk.now(connection)
        own, every = await measure(connection, tenant, bound=EXACT_MAX + 1)
        percent = sample_percent(None if tenant is None else own, every)
        specs = await read_specs(connection, tenant, by=asked.by, until=asked.end, percent=percent)
        durations = await read_durations(
            connection,
            tenant,
            by=asked.by,
            shards=[ShardId(shard) for shard in range(desk.shards)],
            low=floor_of(to_ms(now - LATELY)),
            high=floor_of(to_ms(now)),
            most=ENDED_PER_SHARD,
        )
        specs, part = thinned(specs)
        read = 1.0 if percent is None else percent / 100
        whole = percent is None and part == 1.0
        return _Facts(specs, durations, [], None if whole else read * part)

    async def room(connection: Connection) -> list[tuple[frozenset[str], int]]:
        now = await desk.now(connection)
        return await read_capacity(connection, tenant, since=now - desk.seen_within)

    facts = await desk.transact(work, tenant=tenant)
    # Workers of the service itself belong to no tenant: only the service sees them.
    facts.capacity = await desk.transact(room, tenant=None)
    return facts


async def _changed(
    desk: Desk, tenant: TenantId, specs: list[SharedSpec], changes: Changes, by: By
) -> list[SharedSpec]:
    found = list(specs)
    for job in [*changes.remove, *(job for job, _ in changes.change)]:
        stored = await get_job(desk, tenant, job)
        label = _label(by, stored.definition.queue, stored.definition.handler)
        found = without(found, label, stored.definition.schedule, job)
        for other, schedule in changes.change:
            if other == job:
                found.append(_shared(label, schedule, job))
    found += [_shared(one.label, one.schedule, STRANGER, one.jobs) for one in changes.add]
    return found


def _label(by: By, queue: str, handler: str | None) -> str:
    return {"queue": queue, "handler": handler or ""}.get(by, "")


def _shared(label: str, schedule: Mapping[str, Any], job: JobId, jobs: float = 1.0) -> SharedSpec:
    return SharedSpec(label=label, schedule=to_json(schedule), jobs=jobs, ids=[job])


def without(
    specs: Sequence[SharedSpec], label: str, schedule: Mapping[str, Any], job: JobId
) -> list[SharedSpec]:
    """The same jobs less one. Pure."""
    left: list[SharedSpec] = []
    found = False
    for spec in specs:
        # Stored members come in another order, so texts cannot be compared.
        if not found and spec.label == label and from_json(spec.schedule) == schedule:
            found = True
            ids = [one for one in spec.ids if one != job] or list(spec.ids)
            spec = replace(spec, jobs=spec.jobs - 1, ids=ids)  # noqa: PLW2901 -- one job fewer
        if spec.jobs > 0:
            left.append(spec)
    return left


def _compute(facts: _Facts, asked: Asked, slots: int | None) -> Forecast:
    """The arithmetic; it takes up to seconds, so it has a thread of its own. Pure."""
    steps, schedules = asked.steps, ScheduleCache()
    sums = _sum(facts.specs, steps, schedules)
    hot = _hot_spots(facts.specs, asked, sums.total, schedules)
    return Forecast(
        asked=asked,
        groups=[
            Group(
                label=label,
                fires=fires,
                run_seconds=facts.durations.get(label),
                slots=slots if slots is not None else _slots(facts.capacity, asked.by, label),
            )
            for label, fires in sorted(sums.groups.items())
        ],
        hot=hot,
        advice=_advice(hot, asked.step),
        exact=sums.exact and facts.sampled is None,
        sampled=facts.sampled,
    )


def _sum(specs: Sequence[SharedSpec], steps: Steps, schedules: ScheduleCache) -> _Sums:
    sums = _Sums(total=[0.0] * steps.count)
    fires_max = max(FIRES_PER_SPEC_MIN, FIRES_BUDGET // max(1, len(specs)))
    for spec in specs:
        told = tally(_alike(spec), steps, schedules, fires_max=fires_max)
        sums.exact = sums.exact and told.exact
        group = sums.groups.get(spec.label)
        if group is None:
            sums.groups[spec.label] = told.fires
        else:
            sums.groups[spec.label] = [a + b for a, b in zip(group, told.fires, strict=True)]
    for fires in sums.groups.values():
        sums.total = [a + b for a, b in zip(sums.total, fires, strict=True)]
    return sums


def _alike(spec: SharedSpec) -> Alike:
    return Alike(spec.schedule, spec.jobs, [str(job) for job in spec.ids])


def _slots(capacity: Sequence[tuple[frozenset[str], int]], by: By, label: str) -> int | None:
    """Places that serve a group; only queues tell workers apart."""
    if by == "tenant":
        return None
    return sum(
        slots for queues, slots in capacity if by != "queue" or "*" in queues or label in queues
    )


def _hot_spots(
    specs: Sequence[SharedSpec], asked: Asked, total: Sequence[float], schedules: ScheduleCache
) -> list[HotSpot]:
    least = max(HOT_FIRES_MIN, HOT_TIMES * median(total))
    hottest = sorted(range(len(total)), key=lambda place: -total[place])[:HOT_SPOTS]
    return [
        HotSpot(
            at=asked.start + place * asked.step,
            fires=total[place],
            top=_top(specs, asked.steps.one(place), schedules),
        )
        for place in hottest
        if total[place] > least
    ]


def _top(specs: Sequence[SharedSpec], step: Steps, schedules: ScheduleCache) -> list[Top]:
    found = []
    for spec in specs:
        (fires,) = tally(_alike(spec), step, schedules, fires_max=FIRES_PER_SPEC_MIN).fires
        if fires:
            found.append(
                Top(
                    jobs=spec.jobs,
                    fires=fires,
                    example=spec.ids[0],
                    schedule=from_json(spec.schedule),
                )
            )
    found.sort(key=lambda top: -top.fires)
    return found[:TOP_SPECS]


def _advice(hot: Sequence[HotSpot], step: timedelta) -> list[Advice]:
    """Spread what makes a step hot, where nothing spreads it yet."""
    found: dict[str, Advice] = {}
    parts = max(1, span_ms(SPREAD_OVER) // max(1, span_ms(step)))
    for spot in hot:
        for top in spot.top:
            spread = top.schedule.keys() & {"jitter", "window"}
            named = to_json(top.schedule)
            if spread or named in found or top.fires < HOT_FIRES_MIN or parts == 1:
                continue
            found[named] = Advice(
                job=top.example,
                jobs=top.jobs,
                jitter=SPREAD_OVER,
                at=spot.at,
                before=spot.fires,
                after=spot.fires - top.fires + top.fires / parts,
            )
    return list(found.values())
