"""What only the machine knows, for commands: the time, and whether somebody sits before it.

`app.clock` would do, at the price of loading asyncio for every command.
"""

import sys
import time
from datetime import UTC, datetime


def now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)  # noqa: TID251 -- see above


def monotonic() -> float:
    """Seconds that never go backwards."""
    return time.monotonic()  # noqa: TID251 -- see above


def somebody_types() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin.isatty()


def somebody_reads() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def somebody_hears() -> bool:
    """Whether standard error is a terminal, where progress is painted."""
    return sys.stderr.isatty()
