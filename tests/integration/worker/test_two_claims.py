"""Two claims at once share the places and the knowledge of where work waits."""

import asyncio
from datetime import timedelta

from betimes.domain.ids import ShardId
from betimes.store.database import Database
from betimes.testing import ManualClock
from worker_kit import Bench, a_worker, enqueue, settle_down

SHARDS = 4
RUNS_EACH = 10
SLOTS = 2


async def claim_in_pairs(worker: Bench, clock: ManualClock) -> int:
    """Two claims at a time until both find nothing."""
    total = 0
    while leased := sum(
        await asyncio.gather(worker.parts.lookout.tick(), worker.parts.lookout.tick())
    ):
        total += leased
        await settle_down()
        await worker.parts.reporter.flush()
        clock.advance(0.001)
    return total


async def test_a_claim_that_was_overtaken_forgets_no_work(
    database: Database, clock: ManualClock
) -> None:
    """Who asks for ranks first and reserves afterwards may have no place left, and finds nothing.

    Everything is leased after a single poll: no source counts as empty because nobody had room.
    """
    due = clock.now() - timedelta(seconds=1)
    for shard in range(SHARDS):
        await enqueue(database, due, ["noop"] * RUNS_EACH, shard=ShardId(shard))
    async with a_worker(database, clock, slots=SLOTS, poll_every=timedelta(minutes=1)) as worker:
        await worker.parts.lookout.tick()  # learns the time and that there is not enough room
        await settle_down()
        await worker.parts.reporter.flush()
        clock.advance(0.001)
        leased = SLOTS + await claim_in_pairs(worker, clock)
        assert leased == SHARDS * RUNS_EACH
        assert worker.parts.slots.idle
