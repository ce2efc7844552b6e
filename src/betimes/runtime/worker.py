"""The worker of an app, put together.

    register   say who we are and what our tasks take
    lease      as many runs as there are free places, two requests at a time
    execute    each in its own task, thread or process; see `executor`
    report     ends, many at once; see `reporter`
    beat       from a thread of its own; see `pulse`
    watch      stop what is cancelled, what was lost, and what we can no longer be sure to hold
    drain      take nothing new, finish, give back the rest, leave

Trust counts from the asking: a lease is believed for nine tenths of its time from the moment it was
asked for, by the monotonic clock. The clock on the wall of this machine decides nothing, so it may
be wrong by minutes.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.clock import Clock
from betimes.domain.errors import Conflict, NotFound, Unavailable
from betimes.executing.beside import run_beside
from betimes.rhythm import Stopping, beat, first_of, full_jitter, within
from betimes.runtime import ending
from betimes.runtime.attempt import Attempt, Stop
from betimes.runtime.courier import Courier
from betimes.runtime.dead import DeadRun, tell_dead
from betimes.runtime.executor import Executor
from betimes.runtime.line import Grant, Line, OpenLine
from betimes.runtime.places import Places
from betimes.runtime.pulse import Condition, Heard, Pulse
from betimes.runtime.reporter import Reporter
from betimes.schedule.duration import read_duration
from betimes.sdk.application import App
from betimes.sdk.options import seconds_of
from betimes.telemetry import Outage, Telemetry
from betimes.wire.workers import (
    DeclaredHandler,
    LeaseRuns,
    NewWorker,
    Registered,
    Reported,
    RunningLease,
)

LEASES_AT_ONCE = 2
"""Requests for work under way at once: one brings runs while the other waits for more."""
RUNS_AT_ONCE = 100
WAIT_SECONDS = 20.0
SENDERS = 2
TRUST = 0.9
BEATS_PER_LEASE = 3
LOOKS_PER_BEAT = 5
RESERVED_SHARE = 0.2
"""Share of the time for draining that is kept for giving back."""
FAREWELL = timedelta(seconds=5)
PAUSE, PAUSE_MAX = timedelta(milliseconds=100), timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker of an app is to work."""

    name: str
    queues: Sequence[str] = ("default",)
    concurrency: int = 10
    processes: int = 2
    grace: timedelta = timedelta(seconds=30)
    host: str = ""
    pid: int = 0
    version: str = ""


