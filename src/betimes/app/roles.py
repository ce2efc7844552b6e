"""What a node can do: a role is a service that runs until it is asked to stop."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from betimes.rhythm import Stopping


class Role(Protocol):
    """A long-running duty.

    `run` returns soon after stopping is requested, with its work finished or given back. If it
    raises, or returns unasked, it is made anew and run again.
    """

    async def run(self, stopping: Stopping) -> None:
        """Do the duty."""
        ...


@dataclass(frozen=True, slots=True)
class RoleEntry:
    """A role by name, and how to make one: each start gets a fresh one, without old state."""

    name: str
    make: Callable[[], Role]
