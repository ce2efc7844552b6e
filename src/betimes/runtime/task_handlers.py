"""Tasks of an app as handlers of the runner, on every transport.

The engine is the one that does the service's own work; only what it calls is somebody else's. Most
tasks ask nothing about their run and say nothing while they work, so their context is worked out
when it is asked for, and what carries their words is made with the first of them.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from betimes.domain.outcome import Outcome
from betimes.executing.processes import Processes
from betimes.runtime.calling import invoke, invoke_async
from betimes.runtime.child import END, order_of
from betimes.runtime.courier import Courier
from betimes.runtime.saying import Saying
from betimes.sdk.application import App
from betimes.sdk.context import Context, Facts, Log
from betimes.sdk.task import AnyTask
from betimes.worker.context import Context as Held
from betimes.worker.handlers import Handlers, Kind

ReadCheckpoint = Callable[[Held], Awaitable[bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What tasks need of the service while they work."""

    lease_of: Callable[[Held], Any]
    """What a task's words are known by to be said under its lease."""
    read_checkpoint: ReadCheckpoint
    courier: Courier


class Voice(Saying):
    """The voice of an attempt."""

    def __init__(self, held: Held, service: Service) -> None:
        super().__init__(service.lease_of(held), now=held.now, wake=service.courier.wake)
        self._held = held

    def wants_end(self) -> bool:
        """Whether the attempt should end soon."""
        return self._held.cancelled


class TaskContext(Context):
    """An attempt as its task sees it; its parts are made when they are first asked for."""

    def __init__(self, held: Held, task: AnyTask, service: Service) -> None:
        self._held = held
        self._task = task
        self._service = service
        self.voice: Voice | None = None
        self.kept: bytes | None = None
        """What an earlier attempt left for this one."""

    def __getattr__(self, name: str) -> Any:
        made: Any
        if name == "_facts":
            made = self._facts = facts_of(self._held, self._task.name, self.kept)
        elif name == "_voice":
            made = self.speaking()
        elif name == "log":
            made = self.log = Log(self._voice)
        else:
            raise AttributeError(name)
        return made

    def speaking(self) -> Voice:
        """What carries its words, made with the first of them."""
        if self.voice is None:
            self._voice = self.voice = Voice(self._held, self._service)
        return self.voice

    async def last_words(self) -> None:
        """What was said is told before the end is."""
        if self.voice is not None:
            await self._service.courier.last_words(self.voice)


def facts_of(held: Held, task: str, checkpoint: bytes | None) -> Facts:
    """What a task is told about its attempt."""
    return Facts(
        run_id=held.run_id,
        handler=task,
        attempt=held.attempt,
        max_attempts=held.spec.retry.max_attempts,
        fence=held.fence,
        queue=held.queue,
        priority=held.parcel.priority,
        job_id=held.job_id,
        due_at=held.due_at,
        scheduled_for=held.fire_at,
        started_at=held.started_at,
        timeout=held.spec.timeout,
        idempotency_key=held.idempotency_key,
        traceparent=held.traceparent,
        checkpoint=None if checkpoint is None else msgspec.json.decode(checkpoint),
        tags=dict(held.options.get("tags") or {}),
    )


def handlers_of(app: App, service: Service, processes: Processes) -> Handlers:
    """A handler for each task; names of tasks are never kinds of targets."""
    handlers = Handlers(targets=False)
    for task in app.tasks.values():
        if task.is_async:
            handlers.add(task.name, on_the_loop(task, service))
        elif task.options.get("pool") == "process":
            handlers.add(task.name, in_a_process(task, service, processes))
        else:
            in_thread = InThread(task, service)
            handlers.add(task.name, in_thread.call, kind=Kind.THREAD, hooks=in_thread)
    return handlers


Handle = Callable[[Held], Coroutine[Any, Any, Outcome | None]]


def on_the_loop(task: AnyTask, service: Service) -> Handle:
    """A task that is a coroutine function."""

    async def handle(held: Held) -> Outcome | None:
        context = TaskContext(held, task, service)
        if held.begun_before:
            context.kept = await service.read_checkpoint(held)
        try:
            return await invoke_async(task, context, held.payload)
        finally:
            if context.voice is not None:
                await context.last_words()

    return handle


class InThread:
    """A task that is a plain function, and what is done on the loop around it."""

    def __init__(self, task: AnyTask, service: Service) -> None:
        self._task = task
        self._service = service

    def call(self, held: Held) -> Outcome | None:
        """Call it, where it is to run."""
        return invoke(self._task, held.companion, held.payload)

    def prepare(self, held: Held) -> bool:
        """Its context; whoever was begun before may have left something for it to read."""
        held.companion = TaskContext(held, self._task, self._service)
        return not held.begun_before

    async def ready(self, held: Held) -> None:
        """What an earlier attempt has left."""
        held.companion.kept = await self._service.read_checkpoint(held)

    def conclude(self, held: Held) -> Awaitable[None] | None:
        """What was said is told before the end is."""
        context: TaskContext = held.companion
        return None if context.voice is None else context.last_words()


def in_a_process(task: AnyTask, service: Service, processes: Processes) -> Handle:
    """A task that computes, or may die."""

    async def handle(held: Held) -> Any:
        context = TaskContext(held, task, service)
        if held.begun_before:
            context.kept = await service.read_checkpoint(held)

        def begun(say: Callable[[object], None]) -> None:
            held.on_cancel(lambda: say(END))

        def hear(message: tuple[str, tuple[Any, ...]]) -> None:
            context.speaking().hear(message)

        try:
            return await processes.run(
                order_of(task, context.facts, held.payload),
                is_held=held.is_held,
                hear=hear,
                begun=begun,
            )
        finally:
            await context.last_words()

    return handle
