"""What every handler may use: made once by `app`, shared by all requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from betimes.api.cursor import Cursors
from betimes.api.limits import Admission
from betimes.api.route import Route
from betimes.api.waiters import Waiters
from betimes.config.settings import ApiSettings
from betimes.domain.clock import Clock
from betimes.ops.credentials import Credentials
from betimes.ops.desk import Desk
from betimes.ops.keys import KeyMaker
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
    cursors: Cursors
    admission: Admission
    waiters: Waiters
    lease_secret: bytes
    version: str
    routes: Sequence[Route]
    roll: Callable[[], float]
    draining: Draining = field(default_factory=Draining)

    def now(self) -> datetime:
        """The clock of this node; the database's own decides what is due."""
        return self.clock.now()
