"""Definitions between wire and domain, both ways.

Long because both ways of every member stand side by side.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec

from betimes.api.callbacks import NOBODY, Listeners, callbacks_of
from betimes.api.etag import tag_of
from betimes.api.references import UNSEEN, References
from betimes.api.shaping import maybe_limit, maybe_span, read_retention, read_span
from betimes.api.targets import Rules, shown_target, work_of
from betimes.domain.dedupe import Dedupe, DedupeForm
from betimes.domain.errors import Refused
from betimes.domain.ids import to_text
from betimes.domain.job import AfterCompletion, Definition, Job, Recount
from betimes.domain.retry import Backoff, Jitter, RetryPolicy
from betimes.domain.spec import from_ms, retry_from_json, retry_to_json, to_ms
from betimes.domain.states import JobState
from betimes.ops.calendars import CalendarRow, calendar_names, copy_of
from betimes.ops.create import NewJob
from betimes.ops.evaluating import Evaluations
from betimes.ops.schemas import ANYTHING, Accepted, check_own, check_schema
from betimes.schedule import Budget, Schedule, complete, counts_from_now, line_of, parse
from betimes.wire import jobs as wire
from betimes.wire.base import shown_bytes, shown_duration, shown_instant, shown_maybe

HANDLER_DEFAULT = "default"
PAUSED = (JobState.PAUSED, JobState.AUTO_PAUSED)
TIMETABLES_MAX = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a definition needs from its surroundings: who asks, and when."""

    timezone: str
    now: datetime
    by: str | None
    calendars: Mapping[str, CalendarRow] = field(default_factory=dict)
    trace: Mapping[str, str] = field(default_factory=dict)
    """The caller's place in its own trace."""
    targets: Rules = field(default_factory=Rules)
    accepted: Accepted = ANYTHING
    references: References = UNSEEN
    listeners: Listeners = NOBODY
    budget: Budget = field(default_factory=Budget)
    """What reading its schedule may cost."""


def new_job(asked: wire.NewJob, context: Context) -> NewJob:
    """A wire job as the verbs take it."""
    return NewJob(
        definition=definition_of(asked, context),
        name=asked.name,
        group=asked.group,
        created_by=context.by,
        dedupe=dedupe_of(asked.dedupe, asked.dedupe_key),
        pause=_pause_of(asked),
    )


async def read_job(evaluations: Evaluations, asked: wire.NewJob, context: Context) -> NewJob:
    """The same, beside the event loop where its schedule is not cheap to read."""
    return await evaluations.run(lambda budget: new_job(asked, replace(context, budget=budget)))


async def read_one_of_many(
    evaluations: Evaluations, asked: wire.NewJob, context: Context
) -> NewJob:
    """The same for one of many, which is asked for its next fire as well.

    Many are created in one transaction, that is repeated for halves of them where one is refused:
    what cannot be evaluated has to be known before.
    """

    def read(budget: Budget) -> NewJob:
        new = new_job(asked, replace(context, budget=budget))
        timetable = Schedule.from_dict(new.definition.schedule, budget=budget)
        if not timetable.is_fixed_delay:
            next(iter(timetable.fires(context.now, limit=1, budget=budget)), None)
        return new

    return await evaluations.run(read)


def _pause_of(asked: wire.NewJob) -> str | None:
    """Why a job begins paused; None when it does not."""
    if asked.pause_reason and not asked.paused:
        raise _trouble(
            "invalid_parameter", "expected paused: true beside a reason for it", "/pause_reason"
        )
    return asked.pause_reason if asked.paused else None


def dedupe_of(asked: wire.Dedupe | None, key: str | None) -> Dedupe | None:
    """A business key as the verbs take it; the bare key is a unique one without a window."""
    if asked is None:
        return None if key is None else Dedupe(key=key)
    if key is not None:
        raise _trouble(
            "invalid_parameter", "expected dedupe or dedupe_key, got both", "/dedupe_key"
        )
    return Dedupe(
        key=asked.key,
        window=maybe_span(asked.window, pointer="/dedupe/window"),
        form=DedupeForm(asked.form),
    )


