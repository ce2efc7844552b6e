"""Priority and age decide, whatever shard a run happens to live in."""

from datetime import timedelta
from typing import Any

import pytest

from betimes.domain.ids import ShardId
from betimes.domain.parcel import rank_of
from betimes.store.database import Database
from betimes.testing import ManualClock
from integration.worker.test_ceilings import agree
from worker_kit import a_worker, enqueue, rows, settle_down

SHARDS = tuple(map(ShardId, (3, 0, 2, 1)))
RUNS = 12


async def order_of(database: Database) -> list[int]:
    found = await rows(
        database,
        "SELECT options ->> 'place' AS place FROM betimes.runs WHERE state = 4"
        " ORDER BY started_at, id",
    )
    return [int(row["place"]) for row in found]


async def serve(database: Database, clock: ManualClock, **settings: Any) -> list[int]:
    """One after the other, until nothing is left."""
    async with a_worker(database, clock, **settings) as worker:
        for _ in range(20 * RUNS):
            clock.advance(0.3)
            await worker.poll_once()
            await settle_down()
            await worker.parts.reporter.flush()
    return await order_of(database)


@pytest.mark.parametrize("by", ["ceiling", "slots"])
async def test_who_has_waited_longer_goes_first(
    database: Database, clock: ManualClock, by: str
) -> None:
    for place in range(RUNS):
        shard = SHARDS[place % len(SHARDS)]
        due = clock.now() - timedelta(minutes=1) + timedelta(milliseconds=50 * place)
        await enqueue(database, due, ["noop"], shard=shard, options={"place": place})
    if by == "ceiling":
        await agree(database, max_concurrency=1)
    order = await serve(database, clock, slots=1 if by == "slots" else 10)
    # The first claim does not know yet that there is not enough for everybody.
    late = 0 if by == "ceiling" else 1
    assert sorted(order) == list(range(RUNS))
    assert order[late:] == sorted(order[late:])


async def test_a_high_priority_goes_first_in_every_shard(
    database: Database, clock: ManualClock
) -> None:
    """With places for a few at a time: none of low priority before the last of high priority."""
    await agree(database, max_concurrency=3)
    for place in range(RUNS):
        shard, urgent = SHARDS[place % len(SHARDS)], place % 3 == 0
        due = clock.now() - timedelta(seconds=1)
        (run,) = await enqueue(
            database, due, ["noop"], shard=shard, options={"place": 0 if urgent else 1}
        )
        await rows(
            database,
            "UPDATE betimes.parcels SET rank = $1 WHERE $2 = ANY (run_ids)",
            rank_of(due, 9 if urgent else 0),
            run,
        )
    order = await serve(database, clock)
    assert order == sorted(order)
