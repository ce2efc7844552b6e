"""Handlers that other processes import."""

import os
import signal
from collections.abc import Mapping

from betimes.worker import Context


def double(context: Context) -> Mapping[str, object]:
    """Say what was seen, from where."""
    return {"pid": os.getpid(), "attempt": context.attempt, "run": context.run_id}


def die(_: Context) -> None:
    """Kill the process one runs in."""
    os.kill(os.getpid(), signal.SIGKILL)


def complain(_: Context) -> None:
    """Raise."""
    raise ArithmeticError("cannot compute")


def spin(_: Context) -> None:
    """Never end."""
    while True:
        pass
