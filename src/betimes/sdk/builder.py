"""What a workflow is described with: each call adds a node to its graph and runs nothing.

A node is called with literals and with earlier nodes, which stand for their outputs. Since a node
must be there before another can name it, no cycle can be made.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import (
    Any,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from betimes.sdk.control import Pause
from betimes.sdk.kinds import said
from betimes.sdk.options import RetryOptions, check_names, plain
from betimes.sdk.payloads import Later, argument_of, kinds_of, payload_of, plain_of, restored
from betimes.sdk.reference import INPUT, ITEM, OUTPUT, SIGNAL, AnyNode, Node, Reference, parts_of
from betimes.sdk.shapes import Unfit
from betimes.sdk.takes import (
    Given,
    Takes,
    TakesEach,
    TakesFour,
    TakesNothing,
    TakesOne,
    TakesThree,
    TakesTwo,
)
from betimes.sdk.task import AnyTask, Configured, Task

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")

When = Literal["all_success", "all_done", "any_success", "any_failed"]
GateType = Literal["approval", "timer", "signal"]


class GateOptions(TypedDict, total=False):
    """What a node waits for besides other nodes."""

    type: GateType
    delay: Pause
    """How long a `timer` waits once nothing else is missing."""
    timeout: Pause
    """How long an `approval` or a `signal` is waited for; then the node fails."""


class NodeOptions(TypedDict, total=False):
    """What is said of a node besides its arguments."""

    id: str
    """Its name in the graph; the name of its task unless given."""
    needs: Sequence[AnyNode]
    """Nodes that come first, besides those whose output is an argument."""
    when: When
    gate: Literal["approval", "signal"] | GateOptions
    retry: RetryOptions
    timeout: Pause
    queue: str
    priority: int


NODE_OPTIONS = frozenset(NodeOptions.__annotations__)
MEMBERS = ("queue", "priority", "timeout", "retry")
"""What a node takes from the options of its task, of `configure`, and of itself."""
WHENS: tuple[str, ...] = get_args(When)
GATES: tuple[str, ...] = get_args(GateType)
GATE_OPTIONS = frozenset(GateOptions.__annotations__)
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
LONGEST = 90
"""Of the name of a task; a number has to go behind it."""


class WorkflowBuilder:
    """`w` of `def daily(w): …`: the graph of one workflow while it is described."""

    def __init__(self, name: str, input_kind: Any = None) -> None:
        self.name = name
        self.nodes: dict[str, dict[str, Any]] = {}
        self.is_closed = False
        self._kinds: dict[str, Any] = {}
        self._input_kind = input_kind

    def __repr__(self) -> str:
        return f"<workflow {self.name!r}, {len(self.nodes)} nodes so far>"

    @property
    def item(self) -> Any:
        """The element, in the arguments of `map`: `w.map(parse, over=files, name=w.item["id"])`."""
        return Reference(self, ITEM)

    @property
    def signal(self) -> Any:
        """What was sent with the signal, in the arguments of a node with `gate="signal"`."""
        return Reference(self, SIGNAL)

    @overload
    def run(self, task: TakesNothing[R], /, **options: Unpack[NodeOptions]) -> Node[R]: ...
    @overload
    def run(
        self, task: TakesOne[A, R], one: Given[A], /, **options: Unpack[NodeOptions]
    ) -> Node[R]: ...
    @overload
    def run(
        self,
        task: TakesTwo[A, B, R],
        one: Given[A],
        two: Given[B],
        /,
        **options: Unpack[NodeOptions],
    ) -> Node[R]: ...
    @overload
    def run(
        self,
        task: TakesThree[A, B, C, R],
        one: Given[A],
        two: Given[B],
        three: Given[C],
        /,
        **options: Unpack[NodeOptions],
    ) -> Node[R]: ...
    @overload
    def run(
        self,
        task: TakesFour[A, B, C, D, R],
        one: Given[A],
        two: Given[B],
        three: Given[C],
        four: Given[D],
        /,
        **options: Unpack[NodeOptions],
    ) -> Node[R]: ...
    @overload
    def run(self, task: Takes[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Node[R]: ...
    def run(self, task: Any, /, *args: Any, **given: Any) -> Any:
        """Add a node that calls a task.

        Arguments may be nodes, parts of their outputs, or hold them in lists and objects; the
        node then comes after those. Whatever is named as in `NodeOptions` is said of the node: an
        argument of such a name is given by position, or its option by `task.configure(…)`.

        Raises:
            TypeError: arguments are missing or too many, or an option is none.
            Unfit: an argument is not what its annotation says, or never will be.

        """
        called, members = self._called(task)
        options = {name: given.pop(name) for name in NODE_OPTIONS & given.keys()}
        bound = called.arguments.signature.bind(*args, **given).arguments
        self._refuse_doubt(called, bound, options)
        payload, found = payload_of(called.arguments, called.name, bound, self._kind_of)
        node: dict[str, Any] = {"handler": called.name}
        if payload is not None:
            node["payload"] = payload
        return self._add(called, node, found, {**members, **options}, _result_kind(called))

    def map(
        self,
        task: TakesEach[A, R],
        /,
        *,
        over: Node[list[A]] | Node[tuple[A, ...]] | list[A] | tuple[A, ...],
        max_parallel: int | None = None,
        **given: Any,
    ) -> Node[list[R]]:
        """Add a node that calls a task for each element of a list, and results in their results.

        The element is the first argument that is not said here, unless `w.item` is part of one.
        Options of nodes go as in `run`.
        """
        called, members = self._called(task)
        options = {name: given.pop(name) for name in NODE_OPTIONS & given.keys()}
        elements, sources = self._elements(called, over)
        bound = self._bound_to_item(called, given)
        self._refuse_doubt(called, bound, options)
        item_kind = self._item_kind(called, over, bound)

        def kind_of(later: Later) -> Any:
            return item_kind if parts_of(later)[1] == ITEM else self._kind_of(later)

        payload, found = payload_of(called.arguments, called.name, bound, kind_of)
        fan: dict[str, Any] = {"over": elements}
        if max_parallel is not None:
            if isinstance(max_parallel, bool) or max_parallel < 1:
                raise ValueError(f"expected max_parallel of 1 or more, got {max_parallel!r}")
            fan["max_parallel"] = max_parallel
        node: dict[str, Any] = {"handler": called.name, "payload": payload, "map": fan}
        kind = _result_kind(called)
        return self._add(
            called, node, sources + found, {**members, **options},
            None if kind is None else list[kind],  # type: ignore[valid-type]  # a type at run time
        )  # fmt: skip

    # --- what tasks are called with ---

    def _called(self, task: Any) -> tuple[AnyTask, dict[str, Any]]:
        """The task, and what it and `configure` say that nodes can be told."""
        if self.is_closed:
            raise RuntimeError(
                f"expected nodes inside the function of {self.name!r}, got one later"
            )
        options: Mapping[str, Any] = {}
        if isinstance(task, Configured):
            task, options = task.task, task.options
            for name in options:
                if name not in MEMBERS:
                    raise TypeError(
                        f"expected {', '.join(MEMBERS)} to be configured for a node, got {name!r}"
                    )
        if not isinstance(task, Task):
            raise TypeError(f"expected a task (a function with @app.task), got {task!r}")
        return task, {**task.options, **options}

    def _bound_to_item(self, task: AnyTask, fixed: dict[str, Any]) -> dict[str, Any]:
        """The arguments of one call of many: what is fixed, and the element."""
        signature = task.arguments.signature
        _, found = plain_of(fixed, task.name)
        if not any(parts_of(one)[1] == ITEM for one in found):
            free = next((name for name in signature.parameters if name not in fixed), None)
            if free is None:
                raise TypeError(f"expected a parameter of {task.name!r} for the element, got none")
            fixed = {free: self.item, **fixed}
        placed = signature.bind_partial()
        placed.arguments.update(fixed)
        unknown = fixed.keys() - signature.parameters.keys()
        if unknown:
            raise TypeError(f"{task.name!r} has no parameter {', '.join(sorted(unknown))}")
        return dict(signature.bind(*placed.args, **placed.kwargs).arguments)

    def _elements(self, task: AnyTask, over: Any) -> tuple[Any, list[Later]]:
        """What is mapped over: a reference to a list, or a list."""
        elements, found = plain_of(over, f"{task.name}: over")
        if isinstance(over, Reference | Node):
            kind = self._kind_of(over)
            kinds = None if kind is None else kinds_of(over, kind)
            if kinds is not None and "array" not in kinds:
                raise Unfit(
                    f"expected a list to map over, got {over!r}, which will be {said(kinds)}"
                )
        elif not isinstance(elements, list):
            raise Unfit(f"expected a list to map over, got {type(over).__name__}")
        return restored(elements, found), found

    def _item_kind(self, task: AnyTask, over: Any, bound: Mapping[str, Any]) -> Any:
        """What the elements will be; those that are known now are looked at now."""
        if isinstance(over, Reference):
            return None
        if isinstance(over, Node):
            kind = self._kind_of(over)
            return get_args(kind)[0] if get_origin(kind) is list and get_args(kind) else None
        for name, value in bound.items():
            if isinstance(value, Reference) and parts_of(value)[1:] == (ITEM, "", ""):
                wanted = task.arguments.hints.get(name, Any)
                for place, one in enumerate(over):
                    argument_of(one, wanted, f"{task.name}: over: {place}", self._kind_of)
        return None

    def _refuse_doubt(
        self, task: AnyTask, bound: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        """An option of a node may be meant for a parameter of the same name."""
        for name in options:
            if name in task.arguments.signature.parameters and name not in bound:
                raise TypeError(
                    f"expected the argument {name!r} of {task.name!r} by position: named, it is an "
                    "option of the node"
                )

    def _kind_of(self, later: Later) -> Any:
        _, source, node, _ = parts_of(later)
        if source == OUTPUT:
            return self._kinds.get(node)
        return self._input_kind if source == INPUT else None

    # --- what becomes a node ---

    def _add(
        self,
        task: AnyTask,
        node: dict[str, Any],
        referred: Iterable[Later],
        options: Mapping[str, Any],
        kind: Any,
    ) -> Node[Any]:
        node |= {name: plain(options[name]) for name in MEMBERS if options.get(name) is not None}
        if (gate := options.get("gate")) is not None:
            node["gate"] = _gate(gate)
        if (when := options.get("when")) is not None:
            node["when"] = _one_of(WHENS, when, "when")
        needs = [*self._sources(referred, node), *self._named(options.get("needs", ()))]
        if needs:
            node["needs"] = list(dict.fromkeys(needs))
        elif when in {"any_success", "any_failed"}:
            raise ValueError(f"expected needs with when={when!r}: without any it could never run")
        name = self._name(options.get("id"), task.name)
        self.nodes[name] = node
        self._kinds[name] = kind
        return Node(self, name)

    def _sources(self, referred: Iterable[Later], node: Mapping[str, Any]) -> Iterable[str]:
        """The nodes whose outputs it uses, and a look at everything else it refers to."""
        for one in referred:
            _, source, name, _ = self._ours(one)
            if source == OUTPUT:
                yield name
            elif source == ITEM and "map" not in node:
                raise TypeError("expected w.item in the arguments of `w.map`, got it elsewhere")
            elif source == SIGNAL and node.get("gate", {}).get("type") != "signal":
                raise TypeError('expected w.signal in a node with gate="signal", got it elsewhere')

    def _named(self, needs: Any) -> Iterable[str]:
        if isinstance(needs, Node | Reference | str) or not isinstance(needs, Iterable):
            raise TypeError(f"expected a list of nodes in needs, got {needs!r}")
        for one in needs:
            if not isinstance(one, Node):
                raise TypeError(f"expected nodes in needs, got {one!r}")
            yield self._ours(one)[2]

    def _ours(self, later: Later) -> "tuple[WorkflowBuilder, str, str, str]":
        parts = parts_of(later)
        if parts[0] is not self:
            raise ValueError(
                f"expected what belongs to the workflow {self.name!r}, got {later!r} "
                f"of {parts[0].name!r}"
            )
        return parts

    def _name(self, wanted: str | None, task: str) -> str:
        """The name of a node: as asked for, or the task's with a number when it is taken."""
        if wanted is not None:
            if not NAME.fullmatch(wanted):
                raise ValueError(
                    f"expected an id of letters, digits, _, . and - for a node, got {wanted!r}"
                )
            if wanted in self.nodes:
                raise ValueError(f"expected one node {wanted!r} in {self.name!r}, got a second")
            return wanted
        base = UNFIT.sub("_", task).lstrip(".-")[:LONGEST] or "node"
        names = (base if number == 1 else f"{base}_{number}" for number in count(1))
        return next(name for name in names if name not in self.nodes)


def _result_kind(task: AnyTask) -> Any:
    """What a task says it returns; None when it does not say."""
    kind = task.arguments.hints.get("return")
    return None if kind is Any else kind


def _gate(gate: Any) -> dict[str, Any]:
    told = {"type": gate} if isinstance(gate, str) else gate
    if not isinstance(told, Mapping):
        raise TypeError(f"expected a gate such as approval or {{'type': 'timer', …}}, got {gate!r}")
    check_names(told, GATE_OPTIONS, "a member of a gate")
    kind = _one_of(GATES, told.get("type"), "a gate")
    if (told.get("delay") is not None) != (kind == "timer"):
        raise ValueError(f"expected a delay for a timer and for nothing else, got {gate!r}")
    return {name: plain(one) for name, one in told.items() if one is not None}


def _one_of(known: tuple[str, ...], given: Any, what: str) -> str:
    if not isinstance(given, str) or given not in known:
        raise ValueError(f"expected {what} out of {', '.join(known)}, got {given!r}")
    return given