def definition_of(asked: wire.NewJob, context: Context) -> Definition:
    """The part of a wire job that a revision covers."""
    handler, target = work_of(asked.handler, asked.target, context.targets)
    payload = payload_of(asked)
    context.accepted.check(handler, payload, asked.payload_ref or asked.payload_reference)
    if asked.payload_schema is not None:
        check_schema(asked.payload_schema)
        if payload is not None or reference_of(asked) is None:
            check_own(asked.payload_schema, payload)
    schedule = _schedule(asked, context)
    return Definition(
        schedule=schedule,
        recount=_recount(asked, context) if counts_from_now(asked.schedule) else None,
        handler=_default(asked) if handler is None and not target else handler,
        target=target,
        payload=payload,
        queue=asked.queue,
        priority=asked.priority,
        options=_options(asked, context),
        after_completion=AfterCompletion[asked.action_after_completion.upper()],
    )


async def read_definition(
    evaluations: Evaluations, asked: wire.NewJob, context: Context
) -> Definition:
    """The same, beside the event loop where its schedule is not cheap to read."""
    return await evaluations.run(
        lambda budget: definition_of(asked, replace(context, budget=budget))
    )


def _default(asked: wire.NewJob) -> str | None:
    """The short form has no handler to name; every other job says what is to be done."""
    short = (asked.run_at, asked.cron, asked.payload_reference)
    return None if short == (None, None, None) else HANDLER_DEFAULT


def reference_of(asked: wire.NewJob) -> str | None:
    """What stands for the payload of a wire job, by either of its names."""
    return asked.payload_ref or asked.payload_reference


def payload_of(asked: wire.NewJob) -> bytes | None:
    """The payload of a wire job, as it is stored."""
    return None if asked.payload is None else msgspec.json.encode(asked.payload)


def _schedule(asked: wire.NewJob, context: Context) -> dict[str, Any]:
    given = [
        (pointer, source)
        for pointer, source in (
            ("/schedule", asked.schedule),
            ("/runAt", None if asked.run_at is None else {"type": "once", "at": asked.run_at}),
            ("/cron", None if asked.cron is None else {"type": "cron", "expr": asked.cron}),
        )
        if source is not None
    ]
    if len(given) != 1:
        found = ", ".join(pointer for pointer, _ in given) or "none"
        raise _trouble("invalid_schedule", f"expected one schedule, got {found}", "/schedule")
    pointer, source = given[0]
    if context.calendars:
        return read_schedule(source, context, pointer=pointer).to_dict()
    try:
        members = complete(
            source, timezone=context.timezone, now=context.now, budget=context.budget
        )
        return _stored(msgspec.json.encode(members, order="sorted"), context.budget)
    except Refused as refused:
        refused.pointer = f"{pointer}{refused.pointer}"
        raise


def _recount(asked: wire.NewJob, context: Context) -> Recount:
    """The schedule once more, by another clock than that of this node."""

    def recount(now: datetime, budget: Budget) -> dict[str, Any]:
        return _schedule(asked, replace(context, now=now, budget=budget))

    return recount


def _stored(members: bytes, budget: Budget) -> dict[str, Any]:
    """The stored form of a schedule, shared by all who ask for the same: nobody may change it."""
    found = _STORED.get(members)
    if found is None:
        found = Schedule.from_dict(msgspec.json.decode(members), budget=budget).to_dict()
        if len(_STORED) >= TIMETABLES_MAX:
            _STORED.clear()
        _STORED[members] = found
    return found


_STORED: dict[bytes, dict[str, Any]] = {}


def read_schedule(
    source: str | Mapping[str, Any], context: Context, *, pointer: str = "/schedule"
) -> Schedule:
    """A schedule as somebody wrote it, complete."""
    try:
        return parse(
            source,
            timezone=context.timezone,
            now=context.now,
            calendars={name: copy_of(row) for name, row in context.calendars.items()},
            budget=context.budget,
        )
    except Refused as refused:
        refused.pointer = f"{pointer}{refused.pointer}"
        raise


