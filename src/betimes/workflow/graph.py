"""The graph of a workflow: read from its definition, checked, and in an order in which it can run.

Everything that can be known to be wrong is refused here, before anything is stored: unknown nodes,
cycles, references that nothing can fill, conditions that can never hold. Handlers, targets and
retries are as anywhere else and are checked where those are known.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum, unique
from typing import Any, TypeVar

from betimes.domain.errors import CyclicGraph, Invalid
from betimes.workflow.reference import Reference, Source, escaped, references

NODES_MAX = 1_000
NEEDS_MAX = 1_000
EDGES_MAX = 100_000
"""Of all nodes together: what a step and a picture of the graph cost grows with it."""
PARALLEL_MAX = 10_000
ITEMS_MAX = 10_000
"""Of one mapped node, whether they are written down or come from an output."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
UNKNOWN_NODE = "workflow_unknown_node"
OPTIONS = ("retry", "timeout", "queue", "priority")
"""Members of a node that are those of any run."""

Duration = Callable[[object, str], timedelta]
"""Reads a duration as users write it; the text is a JSON pointer to it, for the refusal."""
Kind = TypeVar("Kind", bound=StrEnum)


@unique
class When(StrEnum):
    """What must have become of a node's needs, all of which have ended, for it to run."""

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ANY_SUCCESS = "any_success"
    ANY_FAILED = "any_failed"


@unique
class FailurePolicy(StrEnum):
    """What the failure of one node does to the others."""

    FAIL_FAST = "fail_fast"
    CONTINUE = "continue"


@unique
class GateType(StrEnum):
    """What a node waits for when nothing else is missing."""

    APPROVAL = "approval"
    TIMER = "timer"
    SIGNAL = "signal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A door before a node; `timeout` fails the node whose door stays closed too long."""

    type: GateType
    delay: timedelta | None = None
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fan:
    """One run for each item: of a list that is given, or of one that a reference leads to."""

    over: Any
    max_parallel: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One piece of work, and what must come before it."""

    id: str
    handler: str | None = None
    target: Mapping[str, Any] | None = None
    payload: Any = None
    needs: tuple[str, ...] = ()
    """Those it names, and those whose outputs it uses."""
    when: When = When.ALL_SUCCESS
    options: Mapping[str, Any] = field(default_factory=dict)
    fan: Fan | None = None
    gate: Gate | None = None
    uses: tuple[Reference, ...] = ()
    """Everything it refers to."""
    need_set: frozenset[str] = frozenset()
    """The same as `needs`; rules hold it against sets of nodes."""

    def references(self) -> Iterator[Reference]:
        """Look for everything it refers to."""
        yield from references(self.payload, "/payload")
        if self.fan is not None:
            yield from references(self.fan.over, "/map/over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A checked workflow; its nodes stand in an order in which each comes after its needs."""

    nodes: Mapping[str, Node]
    failure_policy: FailurePolicy = FailurePolicy.FAIL_FAST
    timeout: timedelta | None = None
    input_schema: Mapping[str, Any] | None = None


def read_graph(definition: Mapping[str, Any], *, duration: Duration) -> Graph:
    """Read and check a definition as it is written in JSON.

    Raises:
        CyclicGraph: nodes wait for each other.
        Invalid: anything else, with a JSON pointer to it.

    """
    _known(definition, {"nodes", "failure_policy", "timeout", "input_schema"}, "")
    written = _object(definition.get("nodes"), "/nodes")
    if not 1 <= len(written) <= NODES_MAX:
        raise Invalid(f"expected 1 to {NODES_MAX} nodes, got {len(written)}", pointer="/nodes")
    nodes = {name: _node(name, one, duration) for name, one in written.items()}
    edges = sum(len(node.needs) for node in nodes.values())
    if edges > EDGES_MAX:
        raise Invalid(
            f"expected at most {EDGES_MAX} needs of all nodes together, got {edges}",
            pointer="/nodes",
        )
    nodes = {name: _knitted(node, nodes) for name, node in nodes.items()}
    timeout = definition.get("timeout")
    schema = definition.get("input_schema")
    return Graph(
        nodes=_in_order(nodes),
        failure_policy=_choice(
            FailurePolicy, definition.get("failure_policy") or "fail_fast", "/failure_policy"
        ),
        timeout=None if timeout is None else _positive(duration, timeout, "/timeout"),
        input_schema=None if schema is None else _object(schema, "/input_schema"),
    )


