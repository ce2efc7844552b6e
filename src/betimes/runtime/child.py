"""What a task runs in, in a process of its own."""

from collections.abc import Mapping
from typing import Any

from betimes.domain.outcome import Outcome
from betimes.executing.child import Order, Talk, found
from betimes.runtime import outcomes
from betimes.runtime.calling import invoke
from betimes.runtime.logs import ship_logs
from betimes.sdk.context import Context, Facts
from betimes.sdk.task import AnyTask, Task

ENTRY = f"{__name__}:execute"
END = "end"
"""What a process is told when it should end."""


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


def execute(talk: Talk, where: str, facts: Facts, payload: bytes | None) -> Outcome | None:
    """Call the task in this process; whatever happens is an outcome."""
    ship_logs()
    try:
        task = found(where)
    except (ImportError, AttributeError) as error:
        return outcomes.raised(error)
    if not isinstance(task, Task):
        return outcomes.raised(TypeError(f"expected a task at {where}, got {task!r}"))
    return invoke(task, Context(facts, Far(talk)), payload)


def order_of(task: AnyTask, facts: Facts, payload: bytes | None) -> Order:
    """What makes a child do that."""
    function = task.function
    return Order(ENTRY, (f"{function.__module__}:{function.__qualname__}", facts, payload))
