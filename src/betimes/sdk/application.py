"""The app: a set of tasks and the way to the service they belong to.

Making one, and decorating functions, touches no network: connections are made by the first call.
"""

import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from betimes.sdk.context import Context
from betimes.sdk.handle import RunHandle
from betimes.sdk.middleware import Middleware
from betimes.sdk.options import TASK_OPTIONS, TaskOptions, check_names
from betimes.sdk.prepared import Prepared
from betimes.sdk.task import AnyTask, Decorator, Task

if TYPE_CHECKING:
    from betimes.sdk.builder import WorkflowBuilder
    from betimes.sdk.client import AsyncClient, Client
    from betimes.sdk.resources import Calendars, DeadLetters, Jobs, Queues, Runs
    from betimes.sdk.tx import OutboxTx, Tx
    from betimes.sdk.way import Way
    from betimes.sdk.workflow import AnyWorkflow, Workflow, WorkflowDecorator, WorkflowOptions
    from betimes.wire.apply import Applied
    from betimes.wire.runs import Run, RunMade

P = ParamSpec("P")
R = TypeVar("R")
BATCH_MAX = 1_000


class App:
    """Tasks by name, and a client of the service.

    `url` and `api_key` come from BETIMES_URL, BETIMES_API_KEY and the profile that `betimes login`
    keeps when they are not given; `profile` names another one. `name` marks the schedules that
    belong to this app; by default it is the module that made it.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        name: str | None = None,
        profile: str | None = None,
        tenant: str | None = None,
        middleware: Sequence[Middleware] = (),
        timeout: float | None = None,
    ) -> None:
        self._url = url
        self._api_key = api_key
        self._profile = profile
        self._tenant = tenant
        self._timeout = timeout
        self._tasks: dict[str, AnyTask] = {}
        self._workflows: dict[str, AnyWorkflow] = {}
        self.name = name or _maker()
        self.middleware: list[Middleware] = list(middleware)

    def __repr__(self) -> str:
        return f"<app {self.name!r}, {len(self._tasks)} tasks>"

    @property
    def url(self) -> str | None:
        """Where the service is, if it was said here and not in the environment."""
        return self._url

    @property
    def api_key(self) -> str | None:
        """The key, if it was given here and not in the environment."""
        return self._api_key

    def way(
        self, url: str | None = None, api_key: str | None = None, *, profile: str | None = None
    ) -> "Way":
        """The way to the service: as said here, in the app, the environment and the profile."""
        from betimes.sdk.way import client_way  # noqa: PLC0415 -- only who calls needs it

        return client_way(
            url or self._url,
            api_key or self._api_key,
            profile=profile or self._profile,
            tenant=self._tenant,
        )

    @property
    def tasks(self) -> Mapping[str, AnyTask]:
        """Its tasks by name."""
        return MappingProxyType(self._tasks)

    @property
    def workflows(self) -> "Mapping[str, AnyWorkflow]":
        """Its workflows by name."""
        return MappingProxyType(self._workflows)

    @cached_property
    def client(self) -> "Client":
        """The blocking client, with every operation of the service."""
        from betimes.sdk.client import Client  # noqa: PLC0415 -- only who calls needs it

        return Client(self._url, self._api_key, **self._manner)

    @cached_property
    def async_client(self) -> "AsyncClient":
        """The awaited client."""
        from betimes.sdk.client import AsyncClient  # noqa: PLC0415 -- only who calls needs it

        return AsyncClient(self._url, self._api_key, **self._manner)

    @property
    def _manner(self) -> dict[str, Any]:
        said = {"profile": self._profile, "tenant": self._tenant, "timeout": self._timeout}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def jobs(self) -> "Jobs":
        """Operations on jobs."""
        return self.client.jobs

    @property
    def runs(self) -> "Runs":
        """Operations on runs."""
        return self.client.runs

    @property
    def queues(self) -> "Queues":
        """Operations on queues."""
        return self.client.queues

    @property
    def calendars(self) -> "Calendars":
        """Operations on calendars."""
        return self.client.calendars

    @property
    def dead_letters(self) -> "DeadLetters":
        """Operations on dead letters."""
        return self.client.dead_letters

    @overload
    def task(  # type: ignore[overload-overlap]  # the first that fits is meant
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Callable[Concatenate[Context, P], Coroutine[Any, Any, R]]]: ...
    @overload
    def task(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> Task[P, R, Callable[Concatenate[Context, P], R]]: ...
    @overload
    def task(
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Task[P, R, Callable[P, Coroutine[Any, Any, R]]]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, Callable[P, R]]: ...
    @overload
    def task(self, **options: Unpack[TaskOptions]) -> Decorator: ...
    def task(self, function: Callable[..., Any] | None = None, /, **given: Any) -> Any:  # type: ignore[misc]
        """Make a task of a function: `@app.task` or `@app.task(queue="mail", timeout="2m")`."""
        check_names(given, TASK_OPTIONS, "an option of a task")
        options: TaskOptions = given  # type: ignore[assignment]  # its names were checked

        def make(wrapped: Callable[..., Any]) -> AnyTask:
            return self._add(Task(self, wrapped, options.get("name") or wrapped.__name__, options))

        return make if function is None else make(function)

    def _add(self, task: AnyTask) -> AnyTask:
        self._check_name("task", task.name)
        self._tasks[task.name] = task
        return task

    @overload
    def workflow(
        self, function: "Callable[Concatenate[WorkflowBuilder, P], object]", /
    ) -> "Workflow[P]": ...
    @overload
    def workflow(self, **options: "Unpack[WorkflowOptions]") -> "WorkflowDecorator": ...
    def workflow(self, function: Callable[..., Any] | None = None, /, **given: Any) -> Any:  # type: ignore[misc]
        """Make a workflow of the function that describes it: `@app.workflow(schedule="…")`.

        The function is called once, when the graph is first needed, with a builder whose `run`
        and `map` add nodes; what it is annotated with behind that is the input of its runs.
        """
        from betimes.sdk.workflow import WORKFLOW_OPTIONS, Workflow  # noqa: PLC0415 -- who has none needs none

        check_names(given, WORKFLOW_OPTIONS, "an option of a workflow")
        options: WorkflowOptions = given  # type: ignore[assignment]  # its names were checked

        def make(wrapped: Callable[..., Any]) -> "AnyWorkflow":
            name = options.get("name") or wrapped.__name__
            self._check_name("workflow", name)
            self._workflows[name] = Workflow(self, wrapped, name, options)
            return self._workflows[name]

        return make if function is None else make(function)

    def _check_name(self, what: str, name: str) -> None:
        """Names are those of jobs, too: a task and a workflow cannot share one."""
        for kind, known in (("task", self._tasks), ("workflow", self._workflows)):
            if name in known:
                second = "a second" if kind == what else f"a {what} of it"
                raise ValueError(f"expected one {kind} of the name {name!r}, got {second}")

    def include(self, other: "App") -> None:
        """Serve and schedule what another app has as well; it keeps its own client."""
        for task in other.tasks.values():
            self._add(task)
        for workflow in other.workflows.values():
            self._check_name("workflow", workflow.name)
            self._workflows[workflow.name] = workflow

    def enqueue(self, prepared: Prepared[R]) -> RunHandle[R]:
        """Send a prepared call."""
        self._before(prepared)
        return self._made(prepared, self.client.perform(*_creation(prepared)))

    async def aenqueue(self, prepared: Prepared[R]) -> RunHandle[R]:
        """The same, awaited."""
        self._before(prepared)
        return self._made(prepared, await self.async_client.perform(*_creation(prepared)))

    def enqueue_many(self, calls: Iterable[Prepared[Any]]) -> list[RunHandle[Any]]:
        """Send many prepared calls, up to 1,000 in one request; each request is all or none.

        Idempotency keys of single calls mean nothing here; dedupe keys do.
        """
        handles = []
        for group in _groups(calls):
            for one in group:
                self._before(one)
            made = self.client.perform(*_creations(group))
            handles += [self._made(one, run) for one, run in zip(group, made.items, strict=True)]
        return handles

    async def aenqueue_many(self, calls: Iterable[Prepared[Any]]) -> list[RunHandle[Any]]:
        """The same, awaited."""
        handles = []
        for group in _groups(calls):
            for one in group:
                self._before(one)
            made = await self.async_client.perform(*_creations(group))
            handles += [self._made(one, run) for one, run in zip(group, made.items, strict=True)]
        return handles

    @overload
    def tx(
        self, connection: Any, *, outbox: Literal[False] = False, tenant: str | None = None
    ) -> "Tx": ...
    @overload
    def tx(self, connection: Any, *, outbox: Literal[True]) -> "OutboxTx": ...
    def tx(
        self, connection: Any, *, outbox: bool = False, tenant: str | None = None
    ) -> "Tx | OutboxTx":
        """Enqueue inside a transaction of your own: `app.tx(session).enqueue(task, order.id)`.

        Takes connections, cursors and sessions of psycopg, asyncpg and SQLAlchemy, and aliases of
        Django. With `outbox` they may belong to any other database (sqlite3 as well), where
        `betimes relay` finds what was asked for.
        """
        from betimes.sdk.tx import OutboxTx, Tx  # noqa: PLC0415 -- only who calls needs it

        return OutboxTx(self, connection) if outbox else Tx(self, connection, tenant)

    def cancel(self, *, dedupe_key: str, reason: str = "") -> str | None:
        """Cancel the run that holds a dedupe key; its id, or None when no active run has it."""
        from betimes.sdk.errors import InvalidState, NotFound  # noqa: PLC0415 -- as above

        try:
            return self.client.runs.cancel_by_key(dedupe_key=dedupe_key, reason=reason).id
        except (NotFound, InvalidState):
            return None

    def sync_schedules(self, *, prune: bool = False, dry_run: bool = False) -> "Applied":
        """Bring the service's jobs to what the decorators of this app say.

        With `prune`, jobs that an earlier version of this app declared are deleted; jobs that
        others made are never touched.
        """
        from betimes.sdk.schedules import sync  # noqa: PLC0415 -- the room of time is large

        return sync(self, prune=prune, dry_run=dry_run)

    def close(self) -> None:
        """Let go of the blocking client's connections; the app may still be used afterwards."""
        if "client" in self.__dict__:
            self.client.close()

    async def aclose(self) -> None:
        """The same for both clients."""
        self.close()
        if "async_client" in self.__dict__:
            await self.async_client.close()

    def _before(self, prepared: Prepared[Any]) -> None:
        for one in self.middleware:
            one.before_enqueue(prepared)

    def _made(self, prepared: Prepared[R], made: "RunMade | Run") -> RunHandle[R]:
        handle = RunHandle(self, prepared.task, made)
        for one in reversed(self.middleware):
            one.after_enqueue(prepared, handle)
        return handle


