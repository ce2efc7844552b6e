"""Leases: finding work, suspects alone, renewing, losing, and what somebody wants ended."""

import asyncio
from datetime import timedelta

from betimes.domain.ids import ShardId, shard_of
from betimes.domain.leased import Source
from betimes.domain.states import RunState
from betimes.ops.runs import cancel_run
from betimes.store.database import Database
from betimes.testing import ManualClock
from betimes.worker import Context, Handlers
from betimes.worker.heartbeat import Heartbeat
from betimes.worker.hints import CHANNEL
from betimes.worker.lookout import EMPTYING_SECONDS
from ops_kit import make_desk
from worker_kit import (
    MINUTE,
    QUEUE,
    SECOND,
    SHARD,
    TENANT,
    Bench,
    a_worker,
    enqueue,
    parcels,
    read_run,
    reap,
    rows,
    settle_down,
    state_of,
)

TTL = timedelta(seconds=30)


def heartbeat_of(bench: Bench, clock: ManualClock) -> Heartbeat:
    """A heartbeat on the test's own loop."""
    return Heartbeat(
        renews=bench.parts.holds,
        pulse=bench.parts.pulse,
        clock=clock,
        every=timedelta(seconds=5),
        ttl=TTL,
        hear=bench.parts.watch.hear,
    )


async def test_without_any_hint_the_poll_finds_work(database: Database, clock: ManualClock) -> None:
    """NOTIFY is a hint, never truth: at most one poll later."""
    async with a_worker(database, clock) as bench:
        assert await bench.once() == 0
        (run,) = await enqueue(database, clock.now(), ["noop"])
        clock.advance(timedelta(milliseconds=499))
        assert await bench.once() == 0
        clock.advance(timedelta(milliseconds=1))
        assert await bench.once() == 1
    assert await state_of(database, run) is RunState.SUCCEEDED


async def test_a_hint_is_followed_when_its_time_has_come(
    database: Database, clock: ManualClock
) -> None:
    """Told before it is due, leased when it is due, without a poll in between."""
    async with a_worker(database, clock, poll_every=timedelta(hours=1)) as bench:
        assert await bench.once() == 0
        due = clock.now() + 2 * SECOND
        await enqueue(database, due, ["noop"])
        milliseconds = int(due.timestamp() * 1000)
        bench.parts.lookout.hear(CHANNEL, f"{SHARD}:{QUEUE}:{TENANT}:{milliseconds}")
        clock.advance(timedelta(seconds=1.999))
        assert await bench.once() == 0
        clock.advance(timedelta(milliseconds=1))
        assert await bench.once() == 1


async def test_a_place_that_found_no_room_is_the_next_one(
    database: Database, clock: ManualClock
) -> None:
    """Places with plenty must not push those behind them back to the end, claim after claim."""
    order: list[int] = []
    handlers = Handlers()

    async def note(context: Context) -> None:
        order.append(shard_of(context._run.id))

    handlers.add("note", note)
    for shard in (1, 2, 3):
        for _ in range(2):
            await enqueue(database, clock.now(), ["note"] * 2, shard=ShardId(shard))
    async with a_worker(database, clock, handlers=handlers, slots=2) as bench:
        assert await bench.poll_once() == 12
    assert order[::2] == [1, 2, 3, 1, 2, 3]


async def test_only_its_queues_are_served(database: Database, clock: ManualClock) -> None:
    await enqueue(database, clock.now(), ["noop"], queue="other")
    (mine,) = await enqueue(database, clock.now(), ["noop"], queue="mine")
    async with a_worker(database, clock, queues=("mine",)) as bench:
        assert await bench.poll_once() == 1
    assert await state_of(database, mine) is RunState.SUCCEEDED
    assert len(await parcels(database)) == 1


async def test_a_suspect_is_executed_alone(database: Database, clock: ManualClock) -> None:
    """Not while anything else is held, and nothing else while it is held."""
    (first,) = await enqueue(database, clock.now(), ["sleep"])
    (suspect,) = await enqueue(database, clock.now(), ["sleep"], deliveries=2)
    async with a_worker(database, clock) as bench:
        clock.advance(SECOND)
        # The first look finds the suspect while nothing is held: it goes first, alone.
        assert await bench.once() == 1
        assert [one.run.id for one in bench.parts.executor.running] == [suspect]
        clock.advance(timedelta(seconds=0.6))
        bench.parts.lookout.hear(CHANNEL, "")
        assert await bench.once() == 0
        clock.advance(SECOND)
        await settle_down()
        await bench.parts.reporter.flush()
        assert await state_of(database, suspect) is RunState.SUCCEEDED
        clock.advance(EMPTYING_SECONDS)
        assert await bench.poll_once() == 1
        (again,) = await enqueue(database, clock.now(), ["noop"], deliveries=2)
        clock.advance(timedelta(seconds=0.9))
        assert await bench.poll_once() == 0
        assert [one.run.id for one in bench.parts.executor.running] == [first]
        clock.advance(SECOND)
        await settle_down()
        await bench.parts.reporter.flush()
        for _ in range(10):
            clock.advance(SECOND)
            await bench.poll_once()
    assert await state_of(database, again) is RunState.SUCCEEDED