_MEMBERS = {"handler", "target", "payload", "needs", "when", "map", "gate", *OPTIONS}


def _node(name: str, written: Any, duration: Duration) -> Node:
    place = f"/nodes/{escaped(name)}"
    if not NAME.fullmatch(name):
        raise Invalid(
            "expected a node id of 1 to 100 letters, digits, _, . and -, not beginning with . or "
            f"-, got {name!r}",
            pointer=place,
        )
    given = _object(written, place)
    _known(given, _MEMBERS, place)
    handler, target = given.get("handler"), given.get("target")
    if (handler is None) == (target is None):
        raise Invalid("expected a handler or a target, and not both", pointer=place)
    if handler is not None and not (isinstance(handler, str) and handler):
        raise Invalid(f"expected the name of a handler, got {handler!r}", pointer=place)
    node = Node(
        id=name,
        handler=handler,
        target=None if target is None else _object(target, f"{place}/target"),
        payload=given.get("payload"),
        needs=_needs(given.get("needs") or [], place),
        when=_choice(When, given.get("when") or "all_success", f"{place}/when"),
        options={key: given[key] for key in OPTIONS if given.get(key) is not None},
        fan=_fan(given.get("map"), f"{place}/map"),
        gate=_gate(given.get("gate"), f"{place}/gate", duration),
    )
    return _with_references(node, place)


def _needs(written: Any, place: str) -> tuple[str, ...]:
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise Invalid(f"expected a list of node ids, got {written!r}", pointer=f"{place}/needs")
    if len(written) > NEEDS_MAX:
        raise Invalid(
            f"expected at most {NEEDS_MAX} needs, got {len(written)}", pointer=f"{place}/needs"
        )
    return tuple(dict.fromkeys(written))


def _fan(written: Any, place: str) -> Fan | None:
    if written is None:
        return None
    given = _object(written, place)
    _known(given, {"over", "max_parallel"}, place)
    over, most = given.get("over"), given.get("max_parallel")
    if isinstance(over, list):
        if len(over) > ITEMS_MAX:
            raise Invalid(
                f"expected at most {ITEMS_MAX} items, got {len(over)}", pointer=f"{place}/over"
            )
    elif not isinstance(over, dict) or not any(name in over for name in Source):
        raise Invalid(
            f"expected a list or a reference to one, got {over!r}", pointer=f"{place}/over"
        )
    whole = isinstance(most, int) and not isinstance(most, bool)
    if most is not None and not (whole and 1 <= most <= PARALLEL_MAX):
        raise Invalid(
            f"expected a whole number within 1-{PARALLEL_MAX}, got {most!r}",
            pointer=f"{place}/max_parallel",
        )
    return Fan(over=over, max_parallel=most)


def _gate(written: Any, place: str, duration: Duration) -> Gate | None:
    if written is None:
        return None
    given = _object(written, place)
    _known(given, {"type", "delay", "timeout"}, place)
    kind = _choice(GateType, given.get("type"), f"{place}/type")
    delay, timeout = given.get("delay"), given.get("timeout")
    if (delay is not None) != (kind is GateType.TIMER):
        raise Invalid("expected a delay for a timer, and for nothing else", pointer=place)
    if timeout is not None and kind is GateType.TIMER:
        raise Invalid("expected no timeout for a timer: it opens by itself", pointer=place)
    return Gate(
        type=kind,
        delay=None if delay is None else _positive(duration, delay, f"{place}/delay"),
        timeout=None if timeout is None else _positive(duration, timeout, f"{place}/timeout"),
    )


