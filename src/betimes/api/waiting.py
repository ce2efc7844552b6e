"""Waiting for the end of a run: `Prefer: wait=n`, and the long poll."""

import re
from typing import Any

import msgspec

from betimes.api.call import Call, Reply
from betimes.api.finding import find_run
from betimes.api.run_shapes import shown_run
from betimes.domain.states import FINAL
from betimes.ops.runs import RunView

DRAIN_SECONDS = 0.5
PREFERRED_SECONDS_MAX = 25.0
"""Under the idle limit that most proxies have."""
_WAIT = re.compile(r"wait\s*=\s*\"?([0-9]{1,4})\"?", re.IGNORECASE)


async def until_final(call: Call[Any, Any], seconds: float) -> RunView:
    """A run as soon as it has ended, patience has, or the node is about to stop."""
    clock = call.service.clock
    most = call.service.settings.long_poll_max.total_seconds()
    deadline = clock.monotonic() + min(seconds, most)
    view = await find_run(call)
    while view.run.state not in FINAL and not call.service.draining.begun:
        left = deadline - clock.monotonic()
        if left <= 0:
            break
        # One look finds the ends of all that are awaited; in between it is seen who is to stop.
        patience = min(DRAIN_SECONDS, left)
        if (
            await call.service.ends.wait(call.tenant, view.run.id, seconds=patience)
            or left <= patience
        ):
            view = await find_run(call)
    return view


async def prefer_wait(call: Call[Any, Any], reply: Reply) -> Reply:
    """With `Prefer: wait=n`, the finished run instead of the promise of one."""
    seconds = _preferred(call.request.header(b"prefer") or "")
    if seconds is None or call.only_try:
        return reply
    made = msgspec.json.decode(reply.content or b"{}")
    call.path = {**call.path, "run": made["id"]}
    view = await until_final(call, min(seconds, PREFERRED_SECONDS_MAX))
    if view.run.state not in FINAL:
        return reply
    return Reply(value=shown_run(view), headers=reply.headers | {"Preference-Applied": "wait"})


def _preferred(text: str) -> float | None:
    for part in text.split(","):
        if found := _WAIT.fullmatch(part.partition(";")[0].strip()):
            return float(found[1])
    return None
