"""What a dead worker held comes back, in pieces, with what it has cost."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from uuid import UUID

from betimes.config.settings import JanitorSettings
from betimes.domain import ids
from betimes.domain.ids import RunId, ShardId
from betimes.domain.outcome import OutcomeKind
from betimes.domain.parcel import Waiting, pack
from betimes.janitor.reap import Reaper
from betimes.store.database import Database
from betimes.store.pool import Lane
from betimes.store.publish import insert_parcels
from betimes.store.queries import load
from betimes.store.reap import Reaping
from betimes.telemetry import Telemetry
from betimes.testing import ManualClock

SHARD = ShardId(1)
TENANT = ids.TenantId(UUID("00000000-0000-8000-8000-000000000001"))
WORKER, OTHER = UUID(int=77), UUID(int=78)
TTL = timedelta(seconds=30)
LEASE = load("parcels")["lease_parcels"]
numbers = count(1)


def reaper(database: Database, clock: ManualClock) -> Reaper:
    return Reaper(
        reaping=Reaping(database, lambda: ids.compose(9, 1, next(numbers))),
        clock=clock,
        telemetry=Telemetry(clock=clock),
        settings=JanitorSettings(),
    )


async def queue(database: Database, clock: ManualClock, size: int) -> list[RunId]:
    runs = [RunId(ids.compose(ids.to_ms(clock.now()), SHARD, next(numbers))) for _ in range(size)]
    waiting = [Waiting(run, TENANT, clock.now(), 5, "q") for run in runs]
    async with database.connection(Lane.ENGINE) as connection:
        await connection.executemany(
            "INSERT INTO betimes.runs (shard, id, tenant_id, due_at, queue, state) "
            "VALUES ($1, $2, $3, $4, 'q', 1)",
            [(SHARD, run, TENANT, clock.now()) for run in runs],
        )
        await insert_parcels(connection, SHARD, pack(SHARD, waiting))
    return runs


async def lease(
    database: Database, clock: ManualClock, *, worker: UUID = WORKER, suspects: bool = False
) -> Sequence[dict[str, object]]:
    rows = await database.many(
        LEASE,
        lane=Lane.ENGINE,
        shard=SHARD,
        queue="q",
        tenant=TENANT,
        fair=0,
        worker=worker,
        ttl=TTL,
        slots=1000,
        before=None,
        parcels_max=100,
        suspect_after=2,
        suspects=suspects,
        now=clock.now(),
        handlers=None,
    )
    return [dict(row) for row in rows]


async def test_a_lease_that_holds_is_left_alone(database: Database, clock: ManualClock) -> None:
    await queue(database, clock, 3)
    await lease(database, clock)
    clock.advance(TTL)
    assert await reaper(database, clock).tick() == 0


async def test_an_abandoned_parcel_comes_back_in_pieces_with_its_cost(
    database: Database, clock: ManualClock
) -> None:
    runs = await queue(database, clock, 64)
    await lease(database, clock)
    clock.advance(TTL + timedelta(seconds=1))

    assert await reaper(database, clock).tick() == 1

    pieces = await lease(database, clock, worker=OTHER)
    assert len(pieces) == 16
    assert sorted(run for piece in pieces for run in piece["run_ids"]) == sorted(runs)  # type: ignore[attr-defined]
    assert {piece["fence"] for piece in pieces} == {2}
    assert {piece["deliveries"] for piece in pieces} == {2}
    async with database.connection(Lane.ENGINE) as connection:
        lost = await connection.fetch("SELECT number, outcome, worker_id FROM betimes.attempts")
    assert {(row["number"], row["outcome"], row["worker_id"]) for row in lost} == {
        (1, OutcomeKind.ABANDONED, WORKER)
    }
    assert len(lost) == 64
    async with database.connection(Lane.ENGINE) as connection:
        told = await connection.fetch(
            "SELECT type, subject, body ->> 'attempt' AS attempt, body ->> 'runs' AS runs"
            " FROM betimes.outbox"
        )
    again = {(row["subject"], row["attempt"]) for row in told if row["type"] == "run.retrying"}
    assert again == {(ids.to_text("run", run), "1") for run in runs}
    losses = [(row["subject"], row["runs"]) for row in told if row["type"] == "worker.lease_lost"]
    assert losses == [(ids.to_text("wrk", WORKER), "64")]


async def test_after_two_vain_deliveries_a_run_is_a_suspect_and_alone(
    database: Database, clock: ManualClock
) -> None:
    await queue(database, clock, 256)
    for _ in range(2):
        assert await lease(database, clock)
        clock.advance(TTL + timedelta(seconds=1))
        await reaper(database, clock).tick()
    assert await lease(database, clock) == []
    suspects = await lease(database, clock, suspects=True)
    assert {len(one["run_ids"]) for one in suspects} == {1}  # type: ignore[arg-type]
    assert {one["deliveries"] for one in suspects} == {3}


async def test_what_was_finished_before_the_end_is_not_handed_out_again(
    database: Database, clock: ManualClock
) -> None:
    runs = await queue(database, clock, 4)
    await lease(database, clock)
    async with database.connection(Lane.ENGINE) as connection:
        await connection.execute(
            "UPDATE betimes.runs SET state = 4, finished_at = now() WHERE id = ANY ($1)", runs[:3]
        )
    clock.advance(TTL + timedelta(seconds=1))
    await reaper(database, clock).tick()
    pieces = await lease(database, clock)
    assert [run for piece in pieces for run in piece["run_ids"]] == runs[3:]  # type: ignore[attr-defined]


async def test_two_reapers_do_not_double(database: Database, clock: ManualClock) -> None:
    runs = await queue(database, clock, 20)
    await lease(database, clock)
    clock.advance(TTL + timedelta(seconds=1))
    first, second = reaper(database, clock), reaper(database, clock)
    await first.tick()
    await second.tick()
    pieces = await lease(database, clock)
    handed = [run for piece in pieces for run in piece["run_ids"]]  # type: ignore[attr-defined]
    assert sorted(handed) == sorted(runs)
