"""What keeps stale workers and wrong clocks from doing harm."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from betimes.config.settings import DatabaseSettings, JanitorSettings
from betimes.domain.leased import LeasedParcel, Source
from betimes.domain.states import RunState
from betimes.janitor.reap import Reaper
from betimes.store.database import Database
from betimes.store.parcels import Parcels
from betimes.store.reap import Reaping
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock
from integration.coordinator.conftest import World
from integration.guards.conftest import KNOCKED_OUT, judged, promise, without
from worker_kit import (
    QUEUE,
    SHARD,
    TENANT,
    a_worker,
    enqueue,
    half,
    parcels,
    run_id,
    settle_down,
    state_of,
    worker_id,
)

TTL = timedelta(seconds=30)
SOURCE = Source(SHARD, QUEUE, TENANT)
FENCE = (
    r"\(\(id, fence\) IN \(SELECT \* FROM "
    r"unnest\((\$\d+::uuid\[\]), (\$\d+::integer\[\])\)\)\) IS TRUE"
)
ANY_FENCE = r"cardinality(\1) = cardinality(\2)"


def reaper(database: Database, clock: ManualClock) -> Reaper:
    return Reaper(
        reaping=Reaping(database, lambda: run_id(clock.now())),
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(),
    )


async def lease(database: Database, clock: ManualClock) -> LeasedParcel:
    leased, _ = await Parcels(database, worker_id()).lease(
        [SOURCE], slots=10, parcels_max=10, suspects=False, ttl=TTL, now=clock.now()
    )
    (one,) = leased
    return one


@pytest.mark.parametrize(
    ("handler", "statement"), [("noop", "lock_parcels"), ("fail", "hold_parcels")]
)
async def test_finishing_needs_the_fence(
    database: Database, clock: ManualClock, guard: str, handler: str, statement: str
) -> None:
    """The same worker under an old and a new lease: its identity is of no help."""
    (run,) = await enqueue(database, clock.now(), [handler])
    async with a_worker(database, clock) as bench:
        await bench.parts.lookout.tick()
        await settle_down()
        (held,) = bench.parts.held
        clock.advance(TTL + timedelta(seconds=1))
        assert await reaper(database, clock).tick() == 1
        again = await lease(database, clock)
        assert (again.id, again.fence) == (held.leased.id, held.leased.fence + 1)
        with judged(guard), without(guard, "finish", statement, FENCE, ANY_FENCE):
            await bench.parts.reporter.flush()
            kept = await state_of(database, run) is RunState.QUEUED
            held_still = [row["fence"] for row in await parcels(database)] == [again.fence]
            promise(kept and held_still, "a stale worker has ended an attempt")


async def test_the_living_are_not_reaped(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await enqueue(database, clock.now(), ["noop"])
    await lease(database, clock)
    due = r"lease_until < coalesce\((\$\d+::timestamptz), statement_timestamp\(\)\)"
    instead = r"(\1 IS NULL OR true)"
    with (
        judged(guard),
        without(guard, "parcels", "find_shards_to_reap", due, instead),
        without(guard, "parcels", "find_expired", due, instead),
    ):
        promise(await reaper(database, clock).tick() == 0, "a good lease was taken away")


async def test_nothing_is_leased_before_it_is_visible(
    database: Database, clock: ManualClock, guard: str
) -> None:
    await enqueue(database, clock.now() + timedelta(seconds=2), ["noop"])
    visible = r"visible_at <= coalesce\((\$\d+::timestamptz), statement_timestamp\(\)\)"
    parcels = Parcels(database, worker_id())
    with (
        judged(guard),
        without(guard, "parcels", "lease_parcels", visible, r"(\1 IS NULL OR true)"),
    ):
        leased, _ = await parcels.lease(
            [SOURCE], slots=10, parcels_max=10, suspects=False, ttl=TTL, now=clock.now()
        )
        promise(not leased, "a run was leased before it was due")


class WrongClock:
    """A node whose wall clock is off; `trusted` is the mistake of telling the database so."""

    def __init__(self, off: timedelta, *, trusted: bool) -> None:
        self._off = off
        self._trusted = trusted

    def now(self) -> datetime:
        return datetime.now(UTC) + self._off  # noqa: TID251 -- the clock under test

    def monotonic(self) -> float:
        return time.monotonic()  # noqa: TID251 -- the clock under test

    def stated(self) -> datetime | None:
        return self.now() if self._trusted else None

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError(f"nobody waits here, asked for {seconds}")


@pytest.fixture(params=[timedelta(hours=1), timedelta(hours=-1)], ids=["ahead", "behind"])
def off(request: pytest.FixtureRequest) -> timedelta:
    way: timedelta = request.param
    return way


@pytest.fixture
async def wrong(dsn: str, off: timedelta, guard: str) -> AsyncIterator[tuple[Database, WrongClock]]:
    clock = WrongClock(off, trusted=guard == KNOCKED_OUT)
    database = await Database.open(DatabaseSettings(), dsn=dsn, clock=clock, roll=half)
    yield database, clock
    await database.close()


async def test_a_wrong_clock_of_a_worker_changes_nothing(
    wrong: tuple[Database, WrongClock], guard: str
) -> None:
    database, clock = wrong
    now = datetime.now(UTC)  # noqa: TID251 -- the database's own
    (due,) = await enqueue(database, now - timedelta(seconds=1), ["noop"])
    (early,) = await enqueue(database, now + timedelta(minutes=10), ["noop"])
    async with a_worker(database, clock) as bench:
        await bench.once()
    with judged(guard):
        promise(await state_of(database, due) is RunState.SUCCEEDED, "what was due did not run")
        promise(await state_of(database, early) is RunState.QUEUED, "a run started early")


async def test_a_wrong_clock_of_a_coordinator_changes_nothing(
    wrong: tuple[Database, WrongClock], guard: str
) -> None:
    database, clock = wrong
    world = World(database, clock, Telemetry(clock=clock))  # type: ignore[arg-type]
    now = datetime.now(UTC)  # noqa: TID251 -- the database's own
    near, far = await world.insert_runs([now - timedelta(seconds=1), now + timedelta(minutes=10)])
    coordinator = await world.coordinator()
    await coordinator.tick()
    rows = await world.fetch("SELECT max(published_through) - now() FROM betimes.shards")
    ahead = rows[0][0]
    assert isinstance(ahead, timedelta)
    with judged(guard):
        published = await world.parcels()
        promise(near in published, "what was due was not published")
        promise(far not in published, "a run was published long before it was due")
        promise(timedelta(0) < ahead < timedelta(seconds=3), "the cursor follows a wrong clock")
