"""What a handler is told about the run it executes."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from betimes.domain.clock import Clock
from betimes.domain.ids import TenantId, to_text
from betimes.domain.leased import LeasedParcel, WantedRun
from betimes.domain.outcome import Snoozed
from betimes.domain.spec import RunSpec
from betimes.domain.trace import traceparent_of

Now = Callable[[], datetime]


class Held(Protocol):
    """What an attempt holds."""

    def is_ours(self, now: float) -> bool:
        """Whether we may believe to hold it at a time of the monotonic clock."""
        ...


class Context:
    """One attempt of one run.

    Made for every run, so it holds what is there already and works the rest out when asked.
    """

    __slots__ = (
        "_clock",
        "_event",
        "_hear",
        "_held",
        "_now",
        "_parcel",
        "_park",
        "_run",
        "_spec",
        "cancelled",
        "companion",
        "lingers",
        "parked",
        "started_at",
    )

    def __init__(
        self, run: WantedRun, parcel: LeasedParcel, spec: RunSpec, started_at: datetime, now: Now
    ) -> None:
        self._run = run
        self._parcel = parcel
        self._spec = spec
        self._now = now
        self._event: asyncio.Event | None = None
        self._hear: Callable[[], None] | None = None
        self._park: Callable[[Context], bool] | None = None
        self._held: Held | None = None
        self._clock: Clock | None = None
        self.started_at = started_at
        self.cancelled = False
        """Whether the attempt should end soon: cancelled, timed out, or its lease is lost."""
        self.companion: Any = None
        """Whatever goes with the attempt, for those around its handler."""
        self.parked = False
        """Whether it waits without a place."""
        self.lingers = False
        """Whether it was given up while a thread was at it: the thread frees its place."""

    @property
    def run_id(self) -> str:
        """The run in its text form."""
        return to_text("run", self._run.id)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of the run: what a receiver needs to tell repeats."""
        return self.run_id

    @property
    def traceparent(self) -> str:
        """The span of this attempt, for whoever it calls."""
        return traceparent_of(self._run.id, self.attempt)

    @property
    def tracestate(self) -> str | None:
        """What belongs to the trace of whoever asked for the run, passed on as it came."""
        return self._spec.options.get("tracestate")

    @property
    def job_id(self) -> str | None:
        """The job that this is an occurrence of, or None for an ad-hoc run."""
        return None if self._run.job is None else to_text("job", self._run.job)

    @property
    def tenant_id(self) -> str:
        """Whose run it is."""
        return str(self._parcel.tenant)

    @property
    def tenant(self) -> TenantId:
        """The same as the worker needs it."""
        return self._parcel.tenant

    @property
    def has_own_payload(self) -> bool:
        """Whether the run itself was given one, whatever its job has."""
        return self._run.payload is not None

    @property
    def run(self) -> WantedRun:
        """The run as it is stored."""
        return self._run

    @property
    def parcel(self) -> LeasedParcel:
        """What it was leased with."""
        return self._parcel

    @property
    def spec(self) -> RunSpec:
        """Its definition."""
        return self._spec

    @property
    def begun_before(self) -> bool:
        """Whether there was an attempt before this one, counted or not."""
        return self._run.attempt > 0 or self._run.first_started_at is not None

    @property
    def queue(self) -> str:
        """The queue it came from."""
        return self._parcel.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._run.attempt + 1

    @property
    def fence(self) -> int:
        """Rises with every lease: a receiver that keeps the highest one can refuse a stale one."""
        return self._parcel.fence

    @property
    def waited_for(self) -> str | None:
        """Why it was put back into the queue the last time, if it was."""
        return self._run.reason

    @property
    def fire_at(self) -> datetime | None:
        """The nominal instant of the occurrence."""
        return self._run.fire_at

    @property
    def due_at(self) -> datetime:
        """When it was to start."""
        return self._run.due_at

    @property
    def deadline(self) -> datetime | None:
        """When the attempt is stopped, by the database clock."""
        return None if self._spec.timeout is None else self.started_at + self._spec.timeout

    @property
    def payload(self) -> bytes | None:
        """What the run was given, or else what its job was."""
        return self._spec.payload if self._run.payload is None else self._run.payload

    @property
    def target(self) -> Mapping[str, Any]:
        """Where to deliver, for handlers that deliver."""
        return self._spec.target

    @property
    def options(self) -> Mapping[str, Any]:
        """The rarer settings of the job or run."""
        return self._spec.options

    def given(self, payload: bytes) -> None:
        """The payload that a reference stands for; called by the worker before the handler."""
        self._run = self._run._replace(payload=payload)

    def held_as(self, held: Held, clock: Clock) -> None:
        """What keeps its lease here; called by the worker."""
        self._held = held
        self._clock = clock

    @property
    def held(self) -> Held | None:
        """What keeps its lease here."""
        return self._held

    def is_held(self) -> bool:
        """Whether the lease can still be ours; asked right before anything is sent or begun."""
        if self._held is None or self._clock is None:
            return True
        return self._held.is_ours(self._clock.monotonic())

    def park(self) -> bool:
        """Give the place back while waiting for somebody else to end the run; False: there is none.

        The lease goes on. Only for who waits without using anything up.
        """
        return self._park is not None and self._park(self)

    def on_park(self, park: "Callable[[Context], bool]") -> None:
        """What to do then; called by the worker."""
        self._park = park

    def now(self) -> datetime:
        """The clock of the database, as far as it is known."""
        return self._now()

    def snooze(self, pause: timedelta) -> Snoozed:
        """Return this from the handler to be called again later without using up an attempt."""
        return Snoozed(until=self._now() + pause)

    async def wait_cancelled(self) -> None:
        """Return when the attempt should end; for handlers that tidy up on their own terms."""
        if not self.cancelled:
            self._event = self._event or asyncio.Event()
            await self._event.wait()

    def cancel(self) -> None:
        """Ask the handler to end; called by the worker."""
        self.cancelled = True
        if self._hear is not None:
            self._hear()
        if self._event is not None:
            self._event.set()

    def on_cancel(self, hear: Callable[[], None]) -> None:
        """Whom to tell then; at once, when it was asked to end already."""
        self._hear = hear
        if self.cancelled:
            hear()

    def portable(self) -> tuple[WantedRun, LeasedParcel, RunSpec, datetime]:
        """What another process needs to make the same context."""
        return self._run, replace(self._parcel, runs=[]), self._spec, self.started_at
