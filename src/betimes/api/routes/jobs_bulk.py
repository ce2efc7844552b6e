"""Actions over a filter of jobs, as an operation: every job is an act of its own."""

from dataclasses import replace
from typing import Any

import msgspec

from betimes.api.call import Call, Reply
from betimes.api.context import context_of
from betimes.api.definitions import definition_of
from betimes.api.operating import begin, check_count, chosen_id
from betimes.api.problem import Trouble
from betimes.api.reading import convert
from betimes.api.route import Keyed, Load, NoQuery, Policy, Route
from betimes.api.routes.jobs_list import read_tags
from betimes.domain.ids import JobId
from betimes.domain.scopes import Scope
from betimes.domain.states import JobState
from betimes.ops.bulk import ITEMS_MAX
from betimes.ops.bulk_jobs import BULK_JOBS, JOBS, change_of
from betimes.ops.contents import sealed_for_later
from betimes.ops.listing import JobFilter, find_all_jobs
from betimes.ops.operations import new_operation
from betimes.wire import jobs, operations
from betimes.wire import jobs_bulk as wire
from betimes.wire.problem import FieldError

STORED = {
    "handler": None,
    "payload": None,
    "queue": None,
    "priority": None,
    "description": "description",
    "retry": "retry",
    "timeout": "timeout_ms",
    "start_deadline": "start_deadline_ms",
    "tags": "tags",
    "metadata": "metadata",
    "fairness_key": "fairness_key",
}
"""Where a member that can be set is kept: in an option, or beside them."""


async def bulk(call: Call[NoQuery, wire.BulkJobs]) -> Reply:
    """Do something to what a filter means, when its number is confirmed."""
    body = call.body
    if (body.action == "set") != (body.set_ is not None):
        raise _wrong("expected `set` with the action set and only there", "/set")
    change = None if body.set_ is None else await _change(call, body.set_)
    jobs = await _chosen(call)
    if body.dry_run:
        return Reply(value=operations.Matched(matched=len(jobs), dry_run=True))
    check_count(len(jobs), body.confirm_count, noun="jobs")
    request = BULK_JOBS.request(
        body.action,
        jobs,
        reason=body.reason,
        rate_per_second=body.rate_per_second,
        set=change,
    )
    operation = new_operation(
        call.service.desk,
        call.tenant,
        JOBS,
        request,
        total=len(jobs),
        by=call.caller.key,
        identity=chosen_id(call, body.operation_id),
    )
    return await begin(call, operation)


async def _change(call: Call[NoQuery, wire.BulkJobs], asked: wire.SetJob) -> dict[str, Any]:
    """What is to be set, checked as part of a job that would be created with it."""
    named = msgspec.to_builtins(asked)
    if not named:
        raise _wrong("expected members to set, got none", "/set")
    given = {name: value for name, value in named.items() if value is not None}
    whole: jobs.NewJob = convert({"schedule": {"type": "manual"}, **given}, jobs.NewJob)
    definition = definition_of(whole, await context_of(call))
    # The operation keeps it until every job has it.
    payload = await sealed_for_later(call.service.desk, call.tenant, definition.payload)
    definition = replace(definition, payload=payload)
    return change_of(definition, {name: STORED[name] for name in named})


async def _chosen(call: Call[NoQuery, wire.BulkJobs]) -> list[JobId]:
    found = await find_all_jobs(
        call.service.desk, call.tenant, _filter(call.body.filter), most=ITEMS_MAX + 1
    )
    if len(found) > ITEMS_MAX:
        raise Trouble("batch_too_large", f"this means more than {ITEMS_MAX} jobs; narrow it down")
    return found


def _filter(asked: wire.JobChoice) -> JobFilter:
    return JobFilter(
        states=[JobState[state.upper()] for state in asked.state],
        queues=asked.queue,
        handlers=asked.handler,
        group=asked.group,
        prefix=asked.name_prefix,
        tags=read_tags([f"{name}:{value}" for name, value in asked.tags.items()]),
    )


def _wrong(sentence: str, pointer: str) -> Trouble:
    return Trouble(
        "invalid_parameter",
        sentence,
        errors=[FieldError(pointer=pointer, code="invalid_parameter", detail=sentence)],
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/jobs/bulk",
        name="jobs.bulk",
        says="Pause, resume, cancel, delete or change what a filter means, as an operation.",
        handler=bulk,
        scope=Scope.JOBS_WRITE,
        body=wire.BulkJobs,
        answers={200: operations.Matched, 202: operations.Operation},
        keyed=Keyed.OPTIONAL,
        load=Load.VITAL,
        policy=Policy.BULK,
        problems=("confirm_count_mismatch", "batch_too_large", "already_exists"),
        headers=("Location",),
        example={"action": "pause", "filter": {"queue": ["mail"]}, "confirm_count": 12},
    ),
)
