"""What definitions need from their surroundings."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from betimes.api.call import Call
from betimes.api.callbacks import listeners_of
from betimes.api.definitions import Context
from betimes.api.references import references_of
from betimes.api.targets import Rules, secrets_named
from betimes.domain.errors import NotFound
from betimes.domain.ids import JobId
from betimes.domain.job import Job
from betimes.domain.run import Run
from betimes.domain.scopes import Scope
from betimes.ops import schemas
from betimes.ops.calendars import calendar_names, find_calendars
from betimes.ops.read import get_job
from betimes.ops.schemas import Accepted, check_own, read_contents
from betimes.ops.secrets import read_bindings
from betimes.target.definition import read_target
from betimes.target.policy import policy_for
from betimes.target.url import UrlPolicy
from betimes.wire.jobs import NewJob, Target


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
        targets=await rules_of(
            call,
            (one.target for one in works),
            kept=() if job is None else (job.definition.target,),
        ),
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


async def rules_of(
    call: Call[Any, Any],
    targets: Iterable[Target | None] = (),
    *,
    kept: Sequence[Mapping[str, Any]] = (),
) -> Rules:
    """What the caller may have called; where the secrets are bound that `targets` name is read.

    `kept` are targets that are stored already.
    """
    names = secrets_named(targets)
    desk, uses = call.service.desk, Scope.SECRETS_USE in call.caller.scopes
    bound = await read_bindings(desk, call.tenant, sorted(names)) if names and uses else {}
    return Rules(policy=targets_of(call), uses_secrets=uses, bound=bound, kept=kept)


async def check_stored(
    call: Call[Any, Any], target: Mapping[str, Any], *, kept: Sequence[Mapping[str, Any]]
) -> None:
    """Judge a target that comes out of the store as if the caller had written it.

    Raises:
        Forbidden: it uses secrets, and the caller may not.
        BadTarget: it may not be called, or not with its secrets.

    """
    if "url" not in target or target in kept:
        return
    read = read_target(target, targets_of(call))
    bound = await read_bindings(call.service.desk, call.tenant, read.secrets)
    uses = Scope.SECRETS_USE in call.caller.scopes
    Rules(uses_secrets=uses, bound=bound).check(target, read)


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
