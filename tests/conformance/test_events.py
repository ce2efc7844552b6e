"""What is told: every end once, in the transaction that makes it true."""

from typing import Any

from betimes import Context, Snooze
from conformance.bodies import FIXED, FOR_EVER, ONCE, failing, fails, fine, taking
from conformance.roads import TTL, Can, Road, needs


@needs(Can.EVENTS)
async def test_a_success_is_told_once(road: Road) -> None:
    """Also when the answer to the report got lost."""
    road.task("fine", fine)
    runs = [await road.enqueue("fine"), await road.enqueue("fine", {"a": 1})]
    hand = await road.hire()
    await hand.take()
    with hand.reply_lost():
        await hand.report()
    await hand.work()
    assert [await road.events(run) for run in runs] == [["run.succeeded"], ["run.succeeded"]]


@needs(Can.EVENTS)
async def test_failures_and_their_retries_are_told_once_each(road: Road) -> None:
    """An attempt that failed, that it is tried again, and how it ended at last."""
    road.task("flaky", failing(2))
    road.task("fails", fails)
    mends = await road.enqueue("flaky", retry=FIXED)
    dies = await road.enqueue("fails", retry={**FIXED, "max_attempts": 2})
    hand = await road.hire()
    await hand.take()
    with hand.reply_lost():
        await hand.report()
    for _ in range(2):
        await road.advance(10)
        await hand.work()
    failed, retrying = ["run.failed"], ["run.retrying"]
    assert await road.events(mends) == [*failed * 2, *retrying * 2, "run.succeeded"]
    assert await road.events(dies) == ["run.dead", *failed * 2, *retrying]


@needs(Can.EVENTS)
async def test_a_snooze_is_nobodys_news(road: Road) -> None:
    """Nothing has happened."""

    async def sleepy(_: Context, __: Any) -> Any:
        if len(road.began) == 1:
            raise Snooze(after=10)

    road.task("sleepy", sleepy)
    run = await road.enqueue("sleepy")
    hand = await road.hire()
    await hand.work()
    assert await road.events(run) == []
    await road.advance(10)
    await hand.work()
    assert await road.events(run) == ["run.succeeded"]


@needs(Can.EVENTS, Can.DRAIN)
async def test_what_is_given_back_is_nobodys_news(road: Road) -> None:
    """The same for a worker that goes."""
    road.task("work", taking(road, FOR_EVER))
    run = await road.enqueue("work")
    hand = await road.hire()
    await hand.work()
    await hand.go()
    assert await road.events(run) == []


@needs(Can.EVENTS)
async def test_a_cancel_is_told_once(road: Road) -> None:
    """Whether it had begun or not."""
    road.task("work", taking(road, FOR_EVER))
    waiting = await road.enqueue("work", delay=3600)
    hand = await road.hire()
    running = await road.enqueue("work", retry=FIXED)
    await hand.work()
    for run in (waiting, running):
        assert await road.cancel(run)
    await hand.beat()
    await road.advance(5)
    await hand.work()
    assert await road.events(waiting) == ["run.cancelled"]
    assert await road.events(running) == ["run.cancelled"]


@needs(Can.EVENTS, Can.FREE_HANDS)
async def test_an_expiry_is_told_once(road: Road) -> None:
    """Nobody has begun it, and somebody may have waited for it."""
    road.task("fine", fine)
    run = await road.enqueue("fine", start_deadline=5)
    await road.advance(6)
    hand = await road.hire()
    await hand.work()
    await hand.work()
    assert await road.events(run) == ["run.expired"]


@needs(Can.EVENTS)
async def test_lost_attempts_are_told_and_poison_is_dead_once(road: Road) -> None:
    """That it is tried again, for each worker that was lost; then that it is dead."""
    road.task("poison", taking(road, FOR_EVER))
    run = await road.enqueue("poison", retry={**FIXED, "max_attempts": 2})
    for _ in range(3):
        hand = await road.hire()
        await hand.work()
        hand.kill()
        await road.advance(TTL + 1)
    await (await road.hire()).work()
    told = await road.events(run)
    assert told.count("run.dead") == 1
    assert told.count("run.retrying") == 2
    assert "run.failed" not in told


@needs(Can.EVENTS, Can.LOSE_LEASE)
async def test_the_end_that_was_refused_is_not_told(road: Road) -> None:
    """Of two workers that believed to hold it, one is heard."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(TTL + 5)
            raise ValueError("too late")

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED)
    first = await road.hire()
    await first.work()
    first.frozen = True
    await road.advance(TTL + 1)
    await (await road.hire()).work()
    await road.advance(5)
    await first.report()
    assert await road.events(run) == ["run.retrying", "run.succeeded"]


@needs(Can.EVENTS)
async def test_a_skip_is_told_once(road: Road) -> None:
    """It ended at the door."""
    road.task("work", taking(road, 10))
    key = {"key": "k", "limit": 1, "on_limit": "skip"}
    await road.enqueue("work", concurrency=key, retry=ONCE)
    hand = await road.hire()
    await hand.work()
    run = await road.enqueue("work", concurrency=key, retry=ONCE)
    await hand.work()
    assert await road.events(run) == ["run.skipped"]