def _with_references(node: Node, place: str) -> Node:
    """Check what it refers to; whose output it uses, it needs."""
    needs = dict.fromkeys(node.needs)
    try:
        uses = tuple(node.references())
        for one in uses:
            _check_reference(node, one)
            if one.source is Source.OUTPUT:
                needs[one.node] = None
    except Invalid as error:
        raise Invalid(error.sentence, code=error.code, pointer=place + error.pointer) from error
    return replace(node, needs=tuple(needs), uses=uses)


def _check_reference(node: Node, one: Reference) -> None:
    in_over = one.place.startswith("/map")
    if one.source is Source.ITEM and (node.fan is None or in_over):
        raise Invalid("expected $item only in the payload of a node with a map", pointer=one.place)
    signalled = node.gate is not None and node.gate.type is GateType.SIGNAL
    if one.source is Source.SIGNAL and not signalled:
        raise Invalid("expected $signal only in a node with a signal gate", pointer=one.place)


def _knitted(node: Node, nodes: Mapping[str, Node]) -> Node:
    """The node with its needs checked, each by the one text that names it in this graph."""
    place = f"/nodes/{escaped(node.id)}"
    needs = []
    for need in node.needs:
        needed = nodes.get(need)
        if needed is None:
            raise Invalid(
                f"expected a node of this workflow, got {need!r}, which {node.id!r} needs",
                code=UNKNOWN_NODE,
                pointer=f"{place}/needs",
            )
        needs.append(needed.id)
    if not node.needs and node.when in {When.ANY_SUCCESS, When.ANY_FAILED}:
        raise Invalid(
            f"expected needs with when {node.when}: without any it could never run",
            pointer=f"{place}/when",
        )
    return replace(node, needs=tuple(needs), need_set=frozenset(needs))


def _in_order(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The nodes, each after its needs, else as they were written."""
    left = {name: len(node.needs) for name, node in nodes.items()}
    followers: dict[str, list[str]] = {name: [] for name in nodes}
    for name, node in nodes.items():
        for need in node.needs:
            followers[need].append(name)
    ready = [name for name, count in left.items() if count == 0]
    ordered: dict[str, Node] = {}
    for name in ready:  # grows while it is walked
        ordered[name] = nodes[name]
        for follower in followers[name]:
            left[follower] -= 1
            if left[follower] == 0:
                ready.append(follower)
    if len(ordered) < len(nodes):
        cycle = _cycle({name: node for name, node in nodes.items() if name not in ordered})
        raise CyclicGraph(
            f"expected no node to wait for itself, got {' needs '.join(cycle)}",
            cycle=cycle,
            pointer="/nodes",
        )
    return ordered


def _cycle(stuck: Mapping[str, Node]) -> tuple[str, ...]:
    """One cycle among nodes of which each needs another; the first comes again at the end."""
    seen: dict[str, int] = {}
    name = next(iter(stuck))
    while name not in seen:
        seen[name] = len(seen)
        name = next(need for need in stuck[name].needs if need in stuck)
    path = list(seen)[seen[name] :]
    return (*path, name)


def _known(given: Mapping[str, Any], names: Iterable[str], place: str) -> None:
    for name in given:
        if name not in names:
            raise Invalid(
                f"expected {', '.join(sorted(names))}, got {name!r}",
                code="unknown_field",
                pointer=f"{place}/{escaped(name)}",
            )


def _object(given: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise Invalid(f"expected an object, got {given!r}", pointer=place)
    return given


def _choice(kinds: type[Kind], given: Any, place: str) -> Kind:
    if not isinstance(given, str) or given not in [one.value for one in kinds]:
        raise Invalid(
            f"expected one of {', '.join(one.value for one in kinds)}, got {given!r}",
            pointer=place,
        )
    return kinds(given)


def _positive(duration: Duration, given: object, place: str) -> timedelta:
    found = duration(given, place)
    if found <= timedelta(0):
        raise Invalid(f"expected a duration of more than nothing, got {given!r}", pointer=place)
    return found