def _options(asked: wire.NewJob, context: Context) -> dict[str, Any]:
    timeout = maybe_limit(asked.timeout, pointer="/timeout")
    deadline = maybe_limit(asked.start_deadline, pointer="/start_deadline")
    kept = asked.retention
    options: dict[str, Any] = {
        "retry": None if asked.retry is None else retry_to_json(policy_of(asked.retry)),
        "timeout_ms": None if timeout is None else to_ms(timeout),
        "start_deadline_ms": None if deadline is None else to_ms(deadline),
        "retain_ms": None if kept is None else read_retention(kept, pointer="/retention"),
        "tags": asked.tags,
        "metadata": asked.metadata,
        "notify": callbacks_of(asked.notify, context.targets.policy, context.listeners),
        "description": asked.description,
        "dedupe_key": asked.dedupe_key if asked.dedupe is None else asked.dedupe.key,
        **context.trace,
        "payload_ref": context.references.check(reference_of(asked)),
        "payload_schema": asked.payload_schema,
        "concurrency": concurrency_of(asked.concurrency),
        "fairness_key": asked.fairness_key,
        "rate_limit_key": asked.rate_limit_key,
        "calendars": {
            name: context.calendars[name].revision for name in calendar_names(asked.schedule)
        },
    }
    return {name: value for name, value in options.items() if value}


def concurrency_of(asked: wire.Concurrency | None) -> dict[str, Any] | None:
    """A concurrency key as it is stored: only what was said."""
    if asked is None:
        return None
    told: dict[str, Any] = {"key": asked.key}
    if asked.limit is not None:
        told["limit"] = asked.limit
    if asked.on_limit != "wait":
        told["on_limit"] = asked.on_limit
    return told


def policy_of(asked: wire.Retry) -> RetryPolicy:
    """A wire policy as a value."""
    return RetryPolicy(
        max_attempts=asked.max_attempts,
        backoff=Backoff(asked.backoff),
        initial=read_span(asked.initial, pointer="/retry/initial"),
        factor=asked.factor,
        max=read_span(asked.max, pointer="/retry/max"),
        delays=tuple(
            read_span(delay, pointer=f"/retry/delays/{place}")
            for place, delay in enumerate(asked.delays)
        ),
        jitter=Jitter(asked.jitter),
        max_elapsed=maybe_span(asked.max_elapsed, pointer="/retry/max_elapsed"),
        retry_on=frozenset(asked.retry_on),
        give_up_on=frozenset(asked.give_up_on),
    )


