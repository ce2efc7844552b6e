"""Runs behind an open breaker wait for it to close, and are not leased over and over."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

from betimes.domain.states import RunState
from betimes.store.breakers import reset_breaker
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.queries import load
from betimes.target.gate import BreakerState
from betimes.testing import ManualClock
from crew_kit import Crew
from target_kit import a_target
from worker_kit import TENANT, read_run, rows, state_of

BREAKERS = load("breakers")


async def fences(database: Database, runs: list[Any]) -> list[int]:
    return [(await read_run(database, run))["fence"] for run in runs]


async def test_runs_behind_an_open_breaker_wait_for_it(
    database: Database, clock: ManualClock
) -> None:
    """Ten minutes: a probe now and then, and nobody else is touched; then they come in a ramp."""
    crew = Crew(database, clock)
    async with a_target(status=503) as target, a_target() as well, crew.worker() as gates:
        first = await crew.ask(target, 5, together=False)
        await crew.step(1)
        assert [one.gate.state for one in gates._entries.values()] == [BreakerState.OPEN]
        waiting = await crew.ask(target, 50)
        others = []
        probes_before = len(target.received)
        for minute in range(10):
            others += await crew.ask(well, 2)
            for _ in range(12):
                await crew.step(5)
            states = {await state_of(database, run) for run in others}
            assert states == {RunState.SUCCEEDED}, f"after {minute} minutes"
        probes = len(target.received) - probes_before
        # Every half minute once the pauses have grown, and a little more before that.
        assert 15 <= probes <= 30, probes
        attempts = Counter(one.headers["betimes-run-id"] for one in target.received)
        spent = await fences(database, waiting)
        # One for finding the breaker open, one or two for asking again, one for each own probe.
        probed = [attempts[f"{row}"] for row in await ids(database, waiting)]
        pairs = sorted(zip(spent, probed, strict=True))
        assert all(fence <= 4 + 2 * own for fence, own in pairs), f"{pairs}"
        assert sum(spent) <= 50 * 4 + 2 * probes
        target.status = 200
        for _ in range(60):
            await crew.step(2)
        assert {one.gate.state for one in gates._entries.values()} == {BreakerState.CLOSED}
        ends = Counter([await state_of(database, run) for run in [*first, *waiting]])
        assert ends == {RunState.SUCCEEDED: 55}
    assert await rows(database, "SELECT FROM betimes.parcels") == []


async def ids(database: Database, runs: list[Any]) -> list[str]:
    found = await rows(
        database,
        "SELECT betimes.id_text('run', id) AS text FROM unnest($1::uuid[]) WITH ORDINALITY"
        " AS one (id, number) ORDER BY number",
        runs,
    )
    return [row["text"] for row in found]


async def test_a_breaker_closed_by_hand_brings_them_forward(
    database: Database, clock: ManualClock
) -> None:
    crew = Crew(database, clock)
    async with a_target(status=503) as target, crew.worker():
        await crew.ask(target, 5, together=False)
        await crew.step(1)
        await crew.step(1)
        runs = await crew.ask(target, 20)
        await crew.step(0.1)
        origin = target.url("")
        far = await rows(
            database,
            "SELECT visible_at FROM betimes.parcels WHERE origin = $1 ORDER BY visible_at",
            origin,
        )
        waits = [(row["visible_at"] - clock.now()).total_seconds() for row in far]
        assert waits[0] < 10, "one comes to probe"
        assert min(waits[1:]) > 200
        async with database.connection(Lane.ENGINE) as connection:
            await reset_breaker(connection, TENANT, origin, now=clock.now())
        assert await rows(database, "SELECT FROM betimes.parcels WHERE origin IS NOT NULL") == []
        target.status = 200
        for _ in range(20):
            await crew.step(1)
        assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}


async def test_several_workers_make_one_probe(database: Database, clock: ManualClock) -> None:
    crew = Crew(database, clock)
    async with (
        a_target(status=503) as target,
        crew.worker(1),
        crew.worker(2),
        crew.worker(3),
    ):
        for _ in range(3):
            await crew.ask(target, 6, together=False)
            await crew.step(1)
        runs = await crew.ask(target, 30, together=False)
        await crew.step(0.1)
        before = len(target.received)
        for _ in range(60):
            await crew.step(2)
        # Two minutes: one probe for each pause of 2 … 30 seconds, whoever makes it.
        assert len(target.received) - before <= 12
        assert max(await fences(database, runs)) <= 12
        target.status = 200
        for _ in range(40):
            await crew.step(2)
        assert {await state_of(database, run) for run in runs} == {RunState.SUCCEEDED}


async def test_when_the_prober_is_cancelled_another_one_is_called(
    database: Database, clock: ManualClock
) -> None:
    crew = Crew(database, clock)
    async with a_target(status=503) as target, crew.worker():
        await crew.ask(target, 5, together=False)
        await crew.step(1)
        runs = await crew.ask(target, 3, together=False)
        await crew.step(0.1)
        # Whoever would come to probe is gone, by a cancellation or with its worker.
        await rows(
            database,
            "UPDATE betimes.parcels SET visible_at = visible_at + interval '1 hour', origin = NULL"
            " WHERE visible_at <= $1 RETURNING id",
            clock.now() + timedelta(minutes=1),
        )
        before = len(target.received)
        target.status = 200
        for _ in range(20):
            await crew.step(1)
        assert len(target.received) > before
        done = [await state_of(database, run) for run in runs]
        assert RunState.SUCCEEDED in done


async def test_who_has_asked_nothing_yet_closes_no_breaker(
    database: Database, clock: ManualClock
) -> None:
    """A worker that has just begun knew of no trouble, and told everybody so."""
    crew = Crew(database, clock)
    async with a_target(status=503) as target, crew.worker(1):
        await crew.ask(target, 5, together=False)
        await crew.step(1)
        await crew.step(1)
        async with crew.worker(2) as late:
            late._entry((TENANT, target.url("")))
            await late.tick()
            (row,) = await rows(database, "SELECT state FROM betimes.breakers")
            assert row["state"] != BreakerState.CLOSED
            (entry,) = late._entries.values()
            assert entry.gate.state is BreakerState.OPEN


async def put_behind(database: Database, clock: ManualClock, number: int) -> tuple[Any, Any]:
    """A run is put behind the breaker of an origin for five minutes; its origin and its time."""
    now = clock.now()
    (row,) = await rows(
        database,
        "INSERT INTO betimes.parcels (shard, id, tenant_id, queue, rank, visible_at, run_ids)"
        " VALUES (0, $1::uuid, $2, 'q', $3, $3, ARRAY[$1::uuid]) RETURNING id",
        UUID(int=number),
        TENANT,
        now + timedelta(minutes=5),
    )
    await database.many(
        BREAKERS["note_origins"],
        lane=Lane.ENGINE,
        shard=0,
        ids=[row["id"]],
        origins=["http://a"],
        soon=now + timedelta(seconds=2),
    )
    (found,) = await rows(
        database, "SELECT origin, visible_at FROM betimes.parcels WHERE id = $1", row["id"]
    )
    return found["origin"], found["visible_at"] - now


async def test_who_comes_behind_a_breaker_that_was_closed_meanwhile_waits_for_a_moment(
    database: Database, clock: ManualClock
) -> None:
    """Whoever closed it has woken those that waited, and comes back for nobody."""
    await rows(
        database, "INSERT INTO betimes.tenants (id, slug, name) VALUES ($1, 'a', 'A')", TENANT
    )
    assert await put_behind(database, clock, 1) == (None, timedelta(seconds=2))
    for number, state in ((2, 0), (3, 1), (4, 2)):
        await rows(
            database,
            "INSERT INTO betimes.breakers (tenant_id, origin, state, failures, updated_at)"
            " VALUES ($1, 'http://a', $2, 0, $3)"
            " ON CONFLICT (tenant_id, origin) DO UPDATE SET state = excluded.state",
            TENANT,
            state,
            clock.now(),
        )
        waits = ("http://a", timedelta(minutes=5)) if state else (None, timedelta(seconds=2))
        assert await put_behind(database, clock, number) == waits
