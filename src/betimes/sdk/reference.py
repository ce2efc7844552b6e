"""Values that a workflow knows only when it runs: they stand for what they will be.

While a workflow is described nothing has happened yet, so these can be passed on and taken apart
and never looked at: who tries to is told so, instead of being given an answer about nothing.
"""

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    from betimes.sdk.builder import WorkflowBuilder

R_co = TypeVar("R_co", covariant=True)
OUTPUT, INPUT, ITEM, SIGNAL = "$output", "$input", "$item", "$signal"


class Later:
    """What cannot be looked at yet."""

    __slots__ = ()

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(
            f"expected {self!r} to be passed on to a task, got {what}: it is known only when the "
            "workflow runs. Decide inside a task, or by `when`"
        )

    def __bool__(self) -> NoReturn:  # noqa: PLE0304 -- never
        self._refuse("a question whether it is true")

    def __iter__(self) -> NoReturn:
        self._refuse("a loop over it (`w.map` makes a run for each element)")

    def __len__(self) -> NoReturn:  # noqa: PLE0303 -- never
        self._refuse("a question for its length")

    def __contains__(self, one: object) -> NoReturn:
        self._refuse("a question for what is in it")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Later):
            self._refuse(f"a comparison with {other!r}")
        return self is other

    def __hash__(self) -> int:
        return id(self)


class Reference(Later):
    """A part of an output, of the input, of an element or of a signal; `["name"]` goes deeper.

    Members are reached by `reference.name` as well, as they would be on the value itself.
    """

    __slots__ = ("_from", "_node", "_path", "_workflow")

    def __init__(
        self, workflow: "WorkflowBuilder", source: str, node: str = "", path: str = ""
    ) -> None:
        self._workflow = workflow
        self._from = source
        self._node = node
        self._path = path

    def __repr__(self) -> str:
        of = f" of {self._node!r}" if self._from == OUTPUT else ""
        at = f" at {self._path}" if self._path else ""
        return f"<{self._from.removeprefix('$')}{of}{at}>"

    def __getitem__(self, step: str | int) -> "Reference":
        return deeper(self, step)

    def __getattr__(self, name: str) -> "Reference":
        if name.startswith("_"):
            raise AttributeError(name)
        return deeper(self, name)


class Node(Later, Generic[R_co]):
    """One step of a workflow; as an argument of a later one it stands for its output."""

    __slots__ = ("_workflow", "id")

    def __init__(self, workflow: "WorkflowBuilder", name: str) -> None:
        self._workflow = workflow
        self.id = name
        """The name of the node in the graph."""

    def __repr__(self) -> str:
        return f"<node {self.id!r} of {self._workflow.name!r}>"

    @property
    def output(self) -> R_co:
        """The output, to type checkers of the type it will have: `total.output.amount`."""
        return cast("R_co", Reference(self._workflow, OUTPUT, self.id))

    def __getitem__(self, step: str | int) -> Any:
        return deeper(Reference(self._workflow, OUTPUT, self.id), step)

    def path(self, pointer: str) -> Any:
        """A part of the output by JSON Pointer: `total.path("/lines/0/amount")`."""
        if pointer and not pointer.startswith("/"):
            raise ValueError(f"expected a JSON Pointer such as /lines/0, got {pointer!r}")
        return Reference(self._workflow, OUTPUT, self.id, pointer)


AnyNode = Node[Any]


def deeper(reference: Reference, step: str | int) -> Reference:
    """One step into a value."""
    placed = isinstance(step, int) and not isinstance(step, bool) and step >= 0
    if not placed and not isinstance(step, str):
        raise TypeError(f"expected a name or a place from 0 on in {reference!r}, got {step!r}")
    name = str(step).replace("~", "~0").replace("/", "~1")
    workflow, source, node, path = parts_of(reference)
    return Reference(workflow, source, node, f"{path}/{name}")


def parts_of(later: "Reference | AnyNode") -> "tuple[WorkflowBuilder, str, str, str]":
    """The workflow it belongs to, where it comes from, the node, and the way into it."""
    if isinstance(later, Node):
        return later._workflow, OUTPUT, later.id, ""  # noqa: SLF001 -- one of us
    return later._workflow, later._from, later._node, later._path  # noqa: SLF001 -- as above


def written(later: "Reference | AnyNode") -> dict[str, str]:
    """As a definition writes it."""
    _, source, node, path = parts_of(later)
    if source != OUTPUT:
        return {source: path}
    return {OUTPUT: node, "path": path} if path else {OUTPUT: node}


def steps_of(pointer: str) -> list[str]:
    """The names of a JSON Pointer."""
    return [one.replace("~1", "/").replace("~0", "~") for one in pointer.split("/")[1:]]
