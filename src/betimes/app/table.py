"""Which roles this build knows, and how each is made. New services are entered here."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from betimes.app.api import ApiRole
from betimes.app.coordinator import CoordinatorRole, JanitorRole
from betimes.app.dispatcher import DispatcherRole
from betimes.app.node import Node
from betimes.app.roles import Role, RoleEntry
from betimes.app.worker import WorkerRole
from betimes.worker import Handlers

Factory = Callable[[Node, Handlers], Role]

FACTORIES: Mapping[str, Factory] = MappingProxyType(
    {
        "api": lambda node, _: ApiRole(node),
        "coordinator": lambda node, _: CoordinatorRole(node),
        "worker": WorkerRole,
        "janitor": lambda node, _: JanitorRole(node),
        "dispatcher": lambda node, _: DispatcherRole(node),
    }
)


def known_entries(node: Node, handlers: Handlers) -> list[RoleEntry]:
    """The wanted roles that exist; those that do not are reported, never played for show."""
    wanted = node.settings.server.roles
    for name in wanted:
        if name not in FACTORIES:
            node.telemetry.event("role.missing", level="warning", role=name)
    return [_entry(name, node, handlers) for name in wanted if name in FACTORIES]


def _entry(name: str, node: Node, handlers: Handlers) -> RoleEntry:
    return RoleEntry(name, lambda: FACTORIES[name](node, handlers))
