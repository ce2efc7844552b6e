"""The load ahead: as it is, and as it would be."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.definitions import Context, read_schedule
from betimes.api.finding import job_of
from betimes.api.rights import require
from betimes.api.route import Load, NoQuery, Policy, Route
from betimes.api.shaping import maybe_instant, read_span
from betimes.domain.ids import JobId, to_text
from betimes.domain.scopes import Scope
from betimes.ops import forecast as ops
from betimes.ops.evaluating import Evaluations
from betimes.wire import forecast as wire
from betimes.wire.base import shown_duration, shown_instant

NOBODY = JobId(ops.STRANGER)


async def ahead(call: Call[wire.ForecastQuery, None]) -> Reply:
    """Fires per step, what they need, hot steps, advice."""
    query = call.query
    every = query.group_by == "tenant"
    if every:
        require(call, Scope.CLUSTER_READ, "grouping by tenant")
    asked = _asked(call, query, by=query.group_by)
    found = await ops.forecast(call.service.desk, None if every else call.tenant, asked)
    return Reply(value=_shown(found))


async def what_if(call: Call[NoQuery, wire.WhatIf]) -> Reply:
    """The load as it would be with other jobs."""
    body, desk = call.body, call.service.desk
    asked = _asked(call, body, by=body.group_by)
    context = Context(timezone=call.caller.timezone, now=call.service.now(), by=call.caller.key)
    evaluations = Evaluations()

    async def read(schedule: Any, pointer: str) -> dict[str, Any]:
        return await evaluations.run(
            lambda budget: read_schedule(
                schedule, replace(context, budget=budget), pointer=pointer
            ).to_dict()
        )

    changes = ops.Changes(
        add=[
            ops.Added(
                label=_label(body.group_by, one.queue, one.handler),
                schedule=await read(one.schedule, f"/add/{place}/schedule"),
                jobs=one.count,
            )
            for place, one in enumerate(body.add)
        ],
        remove=[await job_of(call, text) for text in body.remove],
        change=[
            (
                await job_of(call, one.job),
                await read(one.schedule, f"/change/{place}/schedule"),
            )
            for place, one in enumerate(body.change)
        ],
        slots=body.slots,
    )
    before, after = await ops.what_if(desk, call.tenant, asked, changes)
    shown = wire.Compared(
        before=_shown(before),
        after=_shown(after),
        diff=wire.Difference(
            fires=round(_fires(after) - _fires(before), 3),
            peak_before=_peak(before),
            peak_after=_peak(after),
        ),
    )
    return Reply(value=shown)


def _label(by: str, queue: str, handler: str | None) -> str:
    return {"queue": queue, "handler": handler or ""}.get(by, "")


def _asked(call: Call[Any, Any], query: Any, *, by: ops.By) -> ops.Asked:
    start: datetime = maybe_instant(query.from_, pointer="/from") or call.service.now()
    end = maybe_instant(query.to, pointer="/to") or start + ops.SPAN_DEFAULT
    return ops.Asked(start=start, end=end, step=read_span(query.step, pointer="/step"), by=by)


def _shown(found: ops.Forecast) -> wire.Forecast:
    asked = found.asked
    return wire.Forecast(
        from_=shown_instant(asked.start),
        to=shown_instant(asked.end),
        step=shown_duration(asked.step),
        group_by=asked.by,
        exact=found.exact,
        sampled=found.sampled,
        fires=_fires(found),
        buckets=_buckets(found),
        hot_spots=[
            wire.HotSpot(
                at=shown_instant(spot.at),
                fires=round(spot.fires, 3),
                top_jobs=[
                    wire.TopJobs(
                        job_id=_job(top.example),
                        jobs=round(top.jobs, 3),
                        fires=round(top.fires, 3),
                        schedule=dict(top.schedule),
                    )
                    for top in spot.top
                ],
            )
            for spot in found.hot
        ],
        advice=[
            wire.Advice(
                job_id=_job(one.job),
                jobs=round(one.jobs, 3),
                suggestion=f"add jitter {shown_duration(one.jitter)}",
                jitter=shown_duration(one.jitter),
                at=shown_instant(one.at),
                fires_before=round(one.before, 3),
                fires_after=round(one.after, 3),
            )
            for one in found.advice
        ],
    )


def _buckets(found: ops.Forecast) -> list[wire.Bucket]:
    asked = found.asked
    return [
        _bucket(group, shown_instant(asked.start + place * asked.step), fires, asked)
        for group in found.groups
        for place, fires in enumerate(group.fires)
        if fires
    ]


def _bucket(group: ops.Group, at: str, fires: float, asked: ops.Asked) -> wire.Bucket:
    seconds = None if group.run_seconds is None else fires * group.run_seconds
    needed = None if seconds is None else seconds / asked.step.total_seconds()
    return wire.Bucket(
        at=at,
        group=group.label,
        fires=round(fires, 3),
        expected_run_seconds=None if seconds is None else round(seconds, 3),
        expected_slots=None if needed is None else round(needed, 3),
        capacity_slots=group.slots,
        utilisation=None if needed is None or not group.slots else round(needed / group.slots, 4),
    )


def _job(job: JobId) -> str | None:
    return None if job == NOBODY else to_text("job", job)


def _fires(found: ops.Forecast) -> float:
    return round(sum(sum(group.fires) for group in found.groups), 3)


def _peak(found: ops.Forecast) -> float:
    steps = zip(*(group.fires for group in found.groups), strict=True)
    return round(max((sum(step) for step in steps), default=0.0), 3)


ROUTES = (
    Route(
        method="GET",
        path="/v1/forecast",
        name="forecast.read",
        says="The load ahead: fires per step, what they need, hot steps, advice.",
        handler=ahead,
        scope=Scope.JOBS_READ,
        query=wire.ForecastQuery,
        load=Load.AGGREGATE,
        answers={200: wire.Forecast},
        policy=Policy.BULK,
    ),
    Route(
        method="POST",
        path="/v1/forecast/what-if",
        name="forecast.what_if",
        says="The load as it would be with jobs added, taken away or changed; nothing is written.",
        handler=what_if,
        scope=Scope.JOBS_READ,
        body=wire.WhatIf,
        load=Load.AGGREGATE,
        answers={200: wire.Compared},
        policy=Policy.BULK,
        problems=("invalid_schedule",),
    ),
)
