"""What this worker's handlers run in, in a process of their own."""

import time
from datetime import datetime, timedelta

from betimes.domain.leased import LeasedParcel, WantedRun
from betimes.domain.outcome import Outcome
from betimes.domain.spec import RunSpec
from betimes.executing.child import Talk, found
from betimes.executing.returned import failure_of, outcome_of
from betimes.worker.context import Context

ENTRY = f"{__name__}:execute"


def execute(
    _: Talk, handler: str, about: tuple[WantedRun, LeasedParcel, RunSpec, datetime]
) -> Outcome:
    """Call the function, and make a value of whatever happens."""
    began = time.perf_counter()
    started_at = about[3]

    def now() -> datetime:
        return started_at + timedelta(seconds=time.perf_counter() - began)

    try:
        return outcome_of(found(handler)(Context(*about, now)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- the attempt has failed, that is all
        return failure_of(error)
