"""The critical path: what a workflow run was waiting for, from its end back to its beginning."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from betimes.workflow.graph import Graph


class Times(NamedTuple):
    """When a node was started and when it ended; None for what has not happened."""

    started_at: datetime | None
    finished_at: datetime | None


def critical_path(graph: Graph, times: Mapping[str, Times]) -> tuple[str, ...]:
    """The chain of nodes that decided how long it took, in the order in which they ran.

    It ends with the node that ended last (while the run goes on: with the one that started last)
    and goes back each time to the need that ended last, because that is what was waited for. Nodes
    that never ran are in nobody's way.
    """
    places = {name: place for place, name in enumerate(graph.nodes)}
    started = [name for name in graph.nodes if times[name].started_at is not None]
    if not started:
        return ()

    def last(names: list[str]) -> str:
        return max(names, key=lambda name: (*_lateness(times[name]), places[name]))

    path = [last(started)]
    while True:
        needs = [need for need in graph.nodes[path[-1]].needs if times[need].started_at is not None]
        if not needs:
            return tuple(reversed(path))
        path.append(last(needs))


def _lateness(times: Times) -> tuple[bool, datetime]:
    """What goes on ends later than all that has ended."""
    if times.finished_at is not None:
        return False, times.finished_at
    return True, times.started_at or datetime.max.replace(tzinfo=UTC)
