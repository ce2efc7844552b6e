"""Handlers every worker has: for trying things out and for measuring."""

import json
from datetime import timedelta

from betimes.domain.clock import Clock
from betimes.worker.context import Context
from betimes.worker.handlers import Handlers

SLEEP_SECONDS_DEFAULT = 1.0


class DemonstrationError(Exception):
    """What the handler `fail` raises."""


async def noop(_: Context) -> None:
    """Do nothing, well."""


async def echo(context: Context) -> bytes | None:
    """Return the payload."""
    return context.payload


async def fail(context: Context) -> None:
    """Raise, with the payload's text if there is one."""
    raise DemonstrationError((context.payload or b"asked to fail").decode("utf-8", "replace"))


async def snooze(context: Context) -> object:
    """Ask to be called again in a second, once."""
    if context.fence > 1:
        return None
    return context.snooze(timedelta(seconds=1))


def builtin_handlers(clock: Clock) -> Handlers:
    """`noop`, `echo`, `fail`, `snooze`, and `sleep` by the clock one was given."""

    async def sleep(context: Context) -> None:
        """Wait as many seconds as the payload says, `{"seconds": 2}`."""
        wanted = json.loads(context.payload) if context.payload else {}
        await clock.sleep(float(wanted.get("seconds", SLEEP_SECONDS_DEFAULT)))

    handlers = Handlers()
    for function in (noop, echo, fail, snooze, sleep):
        handlers.add(function.__name__, function)
    return handlers