def _creation(prepared: Prepared[Any]) -> tuple[Any, Any]:
    from betimes.sdk.exchange import Given  # noqa: PLC0415 -- as above
    from betimes.sdk.operations import RUNS_CREATE  # noqa: PLC0415 -- as above

    return RUNS_CREATE, Given(
        body=prepared.body(),
        idempotency_key=prepared.idempotency_key,
        headers=prepared.headers,
    )


def _creations(group: Sequence[Prepared[Any]]) -> tuple[Any, Any]:
    from betimes.sdk.exchange import Given  # noqa: PLC0415 -- as above
    from betimes.sdk.operations import RUNS_CREATE_MANY  # noqa: PLC0415 -- as above

    headers = {name: value for one in group for name, value in one.headers.items()}
    return RUNS_CREATE_MANY, Given(
        body={"items": [one.body() for one in group], "mode": "atomic"}, headers=headers
    )


def _groups(calls: Iterable[Prepared[Any]]) -> Iterator[list[Prepared[Any]]]:
    group: list[Prepared[Any]] = []
    for one in calls:
        group.append(one)
        if len(group) == BATCH_MAX:
            yield group
            group = []
    if group:
        yield group


def _maker() -> str:
    """The module that makes an app, by the name it would be imported under."""
    told = sys._getframe(2).f_globals  # noqa: SLF001 -- the one way to know who calls
    spec = told.get("__spec__")
    name = spec.name if spec is not None else told.get("__name__", "app")
    if name == "__main__":
        name = str(told.get("__file__", "app")).replace("\\", "/").rpartition("/")[2]
        name = name.removesuffix(".py")
    return str(name).removesuffix(".__main__") or "app"
