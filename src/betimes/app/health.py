"""How the roles of a node are doing, for health pages and logs."""

from dataclasses import dataclass
from enum import StrEnum


class RoleState(StrEnum):
    """Where a role is in its life."""

    WAITING = "waiting"
    RUNNING = "running"
    CRASHED = "crashed"
    STOPPED = "stopped"


@dataclass(slots=True)
class RoleHealth:
    """One role; `crashes` counts those since it last ran long enough to be trusted."""

    state: RoleState = RoleState.WAITING
    crashes: int = 0


class Health:
    """All roles of a node; unhealthy while any of them keeps crashing."""

    def __init__(self, names: list[str], *, unhealthy_after: int) -> None:
        self.roles = {name: RoleHealth() for name in names}
        self._unhealthy_after = unhealthy_after

    @property
    def healthy(self) -> bool:
        """Whether no role keeps crashing."""
        return all(role.crashes < self._unhealthy_after for role in self.roles.values())

    def started(self, name: str) -> None:
        """The role runs."""
        self.roles[name].state = RoleState.RUNNING

    def crashed(self, name: str) -> None:
        """The role ended although nobody asked."""
        self.roles[name].state = RoleState.CRASHED
        self.roles[name].crashes += 1

    def recovered(self, name: str) -> None:
        """The role has run long enough."""
        self.roles[name].crashes = 0

    def stopped(self, name: str) -> None:
        """The role ended as asked."""
        self.roles[name].state = RoleState.STOPPED
