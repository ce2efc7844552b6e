"""Catching up, as it is asked about and shown."""

from betimes.wire.base import Asked, Instant, Shown
from betimes.wire.jobs import Reason


class QueueShare(Shown):
    """What waits for approval in one queue."""

    queue: str
    runs: int


class JobShare(Shown):
    """What waits for approval of one job."""

    job_id: str
    runs: int
    first_fire_at: Instant
    last_fire_at: Instant


class Catchup(Shown, omit_defaults=True):
    """One time a tenant had to catch up; `held` runs wait for approval."""

    id: str
    state: str
    runs: int
    held: int
    released: int
    dropped: int
    per_second: float
    opened_at: Instant
    found_at: Instant
    first_fire_at: Instant
    last_fire_at: Instant
    drained_at: Instant
    decided_at: Instant | None = None
    decided_by: str | None = None
    reason: str | None = None
    by_queue: list[QueueShare] | None = None
    by_job: list[JobShare] | None = None


class DecideCatchup(Asked):
    """Why."""

    reason: Reason = ""
