"""What every handler may use: made once by `app`, shared by all requests."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from betimes.api.cursor import Cursors
from betimes.api.limits import Admission
from betimes.api.pressure import Pressure
from betimes.api.route import Route
from betimes.api.streams import Streams
from betimes.api.waiters import Waiters
from betimes.config.api import ApiSettings
from betimes.domain.clock import Clock
from betimes.domain.ids import JobId, TenantId
from betimes.domain.job import Job
from betimes.domain.run import NewRun
from betimes.ops.create import NewJob
from betimes.ops.credentials import Credentials
from betimes.ops.dedupe import MadeJob
from betimes.ops.desk import Desk
from betimes.ops.devices import Devices
from betimes.ops.endpoints import Notifying
from betimes.ops.keys import KeyMaker
from betimes.ops.making import Enqueued
from betimes.ops.meter import Meter
from betimes.ops.queues import Gates
from betimes.ops.run_ends import RunEnds
from betimes.ops.schemas import Schemas
from betimes.ops.sessions import Sessions
from betimes.ops.shared_reads import SharedReads
from betimes.ops.strictness import Strictness
from betimes.ops.suspects import Suspects
from betimes.ops.together import Together
from betimes.ops.turns import Turns
from betimes.target.url import UrlPolicy
from betimes.telemetry import Telemetry


@dataclass(slots=True)
class Draining:
    """Whether the node is about to stop."""

    begun: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The desk, and what only requests need."""

    desk: Desk
    clock: Clock
    telemetry: Telemetry
    settings: ApiSettings
    credentials: Credentials
    keys: KeyMaker
    sessions: Sessions
    devices: Devices
    cursors: Cursors
    admission: Admission
    waiters: Waiters
    lease_secret: bytes
    grant_secret: bytes
    version: str
    commit: str | None
    routes: Sequence[Route]
    roll: Callable[[], float]
    jobs: Together[NewJob, MadeJob]
    runs: Together[NewRun, Enqueued]
    job_reads: SharedReads[JobId, Job]
    pressure: Pressure
    notifying: Notifying
    streams: Streams
    ends: RunEnds
    gates: Gates = field(default_factory=Gates)
    strictness: Strictness = field(default_factory=Strictness)
    schemas: Schemas = field(default_factory=Schemas)
    meter: Meter = field(default_factory=Meter)
    shares: Turns = field(default_factory=Turns)
    """Whose turn it is among the queues of those whose workers ask here for work."""
    suspects: Suspects = field(default_factory=Suspects)
    """Which of these workers may have what has cost others their lives."""
    targets: UrlPolicy = field(default_factory=UrlPolicy)
    """What any tenant may call; the settings of a tenant can open more."""
    signing: Callable[[TenantId], Sequence[bytes]] = lambda _: ()
    """What requests of a tenant are signed with."""
    runs_kept: timedelta = timedelta(days=30)
    keys_kept: timedelta = timedelta(days=1)
    """How long tenants may have idempotency keys kept."""
    """`janitor.retain_runs_days` of the settings."""
    draining: Draining = field(default_factory=Draining)

    async def run(self) -> None:
        """Commit groups of creations, note used keys and read for streams, until cancelled."""
        self.waiters.also = self.streams.heard
        async with asyncio.TaskGroup() as group:
            group.create_task(self.jobs.run(), name="api.jobs")
            group.create_task(self.runs.run(), name="api.runs")
            group.create_task(self.credentials.run(), name="api.keys")
            group.create_task(self.pressure.run(), name="api.pressure")
            group.create_task(self.streams.run(lambda: self.draining.begun), name="api.streams")
            group.create_task(self.ends.run(), name="api.ends")

    def now(self) -> datetime:
        """The clock of this node; the database's own decides what is due."""
        return self.clock.now()
