"""Why did this not run? And the metrics of this node."""

from dataclasses import replace
from itertools import accumulate
from typing import Any

from betimes.api.call import Call, Reply
from betimes.api.finding import find_job, run_in_path
from betimes.api.problem import Trouble
from betimes.api.rights import require
from betimes.api.route import Load, NoQuery, Route
from betimes.api.shaping import maybe_instant, missing
from betimes.domain.errors import NotFound
from betimes.domain.ids import to_text
from betimes.domain.scopes import Scope
from betimes.ops import explain as ops
from betimes.ops.codes import fix_of, summary_of
from betimes.telemetry import Reading
from betimes.wire import explain as wire
from betimes.wire.base import Members, shown_instant, shown_maybe

VERDICTS = {
    "ran": "It ran.",
    "running": "It is running.",
    "will_run": "It will run.",
    "waiting": "It waits.",
    "will_not_run": "It will not run.",
    "unknown_purged": "Nothing is known any more.",
}
TEXT = "text/plain; version=0.0.4; charset=utf-8"


def _shown(subject: Members, told: ops.Explanation) -> Reply:
    if told.run is not None:
        subject = {**subject, "run": to_text("run", told.run)}
    reasons = [_reason(reason) for reason in told.reasons]
    sentences = [VERDICTS[told.verdict], *(reason.summary for reason in reasons[:1])]
    if told.next_fire_at is not None:
        sentences.append(f"The next fire is at {shown_instant(told.next_fire_at)}.")
    return Reply(
        value=wire.Explanation(
            subject=subject,
            verdict=told.verdict,
            eligible=told.eligible,
            summary=" ".join(sentences),
            reasons=reasons,
            ahead=told.ahead,
            ahead_at_least=told.ahead_at_least,
            expected_at=shown_maybe(told.expected_at),
            next_fire_at=shown_maybe(told.next_fire_at),
            checked=list(told.checked),
            history=[
                wire.Decision(
                    at=shown_instant(row.fire_at),
                    until=shown_maybe(row.until_at),
                    fires=row.fires,
                    code=row.code,
                    summary=summary_of(row.code, row.detail),
                    evidence=dict(row.detail),
                    decided_at=shown_instant(row.decided_at),
                )
                for row in told.history
            ],
        )
    )


def _reason(reason: ops.Reason) -> wire.Reason:
    text, action = fix_of(reason.code, reason.evidence)
    return wire.Reason(
        code=reason.code,
        summary=summary_of(reason.code, reason.evidence),
        blocking=reason.blocking,
        since=shown_maybe(reason.since),
        evidence=dict(reason.evidence),
        fix=wire.Fix(text=text, action=action or None) if text else None,
    )


async def explain_job(call: Call[wire.ExplainJob, None]) -> Reply:
    """Why a job fires or does not."""
    job = await find_job(call)
    at = maybe_instant(call.query.at, pointer="/at")
    told = await ops.explain_job(call.service.desk, call.tenant, job.id, at=at)
    return _shown({"job": to_text("job", job.id), "fire_time": shown_maybe(at)}, told)


async def explain_run(call: Call[NoQuery, None]) -> Reply:
    """Why a run waits, or what ended it."""
    try:
        told = await ops.explain_run(call.service.desk, call.tenant, run_in_path(call))
    except NotFound:
        raise missing("run", call.path["run"]) from None
    return _shown({"run": call.path["run"]}, told)


async def explain_either(call: Call[wire.ExplainEither, None]) -> Reply:
    """The same, for a job or a run that a parameter names."""
    query = call.query
    if (query.job is None) == (query.run is None) or (query.run and query.at):
        raise Trouble("invalid_parameter", "expected job, with or without at, or run")
    moved: Call[Any, Any] = replace(call, path={"job": query.job or "", "run": query.run or ""})
    if query.run is not None:
        return await explain_run(moved)
    require(call, Scope.JOBS_READ, "to explain a job")
    return await explain_job(moved)


async def metrics(call: Call[NoQuery, None]) -> Reply:
    """The metrics of this node as Prometheus reads them."""
    lines: list[str] = []
    named = ""
    for reading in call.service.telemetry.snapshot():
        metric = reading.metric
        if metric.name != named:
            named = metric.name
            lines += [f"# HELP {named} {metric.says}", f"# TYPE {named} {metric.kind}"]
        lines += _lines(reading)
    return Reply(content=("\n".join(lines) + "\n").encode(), media=TEXT)


def _lines(reading: Reading) -> list[str]:
    name = reading.metric.name
    if not reading.buckets:
        return [f"{name}{_labels(reading)} {reading.value:g}"]
    found = []
    bounds = [*(f"{bound:g}" for bound in reading.metric.bounds), "+Inf"]
    for bound, total in zip(bounds, accumulate(reading.buckets), strict=True):
        found.append(f"{name}_bucket{_labels(reading, le=bound)} {total}")
    found.append(f"{name}_sum{_labels(reading)} {reading.value}")
    return [*found, f"{name}_count{_labels(reading)} {sum(reading.buckets)}"]


def _labels(reading: Reading, **more: str) -> str:
    pairs = [*reading.labels, *more.items()]
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)
    return f"{{{told}}}" if told else ""


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


ROUTES = (
    Route(
        method="GET",
        path="/v1/jobs/{job}/explain",
        name="jobs.explain",
        says="Why a job fires or does not.",
        handler=explain_job,
        scope=Scope.JOBS_READ,
        query=wire.ExplainJob,
        answers={200: wire.Explanation},
    ),
    Route(
        method="GET",
        path="/v1/runs/{run}/explain",
        name="runs.explain",
        says="Why a run waits, or what ended it.",
        handler=explain_run,
        scope=Scope.RUNS_READ,
        answers={200: wire.Explanation},
    ),
    Route(
        method="GET",
        path="/v1/explain",
        name="explain.find",
        says="Why a job fires or does not, or why a run waits.",
        handler=explain_either,
        scope=Scope.RUNS_READ,
        query=wire.ExplainEither,
        answers={200: wire.Explanation},
        problems=("not_found",),
    ),
    Route(
        method="GET",
        path="/metrics",
        name="meta.metrics",
        says="The metrics of this node as Prometheus reads them.",
        handler=metrics,
        scope=Scope.METRICS_READ,
        answers={200: str},
        answer_media="text/plain",
        load=Load.FREE,
    ),
)
