"""The transport of a worker that speaks HTTP: parcels by long polls, ends in batches.

Trust counts from the asking: a lease is believed for nine tenths of its time from the moment it was
asked for, by the monotonic clock. The clock on the wall of this machine decides nothing, so it may
be wrong by minutes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from betimes.domain.errors import Conflict, NotFound, Unavailable
from betimes.domain.ids import Fence, ParcelId, RunId
from betimes.domain.leased import Renewed
from betimes.rhythm import Stopping, first_of, full_jitter
from betimes.runtime.dead import DeadRun
from betimes.runtime.grants import Plans, held_of, work_of
from betimes.runtime.line import Grants, Line, OpenLine
from betimes.runtime.reporter import HttpParcel, HttpReporter
from betimes.telemetry import Outage, Telemetry
from betimes.wire import parcels as shapes
from betimes.wire import workers as wire
from betimes.worker.execute import Executor
from betimes.worker.held import HeldParcel, trust_seconds
from betimes.worker.plan import Planning
from betimes.worker.runner import Resources
from betimes.worker.running import Runnings
from betimes.worker.transport import Renewal

LEASES_AT_ONCE = 2
"""Requests for work under way at once: one brings parcels while the other waits for more."""
WAIT_SECONDS = 20.0
SENDERS = 2
UNWRITTEN_MAX = 8 * wire.PARCEL_RUNS_MAX
"""With so many ends waiting to be told, no more work is taken on."""
LINGER_SECONDS = 0.005
"""How long to wait for more free slots before asking for a few."""
POLLS_PER_LEASE = 3
PARCELS_AT_ONCE = 1_000
"""Most parcels that one heartbeat names."""
FAREWELL_SECONDS = 5.0
PAUSE, PAUSE_MAX = timedelta(milliseconds=100), timedelta(seconds=5)


@dataclass(slots=True, kw_only=True)
class Enlisted:
    """What the service has told a worker that registered."""

    worker: str
    lease_ttl: timedelta


class HttpTransport:
    """Leases, reports and renews over a line."""

    def __init__(
        self,
        *,
        resources: Resources,
        line: Line,
        open_line: OpenLine,
        register: Callable[[], Coroutine[Any, Any, Enlisted]],
        enlisted: Enlisted,
        planning: Planning,
        queues: Sequence[str],
        tasks: Sequence[str],
        roll: Callable[[], float],
        telemetry: Telemetry,
        stopping: Stopping,
        died: Callable[[DeadRun], None],
    ) -> None:
        self._resources = resources
        self._clock = resources.clock
        self._line = line
        self._open_line = open_line
        self._register = register
        self._enlisted = enlisted
        self._plans = Plans(planning)
        self._queues = list(queues)
        self._tasks = list(tasks)
        self._roll = roll
        self._telemetry = telemetry
        self._stopping = stopping
        self._outage = Outage(duty="worker.lease", telemetry=telemetry)
        self._leased_at = float("-inf")
        self._draining = False
        self._enlisting = asyncio.Lock()
        self.executor: Executor | None = None
        """Who executes what is leased; told when it is there."""
        self.reports = HttpReporter(
            line=line,
            held=resources.held,
            clock=self._clock,
            roll=roll,
            telemetry=telemetry,
            died=died,
        )

    @property
    def holds(self) -> "HttpTransport":
        """What is asked about parcels is asked here."""
        return self

    def helpers(self) -> list[tuple[str, Coroutine[Any, Any, None]]]:
        """What runs beside the work until the worker ends."""
        return [("worker.report", self.reports.run()) for _ in range(SENDERS)]

    # --- leasing

    async def lease_until(self, stopping: Stopping) -> None:
        """Ask for work until asked to stop."""
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._lease_loop(stopping), name=f"worker.lease {number}")
                for number in range(LEASES_AT_ONCE)
            ]
            await stopping.wait()
            self._draining = True
            # Told at once, so that the service ends the long polls under way: nothing that it has
            # granted gets lost on the way to somebody who has stopped listening.
            try:
                await self._line.beat(self._enlisted.worker, self._sign_of_life([]))
            except (Unavailable, NotFound) as fault:
                self._outage.failed(fault)
            await asyncio.wait(loops, timeout=FAREWELL_SECONDS)
            for loop in loops:
                loop.cancel()

    async def _lease_loop(self, stopping: Stopping) -> None:
        failures = 0
        while not stopping.requested:
            self._resources.nudge.clear()
            pause = self._pause()
            if pause is not None:
                await first_of(
                    self._resources.nudge.wait(), stopping.wait(), self._clock.sleep(pause)
                )
                continue
            known_as = self._enlisted
            try:
                await self.tick()
            except Unavailable as fault:
                failures += 1
                self._outage.failed(fault)
                wait = full_jitter(failures, first=PAUSE, most=PAUSE_MAX, roll=self._roll())
                await first_of(self._clock.sleep(wait.total_seconds()), stopping.wait())
            except Conflict:
                stopping.request("told to drain")
            except NotFound:
                await self._enlist_again(known_as)
            else:
                failures = 0
                self._outage.ended()

    async def _enlist_again(self, known_as: Enlisted) -> None:
        """The service has forgotten us; of several requests that find out, the first registers."""
        async with self._enlisting:
            if self._enlisted is known_as:
                self._enlisted = await self._register()

    def _pause(self) -> float | None:
        """How long there is nothing to ask for; None when there is."""
        slots = self._resources.slots
        if not slots.free or self.reports.unwritten >= UNWRITTEN_MAX:
            return 1.0
        patient = self._clock.monotonic() - self._leased_at >= LINGER_SECONDS
        # A whole pause each time: what is left of one may be too short for the clock to move.
        return None if slots.free >= slots.enough or patient else LINGER_SECONDS

    async def tick(self, wait: float = WAIT_SECONDS) -> int:
        """Ask for parcels once and begin their runs; how many came."""
        slots = self._resources.slots
        places = slots.reserve(wire.PARCEL_RUNS_MAX)
        asked_at = self._clock.monotonic()
        runs = 0
        try:
            answer = await self._line.lease(self._enlisted.worker, self._wish(places, wait))
            runs = sum(len(parcel.runs) for parcel in answer.parcels)
        finally:
            slots.give_back(places - runs)
        self._leased_at = self._clock.monotonic()
        if runs:
            await self._begin(answer, asked_at, runs)
        return runs

    def _wish(self, places: int, wait: float) -> shapes.LeaseParcels:
        """What we ask for.

        A long poll may end at any time, and trust counts from its beginning: so it is short enough
        that what it brings outlives the next heartbeat.
        """
        ttl = self._enlisted.lease_ttl.total_seconds()
        return shapes.LeaseParcels(
            max=places,
            wait=min(wait, ttl / POLLS_PER_LEASE),
            queues=self._queues,
            handlers=self._tasks,
        )

    async def _begin(self, answer: Grants, asked_at: float, runs: int) -> None:
        resources = self._resources
        resources.time.observe(answer.server_time, asked_at=asked_at)
        until = asked_at + trust_seconds(self._enlisted.lease_ttl)
        now = self._clock.monotonic()
        plans = [self._plans.of(definition) for definition in answer.definitions]
        parcels = [held_of(one, since=now, trusted_until=until) for one in answer.parcels]
        if self._draining or self.executor is None or now >= until:
            # Nobody begins what may be somebody else's by now, or what nobody stays for.
            resources.slots.give_back(runs)
            if now < until:
                await self.give_back(parcels)
            else:
                self._telemetry.event("worker.lease_lost", level="warning", found="claim")
            return
        for parcel in parcels:
            resources.held.add(parcel)
        self.executor.start(work_of(answer.parcels, parcels, plans))

    # --- what is asked about parcels

    async def unwanted(self, _: Mapping[RunId, Fence]) -> Collection[RunId]:
        """Heartbeats tell it."""
        return ()

    async def return_strays(self, _: Sequence[Renewed]) -> None:
        """A lease whose grant got lost is named by no heartbeat, and lapses."""

    async def give_back(self, held: Sequence[HeldParcel]) -> int:
        """Return what is left of parcels, without counting the delivery."""
        return await self.reports.give_back(held)

    async def leave(self) -> None:
        """Say goodbye; if the service does not listen, it forgets us later."""
        try:
            await self._line.leave(self._enlisted.worker)
        except (Unavailable, NotFound) as fault:
            self._outage.failed(fault)
        self._telemetry.event("worker.left", worker=self._enlisted.worker)

    # --- signs of life

    @asynccontextmanager
    async def beating(self) -> "AsyncIterator[HttpRenews]":
        """What renews leases, on a line of its own."""
        async with self._open_line() as line:
            yield HttpRenews(self, line)

    async def renew(self, line: Line, *, ttl: timedelta) -> Renewal:
        """Name every parcel that is held; called on the loop of the heartbeat."""
        found = Renewal([])
        held = [parcel for parcel in self._resources.held if isinstance(parcel, HttpParcel)]
        for start in range(0, max(1, len(held)), PARCELS_AT_ONCE):
            some = held[start : start + PARCELS_AT_ONCE]
            told = self._sign_of_life(some, by=ttl)
            try:
                answer = await line.beat(self._enlisted.worker, told)
            except NotFound as fault:
                # The next wish for work registers us again.
                raise Unavailable(str(fault)) from fault
            found = self._heard(found, some, answer)
        return found

    def _sign_of_life(
        self, held: Sequence[HttpParcel], by: timedelta | None = None
    ) -> wire.Heartbeat:
        under_way: dict[ParcelId, list[RunId]] = {}
        for running in self._running():
            under_way.setdefault(running.parcel.leased.id, []).append(running.run.id)
        longer = None if by is None or by == self._enlisted.lease_ttl else by.total_seconds()
        return wire.Heartbeat(
            parcels=[
                wire.RunningParcel(
                    lease_id=parcel.token,
                    by=longer,
                    runs=under_way.get(parcel.leased.id, []),  # type: ignore[arg-type]  # UUIDs
                )
                for parcel in held
            ],
            busy=self._resources.busy,
            free_slots=self._resources.slots.free,
            state="draining" if self._draining else "ok",
        )

    def _running(self) -> "Runnings | tuple[()]":
        return () if self.executor is None else self.executor.running

    def _heard(
        self, before: Renewal, held: Sequence[HttpParcel], answer: wire.HeartbeatAnswer
    ) -> Renewal:
        by_token = {parcel.token: parcel.leased for parcel in held}
        renewed = [
            Renewed(leased.shard, leased.id, leased.fence)
            for kept in answer.extended
            if (leased := by_token.get(kept.lease_id)) is not None
        ]
        unwanted = [RunId(one.run) for one in answer.commands if one.run is not None]
        if any(one.type == "drain" for one in answer.commands) and not self._draining:
            self._told_to_drain()
        return Renewal(
            [*before.renewed, *renewed],
            datetime.fromisoformat(answer.server_time),
            [*before.unwanted, *unwanted],
        )

    def _told_to_drain(self) -> None:
        self._main.call_soon_threadsafe(self._stopping.request, "told to drain")

    def bind(self, executor: Executor, loop: asyncio.AbstractEventLoop) -> None:
        """Who executes what is leased, and on which loop."""
        self.executor = executor
        self._main = loop


@dataclass(frozen=True, slots=True)
class HttpRenews:
    """Renews leases on the loop of the heartbeat."""

    transport: HttpTransport
    line: Line

    async def renew(self, *, ttl: timedelta, now: datetime | None) -> Renewal:  # noqa: ARG002 -- the service has its own clock
        """Prolong every lease of this worker."""
        return await self.transport.renew(self.line, ttl=ttl)
