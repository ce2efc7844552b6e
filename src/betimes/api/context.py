"""What definitions need from their surroundings."""

from collections.abc import Iterable
from typing import Any

from betimes.api.call import Call
from betimes.api.definitions import Context
from betimes.api.references import references_of
from betimes.ops.calendars import calendar_names, find_calendars
from betimes.target.policy import policy_for
from betimes.target.url import UrlPolicy


async def context_of(
    call: Call[Any, Any], *schedules: object, references: Iterable[str | None] = ()
) -> Context:
    """What definitions need: also the calendars that schedules name, and the blobs referred to."""
    names = {name for schedule in schedules for name in calendar_names(schedule)}
    calendars = await find_calendars(call.service.desk, call.tenant, names) if names else {}
    return Context(
        timezone=call.caller.timezone,
        now=call.service.now(),
        by=call.caller.key,
        calendars=calendars,
        trace=call.request.trace,
        targets=targets_of(call),
        accepted=await call.service.schemas.of(call.service.desk, call.tenant),
        references=await references_of(call, references),
    )


def targets_of(call: Call[Any, Any]) -> UrlPolicy:
    """What the caller's tenant may call."""
    return policy_for(call.service.targets, call.caller.settings)
