"""A graph of tasks as one function: described once, run as often as one likes."""

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    get_type_hints,
)

import msgspec

from betimes.sdk.builder import WorkflowBuilder
from betimes.sdk.control import Pause
from betimes.sdk.options import ScheduleOptions, plain
from betimes.sdk.reference import INPUT, Reference
from betimes.sdk.shapes import Unfit, decoder, encode, schema_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from betimes.sdk.application import App
    from betimes.sdk.schedules import Fire
    from betimes.sdk.workflow_handle import WorkflowHandle

P = ParamSpec("P")
Q = ParamSpec("Q")


class WorkflowOptions(ScheduleOptions, total=False):
    """Everything `@app.workflow` takes."""

    name: str
    description: str
    """Of the job of its schedule."""
    failure_policy: Literal["fail_fast", "continue"]
    timeout: Pause
    """How long a run of the whole graph may take."""
    tags: "Mapping[str, str]"


WORKFLOW_OPTIONS = frozenset(WorkflowOptions.__annotations__)
POLICIES = ("fail_fast", "continue")
NOTHING = inspect.Parameter.empty


class Workflow(Generic[P]):
    """Nodes and what they need, under a name: start it, or let its schedule do that.

    `P` is what it is started with: nothing, or one input.
    """

    __name__: str

    def __init__(
        self, app: "App", function: Callable[..., object], name: str, options: WorkflowOptions
    ) -> None:
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"expected a plain function that describes the workflow {name!r}, got an async one"
            )
        policy = options.get("failure_policy", POLICIES[0])
        if policy not in POLICIES:
            raise ValueError(
                f"expected a failure policy out of {', '.join(POLICIES)}, got {policy!r}"
            )
        self.app = app
        self.name = name
        self.options = options
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<workflow {self.name!r}>"

    def definition(self) -> dict[str, Any]:
        """The graph as the service takes it, in types of JSON."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self._definition))
        return found

    @cached_property
    def _definition(self) -> dict[str, Any]:
        """Described when first needed: tasks it names may stand further down in the file."""
        builder = WorkflowBuilder(self.name, self._input_kind)
        given = [] if self._input is None else [Reference(builder, INPUT)]
        try:
            self.function(builder, *given)
        finally:
            builder.is_closed = True
        if not builder.nodes:
            raise ValueError(f"expected at least one node in the workflow {self.name!r}, got none")
        told: dict[str, Any] = {
            "nodes": builder.nodes,
            "failure_policy": self.options.get("failure_policy", POLICIES[0]),
        }
        if self.options.get("timeout") is not None:
            told["timeout"] = plain(self.options["timeout"])
        if self._input is not None and (schema := schema_of(self._input_kind or Any)) is not None:
            told["input_schema"] = schema
        return told

    # --- its input ---

    @cached_property
    def _input(self) -> inspect.Parameter | None:
        """The parameter behind the builder."""
        parameters = list(inspect.signature(self.function).parameters.values())
        if not 1 <= len(parameters) <= 2 or any(one.kind not in _PLACED for one in parameters):  # noqa: PLR2004 -- w and an input
            raise TypeError(
                f"expected {self.name!r} to take `w` and perhaps one input, "
                f"got {inspect.signature(self.function)}"
            )
        return parameters[1] if parameters[1:] else None

    @cached_property
    def _input_kind(self) -> Any:
        if self._input is None:
            return None
        hints = get_type_hints(self.function, include_extras=True)
        kind = hints.get(self._input.name)
        return None if kind is Any else kind

    def encode(self, *args: P.args, **kwargs: P.kwargs) -> bytes | None:
        """The input of a run, checked by its annotation; None when it takes none.

        Raises:
            TypeError: there is none and one is needed, or the other way around.
            Unfit: it is not what its annotation says.

        """
        parameter = self._input
        signature = inspect.Signature([] if parameter is None else [parameter])
        bound = signature.bind(*args, **kwargs)
        if parameter is None:
            return None
        value = bound.arguments.get(parameter.name, parameter.default)
        try:
            data = encode(value)
            decoder(self._input_kind or Any)(data)
        except (NotImplementedError, TypeError, ValueError) as error:
            raise Unfit(f"{self.name}: {error}") from error
        return data

    # --- at the service ---

    def start(self, *args: P.args, **kwargs: P.kwargs) -> "WorkflowHandle":
        """Begin a run of the graph with an input; it is durable when this returns.

        The service runs the version that `app.sync_schedules()` or `put` has brought there last.
        """
        from betimes.sdk.workflow_handle import WorkflowHandle  # noqa: PLC0415 -- only who calls needs it

        made = self.app.client.perform(*self._starting(self.encode(*args, **kwargs)))
        return WorkflowHandle(self.app, made)

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> "WorkflowHandle":
        """The same, awaited."""
        from betimes.sdk.workflow_handle import WorkflowHandle  # noqa: PLC0415 -- as above

        made = await self.app.async_client.perform(*self._starting(self.encode(*args, **kwargs)))
        return WorkflowHandle(self.app, made)

    def put(self) -> int:
        """Bring the definition to the service; its version, which is new when it has changed."""
        version: int = self.app.client.perform(*self.putting()).version
        return version

    def putting(self) -> tuple[Any, Any]:
        """What `put` asks of the service; an app that includes this one asks it of its own."""
        from betimes.sdk.exchange import Given  # noqa: PLC0415 -- as above
        from betimes.sdk.operations import WORKFLOWS_PUT  # noqa: PLC0415 -- as above

        return WORKFLOWS_PUT, Given(path={"workflow": self.name}, body=self.definition())

    def _starting(self, data: bytes | None) -> tuple[Any, Any]:
        from betimes.sdk.exchange import Given  # noqa: PLC0415 -- as above
        from betimes.sdk.operations import WORKFLOWS_START  # noqa: PLC0415 -- as above

        body: dict[str, Any] = {} if data is None else {"input": msgspec.Raw(data)}
        if self.options.get("tags"):
            body["tags"] = dict(self.options["tags"])
        return WORKFLOWS_START, Given(path={"workflow": self.name}, body=body)

    def next(self, count: int = 5) -> "list[Fire]":
        """The next fires of its schedule."""
        from betimes.sdk.schedules import next_fires  # noqa: PLC0415 -- the room of time is large

        return next_fires(self, count)


_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
AnyWorkflow = Workflow[Any]


class WorkflowDecorator(Protocol):
    """What `@app.workflow(...)` gives: makes workflows of functions."""

    def __call__(
        self, function: Callable[Concatenate[WorkflowBuilder, Q], object], /
    ) -> Workflow[Q]:
        """Make one."""
        ...
