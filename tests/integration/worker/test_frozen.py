"""Who wakes after a freeze looks at its lease before it sends or begins anything."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from betimes.domain.states import RunState
from betimes.store.database import Database
from betimes.target.answer import Patience
from betimes.target.delivery import Delivery, Policies
from betimes.target.url import UrlPolicy
from betimes.testing import ManualClock
from betimes.testing.real_clock import RealClock
from betimes.worker import Context, Handlers
from betimes.worker.builtin import builtin_handlers
from betimes.worker.heartbeat import Answer
from target_kit import DEV, FakeTarget, Received, a_client, a_target, answer, some_gates
from worker_kit import (
    MINUTE,
    SECOND,
    Bench,
    a_worker,
    enqueue,
    parcels,
    read_run,
    settle_down,
    state_of,
    worker_id,
)


async def open_to_all(_: UUID) -> UrlPolicy:
    return DEV


@asynccontextmanager
async def delivering(
    database: Database, clock: ManualClock, policies: Policies = open_to_all, number: int = 1
) -> AsyncIterator[Bench]:
    async with a_client() as client:
        delivery = Delivery(
            client=client,
            clock=RealClock(),
            policies=policies,
            patience=Patience(),
            gates=some_gates(),
        )
        handlers = builtin_handlers(clock).also("http", delivery.deliver)
        async with a_worker(database, clock, handlers=handlers, number=number) as bench:
            yield bench


async def a_delivery(
    database: Database, clock: ManualClock, target: FakeTarget, **more: Any
) -> Any:
    options = {"target": {"type": "http", "url": target.url(), **more}}
    (run,) = await enqueue(database, clock.now(), [None], payload=b"{}", options=options)  # type: ignore[list-item]
    return run


async def until_idle(bench: Bench) -> None:
    while len(bench.parts.executor.running):
        tasks = (one.carrier for one in bench.parts.executor.running)
        await asyncio.gather(*(one for one in tasks if isinstance(one, asyncio.Task)))
        await asyncio.sleep(0.001)  # noqa: TID251 -- threads take real time
    await bench.parts.reporter.flush()


async def heard(bench: Bench, clock: ManualClock) -> None:
    """A heartbeat, and what the main loop makes of it."""
    asked_at = clock.monotonic()
    clock.advance(SECOND)
    answer = await bench.parts.holds.renew(ttl=MINUTE / 2, now=clock.now())
    bench.parts.watch.hear(Answer(asked_at, answer))
    await bench.parts.watch.tick()


async def test_nothing_is_sent_after_a_freeze_before_the_request(
    database: Database, clock: ManualClock
) -> None:
    """It is frozen while the delivery is prepared; the lease is over when it goes on."""

    async def freezing(_: UUID) -> UrlPolicy:
        await asyncio.sleep(0)  # noqa: TID251 -- passes the turn, does not wait
        clock.advance(MINUTE)
        return DEV

    async with a_target() as target:
        run = await a_delivery(database, clock, target)
        async with delivering(database, clock, freezing) as bench:
            assert await bench.once() == 1
            await until_idle(bench)
            assert target.received == []
            assert bench.parts.slots.idle
            assert bench.counted("betimes_lease_lost_total", kind="parcel") == 1
            assert await state_of(database, run) is RunState.QUEUED


async def test_nothing_is_sent_after_a_freeze_between_redirects(
    database: Database, clock: ManualClock
) -> None:
    async def behave(request: Received, writer: asyncio.StreamWriter) -> None:
        clock.advance(MINUTE)
        writer.write(answer(307, b"", {"location": "/there"}))

    async with a_target(behave=behave) as target:
        await a_delivery(database, clock, target, follow_redirects=3)
        async with delivering(database, clock) as bench:
            assert await bench.once() == 1
            await until_idle(bench)
        assert [one.path for one in target.received] == ["/"]


async def test_what_is_ours_after_all_is_given_back_and_delivered(
    database: Database, clock: ManualClock
) -> None:
    """Nobody has taken it meanwhile, so the heartbeat renews it; it must not wait there for ever.

    The heartbeat of a thread may be heard before the next look at the leases, and would have made
    the parcel trusted again, without the run that was left out.
    """
    froze = False

    async def freezing(_: UUID) -> UrlPolicy:
        nonlocal froze
        if not froze:
            froze = True
            clock.advance(MINUTE)
        return DEV

    async with a_target() as target:
        run = await a_delivery(database, clock, target)
        async with (
            delivering(database, clock, freezing) as first,
            delivering(database, clock, number=2) as second,
        ):
            await first.once()
            await until_idle(first)
            await heard(first, clock)
            await heard(first, clock)
            (parcel,) = await parcels(database)
            assert parcel["worker_id"] is None
            assert parcel["deliveries"] == 0
            assert await second.poll_once() == 1
            await until_idle(second)
        row = await read_run(database, run)
        assert (row["state"], row["worker_id"]) == (RunState.SUCCEEDED, worker_id(2))
        assert [one.headers["betimes-fence"] for one in target.received] == ["2"]


async def test_a_run_left_out_by_one_task_is_given_back_too(
    database: Database, clock: ManualClock
) -> None:
    """The sibling: several runs carried by one task, frozen between two of them."""
    started: list[int] = []
    handlers = Handlers()

    async def freeze(_: Context) -> None:
        started.append(len(started))
        if len(started) == 1:
            clock.advance(MINUTE)

    handlers.add("freeze", freeze)
    await enqueue(database, clock.now(), ["freeze"] * 3)
    async with a_worker(database, clock, handlers=handlers) as bench:
        await bench.once()
        assert started == [0]
        await heard(bench, clock)
        await heard(bench, clock)
        (parcel,) = await parcels(database)
        assert parcel["worker_id"] is None
        await bench.poll_once()
    assert await parcels(database) == []


async def test_what_waits_for_a_thread_does_not_begin_after_its_lease(
    database: Database, clock: ManualClock
) -> None:
    began: list[str] = []
    go_on = threading.Event()
    handlers = Handlers()

    def block(context: Context) -> None:
        began.append(context.run_id)
        go_on.wait(20)

    handlers.add("block", block)
    await enqueue(database, clock.now(), ["block"])
    await enqueue(database, clock.now(), ["block"])
    async with a_worker(database, clock, handlers=handlers, slots=2, threads=1) as bench:
        assert await bench.poll_once() == 2
        while not began:
            await settle_down()
        clock.advance(MINUTE)
        go_on.set()
        await until_idle(bench)
    assert len(began) == 1
