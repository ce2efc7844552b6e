"""The times of one run come from one clock: nothing ends before it began, whatever clocks do."""

from datetime import timedelta

import pytest

from betimes.domain.ids import to_us
from betimes.domain.leased import LeasedParcel, Source, Streak
from betimes.domain.outcome import ErrorFacts, Failed, OutcomeKind, Succeeded
from betimes.domain.states import RunState
from betimes.ops.leases import HeldLease
from betimes.ops.reports import Report, report
from betimes.store.database import Database
from betimes.store.ending import Attempted, Ending
from betimes.store.finish import Finishing, Held
from betimes.store.parcels import Parcels
from betimes.testing import ManualClock
from ops_kit import make_desk
from worker_kit import (
    QUEUE,
    SECOND,
    SHARD,
    TENANT,
    enqueue,
    half,
    read_run,
    rows,
    worker_id,
)

BACK = timedelta(seconds=3)


async def lease(database: Database, clock: ManualClock) -> LeasedParcel:
    leased, _ = await Parcels(database, worker_id()).lease(
        [Source(SHARD, QUEUE, TENANT)], slots=1, parcels_max=1, ttl=30 * SECOND, now=clock.now()
    )
    (one,) = leased
    return one


async def test_a_success_never_ends_before_it_began(database: Database, clock: ManualClock) -> None:
    (run,) = await enqueue(database, clock.now(), ["noop"])
    one, now = await lease(database, clock), clock.now()
    streak = Streak(one.id, one.fence, 1, now, now - BACK, [run])
    held = Held({(one.id, one.fence)}, [one.id])
    assert await Finishing(database, worker_id()).succeeded(SHARD, held, [streak]) == 1
    row = await read_run(database, run)
    assert (row["started_at"], row["finished_at"]) == (now, now)


@pytest.mark.parametrize("state", [RunState.DEAD, RunState.CANCELLED])
async def test_any_other_end_never_lies_before_the_start(
    database: Database, clock: ManualClock, state: RunState
) -> None:
    (run,) = await enqueue(database, clock.now(), ["noop"])
    one, now = await lease(database, clock), clock.now()
    ending = Ending(
        run=run,
        parcel=one.id,
        fence=one.fence,
        tenant=TENANT,
        queue=QUEUE,
        priority=5,
        job=None,
        handler="noop",
        state=state,
        attempt=1,
        started_at=now,
        ended_at=now - BACK,
        attempted=Attempted(OutcomeKind.FAILED, None),
    )
    held = Held({(one.id, one.fence)}, [one.id])
    assert await Finishing(database, worker_id()).otherwise(SHARD, held, [ending]) == {run}
    row = await read_run(database, run)
    assert (row["started_at"], row["finished_at"]) == (now, now)
    (tried,) = await rows(database, "SELECT started_at, finished_at FROM betimes.attempts")
    assert tried["finished_at"] >= tried["started_at"]


@pytest.mark.parametrize("outcome", [Succeeded(None), Failed(ErrorFacts("E", ""))])
async def test_a_worker_that_speaks_http_is_no_different(
    database: Database, clock: ManualClock, outcome: Succeeded | Failed
) -> None:
    """The clock of the database was set back between the lease and the report."""
    (run,) = await enqueue(database, clock.now(), ["noop"], options={"retry": {"max_attempts": 1}})
    one = await lease(database, clock)
    began = clock.now() + BACK
    held = HeldLease(
        run=run,
        parcel=one.id,
        worker=worker_id(),
        fence=one.fence,
        attempt=1,
        started_us=to_us(began),
        plain=False,
        shard=one.shard,
    )
    desk = make_desk(database, clock)
    found = await report(desk, TENANT, [Report(lease=held, outcome=outcome)], roll=half)
    (settled,) = found.settled
    assert settled.state is not None
    row = await read_run(database, run)
    assert row["started_at"] == began
    assert row["finished_at"] >= began
