"""What a task runs in, in a process of its own."""

from collections.abc import Mapping
from typing import Any

from betimes.executing.child import Talk, found
from betimes.runtime import ending
from betimes.runtime.attempt import END
from betimes.runtime.calling import call
from betimes.runtime.logs import ship_logs
from betimes.sdk.context import Context, Facts
from betimes.sdk.task import Task
from betimes.wire.workers import ReportOne

ENTRY = f"{__name__}:execute"


class Far:
    """The voice of a handler in a child: its words go through the pipe."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    def progress(self, percent: float, message: str | None) -> None:
        """How far it has come."""
        self._talk.say(("progress", (percent, message)))

    def checkpoint(self, data: bytes) -> None:
        """Where the next attempt may begin."""
        self._talk.say(("checkpoint", (data,)))

    def log(self, level: str, message: str, fields: Mapping[str, Any]) -> None:
        """One line; fields that cannot travel go as text."""
        plain = {name: one if _travels(one) else str(one) for name, one in fields.items()}
        self._talk.say(("log", (level, message, plain)))

    def wants_end(self) -> bool:
        """Whether the parent has asked for the end."""
        return END in self._talk.heard()


def _travels(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def execute(talk: Talk, where: str, facts: Facts, payload: bytes, lease: str) -> ReportOne:
    """Call the task in this process; whatever happens is an ending."""
    ship_logs()
    try:
        task = found(where)
    except (ImportError, AttributeError) as error:
        return ending.raised(lease, error)
    if not isinstance(task, Task):
        return ending.raised(lease, TypeError(f"expected a task at {where}, got {task!r}"))
    return call(task, Context(facts, Far(talk)), payload, lease)
