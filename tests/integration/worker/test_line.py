"""Lease, execute, finish: every outcome of an attempt, on a real database."""

from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.testing import ManualClock
from worker_kit import a_worker, enqueue, parcels, read_run, state_of


async def test_runs_are_leased_executed_and_finished(
    database: Database, clock: ManualClock
) -> None:
    """The straight line from a parcel to final rows; the parcel is gone afterwards."""
    runs = await enqueue(database, clock.now(), ["noop", "echo", "noop"], payload=b"hello")
    async with a_worker(database, clock) as bench:
        assert await bench.once() == 3
        assert await bench.once() == 0
    assert [await state_of(database, run) for run in runs] == [RunState.SUCCEEDED] * 3
    assert await parcels(database) == []
    row = await read_run(database, runs[1])
    assert (row["attempt"], row["fence"], row["result"]) == (1, 1, b"hello")
    assert row["started_at"] == row["finished_at"] == row["first_started_at"] == clock.now()
    assert bench.counted("betimes_runs_total", outcome="succeeded") == 3
    assert not len(bench.parts.held)
    assert bench.parts.slots.idle
