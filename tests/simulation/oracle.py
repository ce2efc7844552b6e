"""What ought to happen, by plain arithmetic. Shares no code with the product."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from simulation.plan import JobPlan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def fires_between(
    job: JobPlan, after: datetime, until: datetime, *, began: datetime
) -> Iterator[datetime]:
    """The fires of a job later than `after` and not later than `until`.

    Every kind of recurring job here fires at whole multiples of its period since 1970: the
    intervals are anchored there, and the periods of cron jobs divide a minute.
    """
    if job.kind == "once":
        at = (began + timedelta(seconds=job.every)).replace(microsecond=0)
        if after < at <= until:
            yield at
        return
    period = job.every * SECOND
    at = EPOCH + ((after - EPOCH) // period + 1) * period
    while at <= until:
        yield at
        at += period
