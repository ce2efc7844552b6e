"""The other end of `processes`: what runs in a spawned child.

Parent and child talk over one pipe. The child says what its handler says while it works, and at
last how it ended; the parent may say that the end is wanted.
"""

import importlib
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple


class Order(NamedTuple):
    """What to call in the child, as `module:name`, and with what; all of it can be pickled."""

    entry: str
    arguments: tuple[Any, ...]


class Said(NamedTuple):
    """Something said on the way."""

    message: Any


class Told(NamedTuple):
    """How it ended."""

    answer: object


class Talk:
    """The child's side of the conversation."""

    def __init__(self, pipe: "Connection[Any, Any]") -> None:
        self._pipe = pipe
        self._heard: list[Any] = []

    def say(self, message: Any) -> None:
        """Tell the parent something."""
        self._pipe.send(Said(message))

    def heard(self) -> list[Any]:
        """Everything the parent has said during this call."""
        while self._pipe.poll():
            self._heard.append(self._pipe.recv())
        return self._heard


def serve(pipe: "Connection[Any, Any]") -> None:
    """Execute orders until the other end is gone."""
    # An interrupt from the terminal reaches the whole group; only the worker acts upon it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            order = pipe.recv()
        except EOFError:
            return
        if isinstance(order, Order):  # anything else was said to a call that has ended
            pipe.send(Told(found(order.entry)(Talk(pipe), *order.arguments)))


def found(entry: str) -> Callable[..., Any]:
    """The function that a text names."""
    module, _, name = entry.partition(":")
    target: Any = importlib.import_module(module)
    for step in name.split("."):
        target = getattr(target, step)
    function: Callable[..., Any] = target
    return function
