"""What tasks of the rules do, and ways to retry."""

from typing import Any

from betimes import Context
from conformance.roads import Body, Road

FIXED = {"max_attempts": 3, "backoff": "fixed", "initial": 10, "jitter": "none"}
ONCE = {"max_attempts": 1}
FOR_EVER = 100_000


class CardRefused(Exception):
    """What tasks here raise."""


async def fine(_: Context, given: Any) -> Any:
    """Return what was given."""
    return given


async def fails(ctx: Context, _: Any) -> Any:
    """Raise, with a number in the message that differs from attempt to attempt."""
    raise CardRefused(f"card 4{ctx.attempt} refused")


def failing(times: int) -> Body:
    """Raise so many times, then return the number of the attempt."""

    async def body(ctx: Context, given: Any) -> Any:
        if ctx.attempt <= times:
            await fails(ctx, given)
        return ctx.attempt

    return body


def taking(road: Road, seconds: float) -> Body:
    """Take time, then return the number of the attempt."""

    async def body(ctx: Context, _: Any) -> Any:
        await road.spend(seconds)
        return ctx.attempt

    return body


async def numbers(road: Road) -> list[int]:
    """The attempts that began, by number, in order."""
    return [one.attempt for one in road.began]
