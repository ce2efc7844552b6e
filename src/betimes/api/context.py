"""What definitions need from their surroundings."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from betimes.api.call import Call
from betimes.api.callbacks import listeners_of
from betimes.api.definitions import Context
from betimes.api.references import references_of
from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId
from betimes.domain.job import Job
from betimes.domain.run import Run
from betimes.ops import schemas
from betimes.ops.calendars import calendar_names, find_calendars
from betimes.ops.read import get_job
from betimes.ops.schemas import Accepted, check_own, read_contents
from betimes.target.policy import policy_for
from betimes.target.url import UrlPolicy
from betimes.wire.jobs import NewJob


class Work(Protocol):
    """What is to be done, as it is asked for: a handler, and a payload or where it lies."""

    handler: str | None
    payload: Any
    payload_ref: str | None


async def context_of(
    call: Call[Any, Any],
    *schedules: object,
    works: Collection[NewJob] = (),
    references: Iterable[str | None] = (),
    job: Job | None = None,
) -> Context:
    """What definitions need: also the calendars, blobs and endpoints they name.

    `job` is the one they change, if there is one.
    """
    names = {name for schedule in schedules for name in calendar_names(schedule)}
    calendars = await find_calendars(call.service.desk, call.tenant, names) if names else {}
    return Context(
        timezone=call.caller.timezone,
        now=call.service.now(),
        by=call.caller.key,
        calendars=calendars,
        trace=call.request.trace,
        targets=targets_of(call),
        accepted=await accepted_of(call, works),
        references=await references_of(call, references),
        listeners=await listeners_of(call, works, job=job),
    )


async def accepted_of(call: Call[Any, Any], works: Iterable[Work] = ()) -> Accepted:
    """What handlers accept; what the references of `works` stand for is read, where it matters."""
    desk = call.service.desk
    accepted = await call.service.schemas.of(desk, call.tenant)
    wanted = [
        reference
        for one in works
        if (reference := one.payload_ref) and one.payload is None and accepted.knows(one.handler)
    ]
    if not wanted:
        return accepted
    return accepted.reading(await read_contents(desk, call.tenant, wanted))


def targets_of(call: Call[Any, Any]) -> UrlPolicy:
    """What the caller's tenant may call."""
    return policy_for(call.service.targets, call.caller.settings)


async def _own_schema(call: Call[Any, Any], job: JobId) -> Mapping[str, Any] | None:
    """What a job says its payloads are like; one that is gone says nothing."""
    try:
        found = await get_job(call.service.desk, call.tenant, job)
    except NotFound:
        return None
    schema: Mapping[str, Any] | None = found.definition.options.get("payload_schema")
    return schema


async def check_again(call: Call[Any, Any], run: Run, override: bytes | None) -> None:
    """Refuse to do something over that no worker would take, as it was or with another payload.

    Raises:
        Invalid: it fits none of the schemas of its handler.

    """
    if override is not None and run.job is not None:
        check_own(await _own_schema(call, run.job), override)
    accepted = await accepted_of(call)
    await schemas.check_again(call.service.desk, call.tenant, accepted, run, override)
