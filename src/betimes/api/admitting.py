"""Quotas and queues at the door: what has no room is turned away before anything is written."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from betimes.api.acting import replied
from betimes.api.call import Call, Reply
from betimes.domain.errors import Forbidden
from betimes.domain.run import NewRun
from betimes.ops.create import NewJob
from betimes.ops.idempotency import Once, answered
from betimes.ops.meter import Demand
from betimes.ops.quotas import QuotaReached
from betimes.ops.tenant_settings import STRICT


async def admitted(
    call: Call[Any, Any],
    *,
    jobs: Sequence[NewJob] = (),
    runs: Sequence[NewRun] = (),
    only_try: bool = False,
) -> Reply | None:
    """None when there is room; the first answer again when the request was answered before.

    Whoever repeats a request whose reply got lost must not be told that there is no room for what
    it has made already.
    """
    if only_try or not call.caller.quotas:
        return None
    demand = Demand.of(
        jobs=[job.definition.payload for job in jobs], runs=[run.payload for run in runs]
    )
    return await admitted_demand(call, demand)


def check_accepting(call: Call[Any, Any]) -> None:
    """Refuse what is new in a tenant that takes nothing new, where a request may also change."""
    if call.caller.rejecting:
        raise Forbidden("the tenant accepts nothing new", code="tenant_suspended")


async def admitted_demand(call: Call[Any, Any], demand: Demand) -> Reply | None:
    """The same for what is not given as jobs and runs."""
    service = call.service
    try:
        await service.meter.admit(service.desk, call.tenant, call.caller.quotas, demand)
    except QuotaReached:
        known = call.key and await answered(service.desk, call.tenant, call.key)
        if not known:
            raise
        return replied(Once(value=None, answer=known, replayed=True))
    return None


async def check_open(
    call: Call[Any, Any], queues: Collection[str], handlers: Iterable[str | None] = ()
) -> None:
    """Refuse new work, and jobs that would bring some, for a queue that drains.

    For a strict tenant also what is for queues and handlers that nobody knows.
    """
    service = call.service
    await service.gates.check(service.desk, call.tenant, queues)
    if call.caller.settings.get(STRICT) is True:
        await service.strictness.check(service.desk, call.tenant, queues=queues, handlers=handlers)
