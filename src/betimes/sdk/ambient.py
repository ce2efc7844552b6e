"""The world around a client: environment, chance, patience.

The client library lives in somebody else's process, where nobody composes it; so this module is the
one place of it that reaches for what other rooms are given.
"""

import os
import random  # noqa: TID251 -- see above
import time
import uuid
from datetime import UTC, datetime


def variable(name: str) -> str | None:
    """A variable of the environment; an empty one counts as none."""
    return os.environ.get(name) or None  # noqa: TID251 -- see above


def new_key() -> str:
    """An idempotency key that nobody else will choose."""
    return str(uuid.uuid4())  # noqa: TID251 -- see above


def roll() -> float:
    """Between 0 and 1."""
    return random.random()  # noqa: S311 -- jitter is no secret


def pause(seconds: float) -> None:
    """Block this thread for a while."""
    time.sleep(seconds)  # noqa: TID251 -- see above


async def apause(seconds: float) -> None:
    """Let other tasks go on for a while."""
    import asyncio  # noqa: PLC0415 -- who blocks does not need it

    await asyncio.sleep(seconds)  # noqa: TID251 -- see above


def monotonic() -> float:
    """Seconds that never go backwards: how long a call has been tried."""
    return time.monotonic()  # noqa: TID251 -- see above


def wall_clock() -> datetime:
    """The time of this machine: for showing what comes next, never for deciding."""
    return datetime.now(UTC)  # noqa: TID251 -- see above
