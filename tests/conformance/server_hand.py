"""The worker of the server role, and that of an app on the database, turned by hand."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from betimes import Cancelled, Context, PermanentError, Retry, Snooze
from betimes.config.settings import WorkerSettings
from betimes.domain.ids import TAIL_BYTES, TenantId, WorkerId, random_ids, to_ms
from betimes.domain.outcome import Cancelled as CancelledOutcome
from betimes.domain.outcome import Failed, Outcome
from betimes.executing.returned import failure_of
from betimes.runtime.courier import Courier
from betimes.sdk.context import Facts, current
from betimes.sdk.control import Control
from betimes.sdk.options import seconds_of
from betimes.sdk.task import AnyTask
from betimes.store.database import Database
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker import Chance, Handlers
from betimes.worker import Context as ServerContext
from betimes.worker.heartbeat import Heartbeat
from betimes.worker.hints import CHANNEL
from betimes.worker.service import Large, Parts
from conformance.hands import (
    LEASE,
    NO_PATIENCE,
    PLACES,
    ROUNDS,
    Tasks,
    entropy,
    half,
    losing,
    no_wait,
    until_quiet,
)
from conformance.roads import Bodies


class ServerVoice:
    """What a task hears on the server road; it has nothing to speak with."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context

    def progress(self, percent: float, message: str | None) -> None:
        raise NotImplementedError

    def checkpoint(self, data: bytes) -> None:
        raise NotImplementedError

    def log(self, level: str, message: str, fields: Any) -> None:
        raise NotImplementedError

    def wants_end(self) -> bool:
        return self._context.cancelled


def served(task: AnyTask) -> Callable[[ServerContext], Coroutine[Any, Any, object]]:
    """A task of an app as a handler of the server role: the same words, its own outcomes."""

    async def handler(context: ServerContext) -> object:
        ctx = Context(
            Facts(
                run_id=context.run_id,
                handler=task.name,
                attempt=context.attempt,
                fence=context.fence,
                due_at=context.due_at,
                started_at=context.started_at,
            ),
            ServerVoice(context),
        )
        current.set(ctx)
        try:
            return await task.arguments.call(ctx, task.arguments.decode(context.payload))
        except Control as raised:
            return outcome_of(raised, context)

    return handler


def outcome_of(raised: Control, context: ServerContext) -> Outcome:
    """What a handler of the server role would have returned instead."""
    failed = failure_of(raised)
    match raised:
        case Snooze(after=after) if after is not None:
            return context.snooze(timedelta(seconds=seconds_of(after)))
        case Cancelled(reason=reason):
            return CancelledOutcome(reason)
        case PermanentError():
            return replace(failed, retryable=False)
        case Retry(after=after) if after is not None:
            return Failed(failed.error, after=timedelta(seconds=seconds_of(after)))
        case _:
            return failed


def served_all(tasks: Sequence[AnyTask]) -> Handlers:
    """All of them."""
    handlers = Handlers()
    for task in tasks:
        handlers.add(task.name, served(task))
    return handlers


def new_identity(clock: ManualClock) -> WorkerId:
    """Nobody else's."""
    (identity,) = random_ids(to_ms(clock.now()), 0, entropy(TAIL_BYTES))
    return WorkerId(identity)


class ServerHand:
    """A worker of the server role."""

    def __init__(
        self,
        *,
        database: Database,
        clock: ManualClock,
        identity: WorkerId,
        handlers: Handlers,
        group: Tasks,
        bodies: Bodies,
        large: Large,
        tenant: TenantId | None = None,
        courier: Courier | None = None,
    ) -> None:
        telemetry = Telemetry(clock=clock)
        self.frozen = self.silent = self._dead = False
        self._clock = clock
        self._bodies = bodies
        self.parts = Parts(
            worker=identity,
            database=database,
            handlers=handlers,
            clock=clock,
            chance=Chance(roll=half, entropy=entropy),
            settings=WorkerSettings(
                lease_ttl=LEASE, heartbeat_every=LEASE / 3, slots=PLACES, queues=("*",)
            ),
            telemetry=telemetry,
            group=group,  # type: ignore[arg-type]  # it only begins tasks
            large=large,
            tenant=tenant,
        )
        self._courier = courier
        self._heartbeat = Heartbeat(
            renews=self.parts.holds,
            pulse=self.parts.pulse,
            clock=clock,
            every=LEASE / 3,
            ttl=LEASE,
            hear=self.parts.watch.hear,
        )

    async def work(self) -> None:
        idle = 0
        while idle < ROUNDS and not self._dead:
            leased = await self._claim()
            await self._quiet()
            written = await self.parts.reporter.flush()
            idle = 0 if leased or written else idle + 1

    async def take(self) -> None:
        while await self._claim():
            await self._quiet()

    async def _claim(self) -> int:
        self.parts.lookout.hear(CHANNEL, "")
        return await self.parts.lookout.tick()

    async def report(self) -> None:
        await self._quiet()
        await self.parts.reporter.flush()

    async def beat(self) -> None:
        if self.frozen or self._dead:
            return
        self.parts.pulse.note()
        if not self.silent:
            await self._heartbeat.tick()
            if self._courier is not None:
                await self._courier.tick()
        await self.parts.watch.tick()
        await self._quiet()

    def ring(self) -> None:
        """What is due by the clock."""
        if not self.frozen and not self._dead:
            self.parts.executor.running.tick()

    async def go(self) -> None:
        await self.parts.runner.drain(NO_PATIENCE)

    def kill(self) -> None:
        self._dead = True
        for running in self.parts.executor.running:
            running.task.cancel()
        self.parts.close()

    @contextmanager
    def reply_lost(self) -> Iterator[None]:
        finishing = type(self.parts.reporter._finishing)
        with (
            losing(finishing, "succeeded", "otherwise", "together") as lost,
            patch.object(self._clock, "sleep", new=no_wait),
        ):
            yield
        assert lost, "nothing was reported"

    @property
    def idle(self) -> bool:
        parts = self.parts
        return not len(parts.held) and parts.slots.free == parts.slots.total

    async def _quiet(self) -> None:
        await until_quiet(self._is_busy)

    def _is_busy(self) -> bool:
        if self._dead:
            return False
        running = list(self.parts.executor.running)
        if self.parts.slots.total - self.parts.slots.free > len(self._bodies.resting):
            return True
        return any(
            (one.context.run_id, one.context.fence) not in self._bodies.resting for one in running
        )
