"""Runs that the retry budget of their origin has no room for wait until it has grown.

The bound that is tested: in ten minutes a run is leased at most four times without a request. Where
workers count on their own it is at most four times more than it is tried again.
"""

from collections import Counter

from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.testing import ManualClock
from crew_kit import Crew
from target_kit import FakeTarget, a_target
from worker_kit import read_run, rows, state_of

TRY_AGAIN = 408
"""An origin that is well and did not get the request: no breaker opens, and the run is retried."""
EAGER = {"max_attempts": 900, "backoff": "fixed", "initial_ms": 5_000, "jitter": "none"}
LEASES_MAX = 4


async def ten_minutes(crew: Crew) -> None:
    for _ in range(120):
        await crew.step(5)


def tries(target: FakeTarget) -> Counter[str]:
    return Counter(one.headers["betimes-run-id"] for one in target.received)


async def test_runs_without_retry_budget_wait_for_it(
    database: Database, clock: ManualClock
) -> None:
    """More want to be tried again than the budget allows: few leases, and all of the budget."""
    crew = Crew(database, clock)
    async with a_target(status=TRY_AGAIN) as target, crew.worker():
        runs = await crew.ask(target, 200, retry=EAGER)
        await ten_minutes(crew)
        asked = tries(target)
        assert len(asked) == 200, "first tries are never held by it"
        retries = asked.total() - 200
        # One a second, and a burst; those that wait do not let it go to waste.
        assert 500 <= retries <= 630
        assert max(crew.put_back.values()) <= LEASES_MAX, f"{crew.put_back.most_common(5)}"
        # Runs that wait together share a parcel, and the highest fence of them.
        fences = [(await read_run(database, run))["fence"] for run in runs]
        assert max(fences) <= LEASES_MAX + max(asked.values()) + 1
        target.status = 200
        await ten_minutes(crew)
        assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}
    assert await rows(database, "SELECT FROM betimes.parcels") == []


async def test_far_more_retries_than_budget_are_leased_as_rarely(
    database: Database, clock: ManualClock
) -> None:
    """Their time is further away than the longest wait, and two workers count on their own."""
    crew = Crew(database, clock)
    async with a_target(status=TRY_AGAIN) as target, crew.worker(1), crew.worker(2):
        runs = await crew.ask(target, 800, retry=EAGER)
        await ten_minutes(crew)
        asked = tries(target)
        assert len(asked) == 800
        assert asked.total() - 800 >= 1_000
        # One lease for each time that it is tried again, and a few that led to nothing.
        for run, times in asked.items():
            assert crew.put_back[run] <= LEASES_MAX + (times - 1), f"{run} was tried {times} times"
        assert crew.put_back.total() <= LEASES_MAX * 800
        target.status = 200
        await ten_minutes(crew)
        assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}


async def test_first_tries_pass_those_that_wait_for_the_budget(
    database: Database, clock: ManualClock
) -> None:
    """And make it grow: a tenth of them is room for others."""
    crew = Crew(database, clock)
    async with a_target() as target, crew.worker():
        target.status = TRY_AGAIN
        failing = await crew.ask(target, 100, retry=EAGER)
        await crew.step(1)
        target.status = 200
        for _ in range(20):
            fresh = await crew.ask(target, 50)
            await crew.step(5)
            assert {await state_of(database, run) for run in fresh} == {RunState.SUCCEEDED}
        # At one a second it would take nearly as long as this; with a tenth of ten a second, half.
        ends = Counter([await state_of(database, run) for run in failing])
        assert ends == {RunState.SUCCEEDED: 100}
        assert max(crew.put_back.values()) <= 2


async def test_retries_behind_a_breaker_wait_for_the_budget_when_it_closes(
    database: Database, clock: ManualClock
) -> None:
    """All of them have failed before, so all of them are retries."""
    crew = Crew(database, clock)
    async with a_target(status=503) as target, crew.worker():
        runs = await crew.ask(target, 150, retry=EAGER)
        for _ in range(24):
            await crew.step(5)
        before = crew.put_back.copy()
        target.status = 200
        await ten_minutes(crew)
        assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}
        assert max((crew.put_back - before).values()) <= LEASES_MAX
    assert await rows(database, "SELECT FROM betimes.parcels") == []