def shown_policy(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored policy as it is shown and can be sent back."""
    policy = retry_from_json(stored)
    told: dict[str, Any] = {
        "max_attempts": policy.max_attempts,
        "backoff": policy.backoff.value,
        "initial": shown_duration(policy.initial),
        "factor": policy.factor,
        "max": shown_duration(policy.max),
        "jitter": policy.jitter.value,
    }
    if policy.delays:
        told["delays"] = [shown_duration(delay) for delay in policy.delays]
    if policy.max_elapsed is not None:
        told["max_elapsed"] = shown_duration(policy.max_elapsed)
    for name in ("retry_on", "give_up_on"):
        if getattr(policy, name):
            told[name] = sorted(getattr(policy, name))
    return told


def shown_job(job: Job, *, view: str = "basic") -> wire.Job:
    """A job as it is shown."""
    definition, options = job.definition, job.definition.options
    shown = wire.Job(
        id=to_text("job", job.id),
        tenant_id=to_text("ten", job.tenant),
        name=job.name,
        group=job.group,
        description=options.get("description"),
        schedule=named_calendars(definition),
        schedule_text=line_of(definition.schedule),
        handler=definition.handler,
        target=shown_target(definition.target, full=view != "basic"),
        payload_ref=options.get("payload_ref"),
        payload_schema=options.get("payload_schema"),
        dedupe_key=options.get("dedupe_key"),
        queue=definition.queue,
        priority=definition.priority,
        concurrency=dict(options.get("concurrency") or {}) or None,
        fairness_key=options.get("fairness_key"),
        rate_limit_key=options.get("rate_limit_key"),
        retry=shown_policy(options["retry"]) if options.get("retry") else None,
        timeout=_shown_ms(options.get("timeout_ms")),
        start_deadline=_shown_ms(options.get("start_deadline_ms")),
        retention=_shown_ms(options.get("retain_ms")),
        tags=dict(options.get("tags") or {}),
        metadata=dict(options.get("metadata") or {}),
        notify=list(options.get("notify") or []),
        action_after_completion=definition.after_completion.name.lower(),
        revision=job.revision,
        etag=tag_of(job.revision),
        created_at=shown_instant(job.created_at),
        created_by=job.created_by,
        updated_at=shown_instant(job.updated_at),
        status=_status(job),
    )
    if view != "basic":
        shown.payload = shown_bytes(definition.payload)
    return shown


def asked_again(job: Job) -> dict[str, Any]:
    """A stored job as the body that would make it: what a merge patch is applied to."""
    shown = msgspec.to_builtins(shown_job(job, view="full"))
    names = {one.encode_name for one in msgspec.structs.fields(wire.NewJob)}
    return {name: value for name, value in shown.items() if name in names and value is not None}


def named_calendars(definition: Definition) -> dict[str, Any]:
    """The schedule as it was written: with the names of calendars it carries copies of."""
    carried = definition.options.get("calendars")
    return _named(definition.schedule, carried) if carried else dict(definition.schedule)


def _named(schedule: Mapping[str, Any], carried: Mapping[str, int]) -> dict[str, Any]:
    found = dict(schedule)
    if isinstance(calendars := found.get("calendars"), Mapping):
        found["calendars"] = {
            part: [_name_of(entry, carried) for entry in value]
            if isinstance(value, list)
            else value
            for part, value in calendars.items()
        }
    if isinstance(found.get("of"), list):
        found["of"] = [_named(member, carried) for member in found["of"]]
    return found


def _name_of(entry: Any, carried: Mapping[str, int]) -> Any:
    is_copy = isinstance(entry, Mapping) and entry.get("name") in carried
    return entry["name"] if is_copy else entry


def definition_shown(definition: Definition) -> dict[str, Any]:
    """A definition without its payload."""
    return {
        "schedule": definition.schedule,
        "handler": definition.handler,
        "target": shown_target(definition.target, full=False) or {},
        "queue": definition.queue,
        "priority": definition.priority,
        "options": definition.options,
        "action_after_completion": definition.after_completion.name.lower(),
    }


def timetable_of(job: Job, budget: Budget) -> Schedule:
    """The schedule of a job, as the planner reads it."""
    return Schedule.from_dict(job.definition.schedule, seed=str(job.id), budget=budget)


def _status(job: Job) -> wire.JobStatus:
    pause = None
    if job.state in PAUSED:
        pause = wire.Pause(
            reason=job.state_reason.get("reason"),
            by=job.state_reason.get("by"),
            until=shown_maybe(job.paused_until),
        )
    return wire.JobStatus(
        state=job.state.name.lower(),
        next_fire_at=shown_maybe(job.coming_fire_at or job.next_fire_at),
        fires=str(job.fires),
        code=job.state_reason.get("code"),
        pause=pause,
    )


def _shown_ms(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else shown_duration(from_ms(milliseconds))


def _trouble(code: str, sentence: str, pointer: str) -> Refused:
    return Refused(sentence, code=code, pointer=pointer)


__all__ = [
    "Context",
    "asked_again",
    "concurrency_of",
    "dedupe_of",
    "definition_of",
    "definition_shown",
    "new_job",
    "payload_of",
    "policy_of",
    "read_schedule",
    "reference_of",
    "shown_job",
    "shown_policy",
    "timetable_of",
]
