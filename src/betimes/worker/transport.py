"""The seam: what the runner needs of the service, however it is reached.

    lease     the transport fills free slots with work
    report    it takes ends of attempts, and sends them until they are answered
    renew     it prolongs every lease that is held, from an event loop of its own
    leave     it gives back what is left

Errors mean the same everywhere: `Unavailable` says that nobody knows what happened.
"""

from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol

from betimes.domain.ids import Fence, RunId
from betimes.domain.leased import Renewed, Streak, WantedRun
from betimes.domain.outcome import Outcome
from betimes.rhythm import Stopping
from betimes.worker.held import HeldParcel
from betimes.worker.plan import Plan


class Reports(Protocol):
    """Takes ends of attempts; what becomes of them is decided by `engine.resolve`."""

    unwritten: int
    """Ends that the service has not heard of yet."""

    def succeeded(self, parcel: HeldParcel, streak: Streak) -> None:
        """Take successes without results or consequences."""
        ...

    def attempted(
        self,
        run: WantedRun,
        parcel: HeldParcel,
        plan: Plan,
        outcome: Outcome | None,
        started_at: datetime,
        now: datetime,
    ) -> None:
        """Take any other end of an attempt; without an outcome nobody here could do it."""
        ...

    def refuses(self, run: WantedRun, parcel: HeldParcel, plan: Plan, now: datetime) -> bool:
        """Whether a run is not to be begun at all; its end is taken then."""
        ...

    def lose(self, parcel: HeldParcel, *, found: str) -> None:
        """Stop believing in a lease: nothing of it is reported any more."""
        ...

    async def settle(self) -> None:
        """Return when the service has heard of every end that was taken."""
        ...


class Renewal(NamedTuple):
    """What a heartbeat brought."""

    renewed: list[Renewed]
    """Leases that go on."""
    told: datetime | None = None
    """The time of the service."""
    unwanted: Collection[RunId] = ()
    """Runs under way whose end somebody wants."""


class Renews(Protocol):
    """Prolongs leases; used on the event loop of the heartbeat."""

    async def renew(self, *, ttl: timedelta, now: datetime | None) -> Renewal:
        """Prolong every lease of this worker."""
        ...


class Holds(Protocol):
    """What is asked about parcels that are held, on the main loop."""

    async def unwanted(self, held: Mapping[RunId, Fence]) -> Collection[Any]:
        """Which of these runs, held with these fences, somebody wants ended or has ended."""
        ...

    async def return_strays(self, strays: Sequence[Renewed]) -> None:
        """Give back leases in our name that we do not know of."""
        ...

    async def give_back(self, held: Sequence[HeldParcel]) -> int:
        """Return what is left of parcels, without counting the delivery; how many were ours."""
        ...


class Transport(Protocol):
    """A way to the service."""

    @property
    def reports(self) -> Reports:
        """Where ends of attempts go."""
        ...

    @property
    def holds(self) -> Holds:
        """What is asked about parcels."""
        ...

    def beating(self) -> AbstractAsyncContextManager[Renews]:
        """What renews leases, on the event loop it is called on."""
        ...

    def helpers(self) -> Sequence[tuple[str, Coroutine[Any, Any, None]]]:
        """What runs beside the work until the worker ends."""
        ...

    async def lease_until(self, stopping: Stopping) -> None:
        """Fill slots until asked to stop; returns when nothing is being leased any more."""
        ...

    async def leave(self) -> None:
        """Say goodbye."""
        ...