class Worker:
    """Leases runs of an app's tasks, executes and reports them, until asked to stop."""

    def __init__(
        self,
        *,
        app: App,
        open_line: OpenLine,
        clock: Clock,
        roll: Callable[[], float],
        options: WorkerOptions,
        telemetry: Telemetry,
    ) -> None:
        self._app = app
        self._open_line = open_line
        self._clock = clock
        self._roll = roll
        self._options = options
        self._telemetry = telemetry
        self._places = Places(options.concurrency)
        self._draining = False
        self._id = ""
        self._ttl = 0.0
        self._server: tuple[datetime, float] | None = None
        self._outage = Outage(duty="worker.lease", telemetry=telemetry)
        self._beats = Outage(duty="worker.heartbeat", telemetry=telemetry)

    async def run(self, stopping: Stopping) -> None:
        """Work until asked to stop; then finish or give back what is held."""
        async with self._open_line() as line:
            self._line = line
            self._stopping = stopping
            every = await self._register()
            async with asyncio.TaskGroup() as group:
                helpers = self._wire(line, group, every)
                try:
                    await self._lease_until(stopping)
                    await self._drain()
                finally:
                    for helper in helpers:
                        helper.cancel()
                    self._executor.close()

    def now(self) -> datetime:
        """The clock of the service, as far as we know it."""
        if self._server is None:
            return self._clock.now()
        told, at = self._server
        return told + timedelta(seconds=self._clock.monotonic() - at)

    async def idle(self) -> None:
        """Return when nothing is held and everything was reported."""
        await self._executor.attempts.empty.wait()

    def _wire(
        self, line: Line, group: asyncio.TaskGroup, every: timedelta
    ) -> list[asyncio.Task[None]]:
        loop = asyncio.get_running_loop()

        def hear(heard: Heard) -> None:
            loop.call_soon_threadsafe(self._hear, heard)

        self._courier = Courier(line=line, clock=self._clock, loop=loop)
        self._reporter = Reporter(
            line=line,
            clock=self._clock,
            roll=self._roll,
            telemetry=self._telemetry,
            told=self._told,
        )
        self._executor = Executor(
            places=self._places,
            courier=self._courier,
            report=self._reporter.put,
            fetch=line.fetch,
            group=group,
            now=self.now,
            monotonic=self._clock.monotonic,
            lost=lambda attempt: self._note_lost(attempt, "start"),
            processes=self._options.processes,
        )
        self._pulse = Pulse(
            open_line=self._open_line,
            clock=self._clock,
            every=every,
            ttl=timedelta(seconds=self._ttl),
            condition=self._condition,
            hear=hear,
        )
        works = [
            ("worker.courier", self._courier.run()),
            ("worker.watch", self._watch(every / LOOKS_PER_BEAT)),
            ("worker.heartbeat", run_beside(self._pulse.live, name="betimes-heartbeat")),
            *(("worker.report", self._reporter.run()) for _ in range(SENDERS)),
        ]
        return [group.create_task(work, name=name) for name, work in works]

    async def _register(self) -> timedelta:
        """Until the service knows us; how often it wants to hear from us."""
        failures = 0
        while True:
            asked_at = self._clock.monotonic()
            try:
                told = await self._line.register(self._card())
            except Unavailable as fault:
                failures += 1
                self._outage.failed(fault)
                pause = full_jitter(failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
                await first_of(
                    self._clock.sleep(pause.total_seconds()), self._stopping.wait_hastened()
                )
                continue
            self._outage.ended()
            return self._registered(told, asked_at)

    def _registered(self, told: Registered, asked_at: float) -> timedelta:
        self._id = told.worker_id
        self._ttl = read_duration(told.lease_duration).elapsed() / 1_000_000
        # In the middle of asking and hearing lies the moment it was told.
        middle = (asked_at + self._clock.monotonic()) / 2
        self._server = (datetime.fromisoformat(told.server_time), middle)
        self._telemetry.event(
            "worker.registered",
            worker=self._id,
            queues=list(self._options.queues),
            tasks=sorted(self._app.tasks),
            concurrency=self._places.total,
        )
        wanted = read_duration(told.heartbeat_interval).elapsed() / 1_000_000
        own = [seconds_of(task.options["lease"]) for task in self._tasks_with_lease()]
        return timedelta(seconds=min([wanted, *(one / BEATS_PER_LEASE for one in own)]))

    def _tasks_with_lease(self) -> list[Any]:
        return [task for task in self._app.tasks.values() if task.options.get("lease") is not None]

    def _card(self) -> NewWorker:
        options = self._options
        return NewWorker(
            name=options.name,
            queues=list(options.queues),
            handlers=[
                DeclaredHandler(name=task.name, schema=task.arguments.schema)
                for task in self._app.tasks.values()
            ],
            slots=self._places.total,
            version=options.version,
            host=options.host,
            pid=options.pid,
            sdk={"name": "betimes-python", "version": options.version},
        )

    async def _lease_until(self, stopping: Stopping) -> None:
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._lease_loop(stopping), name=f"worker.lease {number}")
                for number in range(LEASES_AT_ONCE)
            ]
            await stopping.wait()
            self._draining = True
            # Told at once, so that the service ends the long polls under way: nothing that it has
            # granted gets lost on the way to somebody who has stopped listening.
            await self._pulse.tell(self._line, self._condition())
            await asyncio.wait(loops, timeout=FAREWELL.total_seconds())
            for one in loops:
                one.cancel()

    async def _lease_loop(self, stopping: Stopping) -> None:
        failures = 0
        while not stopping.requested:
            if not self._places.free:
                await first_of(self._places.wait(), stopping.wait())
                continue
            try:
                await self.tick()
            except Unavailable as fault:
                failures += 1
                self._outage.failed(fault)
                pause = full_jitter(failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
                await first_of(self._clock.sleep(pause.total_seconds()), stopping.wait())
            except Conflict:
                stopping.request("told to drain")
            except NotFound:
                await self._register()
            else:
                failures = 0
                self._outage.ended()

    async def tick(self) -> int:
        """Ask for runs once and begin them; how many came."""
        places = self._places.reserve(RUNS_AT_ONCE)
        asked_at = self._clock.monotonic()
        grants: list[Grant] = []
        try:
            grants = await self._line.lease(self._id, self._wish(places))
        finally:
            self._places.release(places - len(grants))
        for grant in grants:
            self._begin(grant, asked_at)
        return len(grants)

    def _wish(self, places: int) -> LeaseRuns:
        """What we ask for.

        A long poll may end at any time, and trust counts from its beginning: so it is short enough
        that what it brings outlives the next heartbeat.
        """
        return LeaseRuns(
            max=places,
            wait=min(WAIT_SECONDS, self._ttl / BEATS_PER_LEASE),
            queues=list(self._options.queues),
            handlers=sorted(self._app.tasks),
        )

    def _begin(self, grant: Grant, asked_at: float) -> None:
        task = self._app.tasks.get(grant.handler or "")
        if task is None or self._draining:
            why = "the worker goes" if task else f"this worker has no task {grant.handler!r}"
            self._places.release(1)
            self._reporter.put(self._executor.hold(grant), ending.released(grant.lease_id, why))
            return
        self._executor.start(grant, task, trusted_until=asked_at + TRUST * self._ttl)

    def _told(self, attempt: Attempt, answer: Reported) -> None:
        """The service has heard how an attempt ended."""
        self._executor.attempts.remove(attempt)
        if answer.code is not None:
            self._note_lost(attempt, "report")
        elif answer.next_state == "dead":
            grant = attempt.grant
            dead = DeadRun(grant.run_id, grant.handler or "", grant.attempt)
            tell_dead(attempt.task, dead, self._telemetry)

    def _condition(self) -> Condition:
        """What we hold; also called by the thread of the heartbeat."""
        leases = [
            RunningLease(lease_id=one.lease, by=self._own_lease(one))
            for one in self._executor.attempts
            if one.stop is not Stop.LOST
        ]
        return Condition(self._id, leases, self._places.free, self._draining)

    def _own_lease(self, attempt: Attempt) -> float | None:
        own = attempt.task.options.get("lease") if attempt.task else None
        return None if own is None else seconds_of(own)

    def _hear(self, heard: Heard) -> None:
        """Learn from a heartbeat, on the main loop."""
        if heard.fault is not None:
            self._beats.failed(heard.fault)
            return
        self._beats.ended()
        if heard.answer is None:
            return
        for kept in heard.answer.extended:
            if (attempt := self._executor.attempts.get(kept.lease_id)) is not None:
                ttl = self._own_lease(attempt) or self._ttl
                until = heard.asked_at + TRUST * ttl
                attempt.trusted_until = max(attempt.trusted_until, until)
        for lease in heard.answer.lost:
            self._lose(self._executor.attempts.get(lease), "heartbeat")
        for command in heard.answer.commands:
            if command.type == "drain":
                self._stopping.request("told to drain")
            elif command.type == "cancel" and command.lease_id is not None:
                attempt = self._executor.attempts.get(command.lease_id)
                if attempt is not None:
                    self._executor.attempts.stop(attempt, Stop.CANCEL)

    def _lose(self, attempt: Attempt | None, found: str) -> None:
        if attempt is None or attempt.ended or attempt.stop is Stop.LOST:
            return
        self._note_lost(attempt, found)
        self._executor.attempts.stop(attempt, Stop.LOST)

    def _note_lost(self, attempt: Attempt, found: str) -> None:
        self._telemetry.event(
            "worker.lease_lost",
            level="warning",
            run=attempt.grant.run_id,
            task=attempt.grant.handler,
            found=found,
        )

    async def _watch(self, every: timedelta) -> None:
        async for _ in beat(self._clock, every=every):
            self.look()

    def look(self) -> None:
        """Leave a sign of life, and stop what we cannot be sure to hold any more."""
        self._pulse.note()
        now = self._clock.monotonic()
        for attempt in self._executor.attempts:
            if attempt.trusted_until <= now:
                self._lose(attempt, "silence")

    async def _drain(self) -> None:
        """Finish what can be finished in time, give back the rest, say goodbye."""
        attempts, grace = self._executor.attempts, self._options.grace
        self._telemetry.event("worker.draining", attempts=len(attempts))
        limit = grace.total_seconds() * (1 - RESERVED_SHARE)
        await first_of(attempts.empty.wait(), self._clock.sleep(limit))
        for attempt in attempts:
            attempts.stop(attempt, Stop.RELEASE)
        try:
            async with within(max(grace * RESERVED_SHARE, FAREWELL), "worker.drain"):
                await attempts.empty.wait()
                await self._line.leave(self._id)
        except (Unavailable, NotFound) as fault:
            # Leases run out by themselves; all that is lost is time.
            self._telemetry.event(
                "worker.undrained", level="warning", error=fault, parcels=len(attempts)
            )
        self._telemetry.event("worker.left", worker=self._id)
