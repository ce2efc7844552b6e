"""Jobs: pausing, resuming, cancelling, running by hand."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from betimes.api.acting import answer, perform
from betimes.api.admitting import admitted_demand, check_open
from betimes.api.call import Call, Reply
from betimes.api.context import accepted_of
from betimes.api.etag import expected_revision
from betimes.api.finding import find_job
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.shaping import maybe_instant
from betimes.api.told_jobs import told_of
from betimes.api.waiting import prefer_wait
from betimes.domain.ids import RunId, shard_of, to_text
from betimes.domain.job import Job
from betimes.domain.scopes import Scope
from betimes.domain.states import Shown
from betimes.ops.acting import Told
from betimes.ops.desk import Desk
from betimes.ops.end import cancel_job
from betimes.ops.gap import Missed
from betimes.ops.grip import Running
from betimes.ops.manual import Overlap, Wish, run_now, skip_next
from betimes.ops.meter import Demand
from betimes.ops.pause import Resumed, pause_job, resume_job
from betimes.ops.schemas import check_own
from betimes.wire import jobs as wire
from betimes.wire.base import shown_instant
from betimes.wire.runs import Run, RunMade

QUEUED, SCHEDULED = Shown.QUEUED.value, Shown.SCHEDULED.value


async def pause(call: Call[NoQuery, wire.PauseJob]) -> Reply:
    """No fire later than now runs until the job is resumed."""
    job = await find_job(call)
    revision = expected_revision(call.request, job.revision)
    until = maybe_instant(call.body.until, pointer="/until")

    async def verb(desk: Desk) -> Job:
        return await pause_job(
            desk,
            call.tenant,
            job.id,
            reason=call.body.reason,
            until=until,
            running=Running(call.body.running),
            actor=call.caller.key,
            expected_revision=revision,
        )

    return await perform(
        call, verb, lambda done: told_of(call, done, status=200, event="job.paused")
    )


async def resume(call: Call[NoQuery, wire.ResumeJob]) -> Reply:
    """Go on with the fires after now."""
    job = await find_job(call)
    revision = expected_revision(call.request, job.revision)

    async def verb(desk: Desk) -> Resumed:
        return await resume_job(
            desk,
            call.tenant,
            job.id,
            missed=Missed(call.body.missed),
            expected_revision=revision,
        )

    return await perform(
        call,
        verb,
        lambda done: told_of(
            call, done.job, status=200, event="job.resumed", will_fire=done.caught_up
        ),
    )


async def cancel(call: Call[NoQuery, wire.CancelJob]) -> Reply:
    """End a job for good."""
    job = await find_job(call)
    revision = expected_revision(call.request, job.revision)

    async def verb(desk: Desk) -> Job:
        return await cancel_job(
            desk,
            call.tenant,
            job.id,
            reason=call.body.reason,
            running=Running(call.body.running),
            actor=call.caller.key,
            expected_revision=revision,
        )

    return await perform(
        call, verb, lambda done: told_of(call, done, status=200, event="job.cancelled")
    )


async def run(call: Call[NoQuery, wire.RunJob]) -> Reply:
    """A run of its own beside the schedule."""
    job = await find_job(call)
    expected_revision(call.request, job.revision)
    body = call.body
    payload = None
    if body.payload_override is not msgspec.UNSET:
        payload = msgspec.json.encode(body.payload_override)
        (await accepted_of(call)).check(job.definition.handler, payload)
        check_own(job.definition.options.get("payload_schema"), payload)

    wish = Wish(
        payload=payload,
        priority=body.priority,
        at=maybe_instant(body.at, pointer="/at"),
        scheduled_for=maybe_instant(body.scheduled_for, pointer="/scheduled_for"),
        overlap=Overlap(body.overlap),
    )

    if told := await admitted_demand(call, Demand.of(runs=[payload])):
        return told

    await check_open(call, [job.definition.queue], [job.definition.handler])

    async def verb(desk: Desk) -> RunId:
        return await run_now(desk, call.tenant, job.id, wish)

    later = wish.at is not None and wish.at > call.service.now()
    done = await perform(call, verb, lambda made: told_run(made, job=job, later=later))
    return await prefer_wait(call, done)


def told_run(
    run: RunId,
    *,
    job: Job | None = None,
    status: int = 202,
    event: str = "run.queued",
    replaced: RunId | None = None,
    later: bool = False,
) -> Told:
    """The answer and the traces of a run that was made, to be queued now or later."""
    text = to_text("run", run)
    shown = RunMade(
        id=text,
        state=SCHEDULED if later else QUEUED,
        job_id=None if job is None else to_text("job", job.id),
        replaced=None if replaced is None else to_text("run", replaced),
    )
    return Told(
        answer=answer(status, shown, headers={"Location": f"/v1/runs/{text}"}),
        resource=text,
        shard=shard_of(run),
        event=event,
        details={"run_id": text, "job_id": shown.job_id},
    )


async def skip(call: Call[NoQuery, wire.SkipNext]) -> Reply:
    """The next fires will not run."""
    job = await find_job(call)
    expected_revision(call.request, job.revision)
    until = maybe_instant(call.body.until, pointer="/until")

    async def verb(desk: Desk) -> list[datetime]:
        return await skip_next(desk, call.tenant, job.id, count=call.body.count, until=until)

    return await perform(call, verb, lambda times: _skipped(job, times))


def _skipped(job: Job, times: Sequence[datetime]) -> Told:
    told = [shown_instant(time) for time in times]
    return Told(
        answer=answer(200, wire.Skipped(skipped=told)),
        resource=to_text("job", job.id),
        shard=job.shard,
        after={"skipped": told},
        event="job.updated",
        details={"job_id": to_text("job", job.id)},
    )


def _action(verb: str, handler: Any, body: Any, answers: Any, says: str, **more: Any) -> Route:
    given: dict[str, Any] = {
        "scope": Scope.JOBS_WRITE,
        "load": Load.VITAL,
        "keyed": Keyed.OPTIONAL,
        "problems": ("not_found", "invalid_state", "precondition_failed", "invalid_parameter"),
        **more,
    }
    return Route(
        method="POST",
        path=f"/v1/jobs/{{job}}/{verb}",
        name=f"jobs.{verb.replace('-', '_')}",
        says=says,
        handler=handler,
        body=body,
        body_optional=True,
        answers=answers,
        **given,
    )


ROUTES = (
    _action(
        "pause", pause, wire.PauseJob, {200: wire.Job}, "Pause a job; pausing it again is fine."
    ),
    _action("resume", resume, wire.ResumeJob, {200: wire.Job}, "Resume a paused job."),
    _action("cancel", cancel, wire.CancelJob, {200: wire.Job}, "End a job for good."),
    _action(
        "run",
        run,
        wire.RunJob,
        {200: Run, 202: RunMade},
        "Run a job now, beside its schedule.",
        scope=Scope.RUNS_WRITE,
        load=Load.CREATE,
        policy=Policy.CREATE,
        keyed=Keyed.REQUIRED,
        headers=("Location",),
    ),
    _action("skip-next", skip, wire.SkipNext, {200: wire.Skipped}, "Skip the next fires."),
)
