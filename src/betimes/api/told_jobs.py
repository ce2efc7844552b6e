"""What is told about jobs that were written, or recognised by their dedupe keys."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from betimes.api.acting import answer
from betimes.api.ahead import show_next_fires
from betimes.api.call import Call
from betimes.api.definitions import shown_job
from betimes.api.etag import tag_of
from betimes.domain.job import Job
from betimes.ops.acting import Told
from betimes.ops.dedupe import MadeJob
from betimes.wire import jobs as wire
from betimes.wire.base import shown_instant

NEXT_FIRES = 3
CREATED = 201


def told_of(
    call: Call[Any, Any],
    job: Job,
    *,
    status: int,
    event: str | None,
    before: int | None = None,
    will_fire: Sequence[datetime] | None = None,
) -> Told:
    """The answer and the traces of a job that was written."""
    shown = shown_job(job)
    cache, now = call.service.desk.schedules, call.service.now()
    show_next_fires(cache, job, shown, now=now, most=NEXT_FIRES)
    if will_fire is not None:
        soon = shown.next_fires or []
        shown.will_fire = [*(shown_instant(fire) for fire in will_fire), *soon]
    shown.validated = bool(getattr(call.query, "validate_only", False))
    if uses_aliases(call.body):
        shown.job_id = shown.id
    headers = {"ETag": tag_of(job.revision)}
    if status == CREATED:
        headers["Location"] = f"/v1/jobs/{shown.id}"
    return Told(
        answer=answer(status, shown, headers=headers),
        resource=shown.id,
        shard=job.shard,
        before=None if before is None else {"revision": before},
        after={"revision": job.revision, "state": job.state.name.lower()},
        event=event,
        details={"job_id": shown.id, "name": job.name, "state": job.state.name.lower()},
    )


def told_made(call: Call[Any, Any], made: MadeJob) -> Told:
    """The answer and the traces of a creation; with a dedupe key that is taken, of none."""
    if not made.deduplicated:
        return told_of(call, made.job, status=CREATED, event="job.created")
    shown = shown_job(made.job)
    cache, now = call.service.desk.schedules, call.service.now()
    show_next_fires(cache, made.job, shown, now=now, most=NEXT_FIRES)
    shown.deduplicated = True
    return Told(
        answer=answer(200, shown, headers={"ETag": tag_of(made.job.revision)}),
        resource=shown.id,
        shard=made.job.shard,
        changed=False,
    )


def uses_aliases(body: Any) -> bool:
    """Whether a body was written with the short camel-case names."""
    return isinstance(body, wire.NewJob) and bool(
        body.run_at or body.cron or body.payload_reference or body.idempotency_key
    )
