"""What keeps poison, and what nobody wants any more, from being executed."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.config.settings import JanitorSettings
from betimes.domain.ids import RunId
from betimes.domain.leased import Source
from betimes.domain.states import RunState
from betimes.janitor.reap import Reaper
from betimes.store.database import Database
from betimes.store.parcels import Parcels
from betimes.store.reap import Reaping
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from betimes.worker.claim import Claims
from integration.guards.conftest import KNOCKED_OUT, judged, promise, without
from worker_kit import QUEUE, SHARD, TENANT, a_worker, enqueue, rows, run_id, state_of, worker_id

TTL = timedelta(seconds=30)
DEATHS_MAX = 3
OPTIONS = {"retry": {"max_attempts": DEATHS_MAX}}


async def deaths_of(database: Database, clock: ManualClock, *, workers: int) -> int:
    """So many workers try in turn; how many of them died of what they executed."""
    deaths: list[str] = []
    handlers = Handlers()

    async def poison(context: Context) -> None:
        deaths.append(context.run_id)

    handlers.add("poison", poison)
    for number in range(1, workers + 1):
        before = len(deaths)
        async with a_worker(database, clock, number=number, handlers=handlers) as bench:
            await bench.parts.lookout.tick()
            await bench.parts.lookout.tick()
        if len(deaths) == before:
            async with a_worker(database, clock, number=90 + number, handlers=handlers) as bench:
                clock.advance(TTL + timedelta(seconds=1))
                await bench.once()
        clock.advance(TTL + timedelta(seconds=1))
        await Reaper(
            reaping=Reaping(database, lambda: run_id(clock.now())),
            clock=clock,
            telemetry=Telemetry(clock=clock),
            settings=JanitorSettings(),
        ).tick()
    return len(deaths)


async def test_deliveries_that_were_lost_are_charged(
    database: Database, clock: ManualClock, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue(database, clock.now(), ["poison"], options=OPTIONS)
    if guard == KNOCKED_OUT:
        monkeypatch.setattr(Claims, "_charged", lambda _, work: list(work))
    with judged(guard):
        deaths = await deaths_of(database, clock, workers=DEATHS_MAX + 2)
        promise(deaths <= DEATHS_MAX, f"poison has killed {deaths} workers")


async def test_a_delivery_counts_from_its_lease_on(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await enqueue(database, clock.now(), ["poison"], options=OPTIONS)
    counted = r"deliveries = parcels\.deliveries \+ 1"
    instead = "deliveries = parcels.deliveries"
    with judged(guard), without(guard, "parcels", "lease_parcels", counted, instead):
        deaths = await deaths_of(database, clock, workers=DEATHS_MAX + 2)
        promise(deaths <= DEATHS_MAX, f"poison has killed {deaths} workers")


async def test_a_suspect_is_never_leased_together_with_others(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await enqueue(database, clock.now(), ["noop"])
    (suspect,) = await enqueue(database, clock.now(), ["noop"], deliveries=2)
    pattern = r"\(deliveries >= (\$\d+::integer)\) = (\$\d+::boolean)"
    instead = r"(\1 > 0 OR \2)"
    with judged(guard), without(guard, "parcels", "lease_parcels", pattern, instead):
        leased, _ = await Parcels(database, worker_id()).lease(
            [Source(SHARD, QUEUE, TENANT)],
            slots=10,
            parcels_max=10,
            suspects=False,
            ttl=TTL,
            now=clock.now(),
        )
        together = [run for parcel in leased for run in parcel.runs]
        promise(suspect not in together, "a suspect would take its neighbours with it")


async def test_what_was_cancelled_is_not_executed(
    database: Database, clock: ManualClock, guard: str
) -> None:
    (run,) = await enqueue(database, clock.now(), ["noop"])
    await end(database, run)
    begun: list[str] = []
    handlers = Handlers()

    async def noop(context: Context) -> None:
        begun.append(context.run_id)

    handlers.add("noop", noop)
    with judged(guard), without(guard, "parcels", "read_wanted_runs", r"state < 4", "true"):
        async with a_worker(database, clock, handlers=handlers) as bench:
            await bench.once()
        promise(not begun, "a cancelled run was executed")
    assert await state_of(database, run) is RunState.CANCELLED


async def test_what_is_over_stays_over(database: Database, clock: ManualClock, guard: str) -> None:
    """Cancelled while it ran: its success comes too late."""
    (run,) = await enqueue(database, clock.now(), ["noop"])
    pattern = r"runs\.state < 4"
    with judged(guard), without(guard, "finish", "finish_succeeded", pattern, "true"):
        async with a_worker(database, clock) as bench:
            await bench.parts.lookout.tick()
            await end(database, run)
            await bench.once()
        over = await state_of(database, run) is RunState.CANCELLED
        promise(over, "a run has left its final state")


async def end(database: Database, run: RunId) -> Any:
    return await rows(
        database, "UPDATE betimes.runs SET state = 6, finished_at = now() WHERE id = $1", run
    )