async def test_a_heartbeat_renews_what_is_held(database: Database, clock: ManualClock) -> None:
    await enqueue(database, clock.now(), ["sleep"], payload=b'{"seconds": 120}')
    async with a_worker(database, clock) as bench:
        await bench.once()
        for _ in range(3):
            clock.advance(20)
            bench.parts.pulse.note()
            assert await heartbeat_of(bench, clock).tick()
            assert await reap(database, clock.now()) == 0
            await bench.parts.watch.tick()
        (parcel,) = await parcels(database)
        assert parcel["lease_until"] == clock.now() + TTL
        (running,) = bench.parts.executor.running
        assert running.stop is None


async def test_a_stuck_main_loop_loses_its_leases(database: Database, clock: ManualClock) -> None:
    """A lease means progress: without a sign of life nothing is renewed."""
    await enqueue(database, clock.now(), ["sleep"], payload=b'{"seconds": 300}')
    async with a_worker(database, clock) as bench:
        await bench.once()
        heartbeat = heartbeat_of(bench, clock)
        clock.advance(29)
        assert await heartbeat.tick()
        clock.advance(2)
        assert not await heartbeat.tick()
        clock.advance(MINUTE)
        assert await reap(database, clock.now()) == 1


async def test_work_whose_lease_is_lost_is_stopped_and_not_reported(
    database: Database, clock: ManualClock
) -> None:
    seen: list[bool] = []
    handlers = Handlers()

    async def wait(context: Context) -> None:
        try:
            await clock.sleep(600)
        finally:
            seen.append(context.cancelled)

    handlers.add("wait", wait)
    (run,) = await enqueue(database, clock.now(), ["wait"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        await rows(database, "UPDATE betimes.parcels SET fence = 9 RETURNING id")
        clock.advance(SECOND)
        await heartbeat_of(bench, clock).tick()
        await settle_down()
        assert seen == [True]
        assert not len(bench.parts.held)
        assert bench.parts.reporter.unwritten == 0
        assert bench.counted("betimes_lease_lost_total", kind="parcel") == 1
        assert bench.parts.slots.idle
    assert await state_of(database, run) is RunState.QUEUED


async def test_trust_in_a_lease_ends_without_an_answer(
    database: Database, clock: ManualClock
) -> None:
    """With the database away, work stops before somebody else can have it."""
    await enqueue(database, clock.now(), ["sleep"], payload=b'{"seconds": 600}')
    async with a_worker(database, clock) as bench:
        await bench.once()
        clock.advance(26)
        await bench.parts.watch.tick()
        assert len(bench.parts.executor.running) == 1
        clock.advance(1)
        await bench.parts.watch.tick()
        await settle_down()
        assert len(bench.parts.executor.running) == 0


async def test_a_lease_whose_answer_got_lost_is_given_back(
    database: Database, clock: ManualClock
) -> None:
    """Nobody would work on it while our heartbeat keeps it."""
    await enqueue(database, clock.now(), ["noop"])
    async with a_worker(database, clock) as bench:
        await bench.parts.parcels.lease(
            [Source(SHARD, QUEUE, TENANT)],
            slots=1,
            parcels_max=1,
            suspects=False,
            ttl=TTL,
            now=clock.now(),
        )
        heartbeat = heartbeat_of(bench, clock)
        await heartbeat.tick()
        await bench.parts.watch.tick()
        assert (await parcels(database))[0]["worker_id"] is not None
        await heartbeat.tick()
        await bench.parts.watch.tick()
        (parcel,) = await parcels(database)
        assert (parcel["worker_id"], parcel["deliveries"]) == (None, 0)
        assert await bench.poll_once() == 1


async def test_a_running_run_is_cancelled_within_a_heartbeat(
    database: Database, clock: ManualClock
) -> None:
    """It is told at once and interrupted after a grace."""
    told = asyncio.Event()
    handlers = Handlers()

    async def stubborn(context: Context) -> None:
        await context.wait_cancelled()
        told.set()
        await clock.sleep(600)

    handlers.add("stubborn", stubborn)
    (run,) = await enqueue(database, clock.now(), ["stubborn"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        await rows(database, "UPDATE betimes.runs SET cancel_at = $1 RETURNING id", clock.now())
        assert await bench.parts.watch.tick() == 1
        await settle_down()
        assert told.is_set()
        clock.advance(4)
        assert bench.parts.executor.running.tick() == 0
        clock.advance(1)
        assert bench.parts.executor.running.tick() == 1
        await settle_down()
        await bench.parts.reporter.flush()
    row = await read_run(database, run)
    assert (row["state"], row["reason"], row["attempt"]) == (6, "RUN_CANCELLED", 1)


async def test_a_run_that_is_taken_away_by_force_stays_cancelled(
    database: Database, clock: ManualClock
) -> None:
    """Whatever its worker reports: the fence has risen. The rest of the parcel goes on."""
    go = asyncio.Event()
    handlers = Handlers()

    async def waits(context: Context) -> str:
        await go.wait()
        return "done"

    handlers.add("waits", waits)
    taken, kept = await enqueue(database, clock.now(), ["waits", "waits"])
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        (held,) = await parcels(database)
        assert held["worker_id"] is not None
        desk = make_desk(database, clock)
        view = await cancel_run(desk, TENANT, taken, reason="NOW", force=True)
        assert view.run.fence == held["fence"] + 1
        go.set()
        await settle_down()
        await bench.parts.reporter.flush()
    row, other = await read_run(database, taken), await read_run(database, kept)
    assert (row["state"], row["reason"], row["result"]) == (6, "RUN_CANCELLED", None)
    assert (other["state"], other["result"]) == (4, b'"done"')
    assert await parcels(database) == []


async def test_a_run_that_takes_too_long_times_out(database: Database, clock: ManualClock) -> None:
    options = {"timeout_ms": 2000, "retry": {"max_attempts": 1}}
    (run,) = await enqueue(
        database, clock.now(), ["sleep"], payload=b'{"seconds": 60}', options=options
    )
    async with a_worker(database, clock) as bench:
        await bench.once()
        clock.advance(timedelta(seconds=1.9))
        assert bench.parts.executor.running.tick() == 0
        clock.advance(timedelta(seconds=0.1))
        assert bench.parts.executor.running.tick() == 1
        await settle_down()
        await bench.parts.reporter.flush()
    row = await read_run(database, run)
    assert (row["state"], row["reason"]) == (RunState.DEAD, "RETRIES_EXHAUSTED")
    (attempt,) = await rows(database, "SELECT outcome FROM betimes.attempts")
    assert attempt["outcome"] == 2


async def test_one_that_ignores_its_end_is_reported_all_the_same(
    database: Database, clock: ManualClock
) -> None:
    """After the grace; its place stays taken until it really ends."""
    handlers, end = Handlers(), asyncio.Event()

    async def deaf(_: Context) -> None:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue

    handlers.add("deaf", deaf)
    options = {"timeout_ms": 1000}
    (run,) = await enqueue(database, clock.now(), ["deaf"], options=options)
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        clock.advance(1)
        bench.parts.executor.running.tick()
        await settle_down()
        clock.advance(5)
        bench.parts.executor.running.tick()
        await bench.parts.reporter.flush()
        assert await state_of(database, run) is RunState.RETRY_WAIT
        assert not bench.parts.slots.idle
        end.set()
        await settle_down()
        assert bench.parts.slots.idle
        assert bench.parts.reporter.unwritten == 0


async def test_a_hint_cut_to_the_millisecond_is_not_given_up_too_early(
    database: Database, clock: ManualClock
) -> None:
    async with a_worker(database, clock, poll_every=timedelta(hours=1)) as bench:
        assert await bench.once() == 0
        await enqueue(database, clock.now() + timedelta(microseconds=700), ["noop"])
        milliseconds = int(clock.now().timestamp() * 1000)
        bench.parts.lookout.hear(CHANNEL, f"{SHARD}:{QUEUE}:{TENANT}:{milliseconds}")
        assert await bench.once() == 0
        clock.advance(timedelta(milliseconds=1))
        assert await bench.once() == 1


async def test_a_worker_remembers_its_own_retries(database: Database, clock: ManualClock) -> None:
    """On time, without a poll and without a hint from anybody."""
    (run,) = await enqueue(database, clock.now(), ["snooze"])
    async with a_worker(database, clock, poll_every=timedelta(hours=1)) as bench:
        assert await bench.once() == 1
        clock.advance(SECOND)
        assert await bench.once() == 1
    assert await state_of(database, run) is RunState.SUCCEEDED
