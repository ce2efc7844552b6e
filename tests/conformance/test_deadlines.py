"""Time that may pass: until the first start, and within one attempt."""

import asyncio
from typing import Any

from betimes import Context
from conformance.bodies import FIXED, FOR_EVER, ONCE, failing, fine, numbers, taking
from conformance.roads import TTL, Can, Road, needs


@needs(Can.FREE_HANDS)
async def test_what_would_begin_too_late_is_expired(road: Road) -> None:
    """Past its start deadline nobody calls it, however soon somebody comes after that."""
    road.task("fine", fine)
    late = await road.enqueue("fine", start_deadline=5)
    later = await road.enqueue("fine", start_deadline=30)
    await road.advance(6)
    hand = await road.hire()
    await hand.work()
    seen = await road.look(late)
    assert (seen.state, seen.attempt, seen.reason) == ("expired", 0, "START_DEADLINE_PASSED")
    assert [one.run for one in road.began] == [later]
    assert (await road.look(later)).state == "succeeded"
    assert await road.letters() == []
    assert await road.at_rest()


async def test_who_waits_at_a_door_for_too_long_is_expired(road: Road) -> None:
    """The deadline counts wherever a run waits for its first start."""
    key = {"key": "k", "limit": 1}
    road.task("work", taking(road, 10))
    first = await road.enqueue("work", concurrency=key)
    hand = await road.hire()
    await hand.work()
    second = await road.enqueue("work", concurrency=key, start_deadline=5)
    await hand.work()
    await road.advance(10)
    await hand.work()
    await road.advance(1)
    await hand.work()
    assert (await road.look(first)).state == "succeeded"
    seen = await road.look(second)
    assert (seen.state, seen.attempt, seen.reason) == ("expired", 0, "START_DEADLINE_PASSED")
    assert await numbers(road) == [1]


async def test_a_retry_has_no_start_deadline(road: Road) -> None:
    """It has begun in time; when it is tried again is the policy's business."""
    road.task("flaky", failing(1))
    run = await road.enqueue("flaky", retry=FIXED, start_deadline=5)
    hand = await road.hire()
    await hand.work()
    await road.advance(10)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt) == ("succeeded", 2)


async def test_who_began_in_time_and_lost_its_worker_is_begun_again(road: Road) -> None:
    """The start that counts is the first one, also when nothing came of it."""

    async def work(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(FOR_EVER)
        return ctx.attempt

    road.task("work", work)
    run = await road.enqueue("work", retry=FIXED, start_deadline=5)
    first = await road.hire()
    await first.work()
    first.kill()
    await road.advance(TTL + 1)
    await (await road.hire()).work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt) == ("succeeded", 2)


async def test_an_attempt_that_takes_too_long_has_failed(road: Road) -> None:
    """At its time limit, and not before; it counts, and is tried again."""

    async def slow(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(60)
        return ctx.attempt

    road.task("slow", slow)
    run = await road.enqueue("slow", retry=FIXED, timeout=20)
    hand = await road.hire()
    await hand.work()
    await road.advance(19)
    await hand.work()
    assert (await road.look(run)).state == "running"
    await road.advance(1)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt, seen.reason) == ("retry_wait", 1, "RETRY_BACKOFF")
    assert seen.error == ("TimedOut", "took longer than 20 s")
    await road.advance(10)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt) == ("succeeded", 2)
    assert hand.idle


@needs(Can.INTERRUPT, Can.ATTEMPTS)
async def test_a_task_whose_time_is_up_is_interrupted(road: Road) -> None:
    """Where it waits, at once; what it says about that changes nothing."""
    interrupted: list[bool] = []

    async def slow(ctx: Context, _: Any) -> Any:
        try:
            await road.spend(60)
        except asyncio.CancelledError:
            interrupted.append(ctx.cancelled)
            raise

    road.task("slow", slow)
    run = await road.enqueue("slow", retry=ONCE, timeout=5)
    hand = await road.hire()
    await hand.work()
    await road.advance(5)
    await hand.work()
    assert interrupted == [True]
    seen = await road.look(run)
    assert (seen.state, seen.attempts) == ("dead", ((1, "timed_out"),))
    assert hand.idle


async def test_a_time_limit_is_no_type_of_error_that_a_policy_chooses(road: Road) -> None:
    """`retry_on` names what tasks raise; an attempt that took too long is tried again anyhow."""

    async def slow(ctx: Context, _: Any) -> Any:
        if ctx.attempt == 1:
            await road.spend(60)
        return ctx.attempt

    road.task("slow", slow)
    run = await road.enqueue("slow", retry={**FIXED, "retry_on": ["CardRefused"]}, timeout=5)
    hand = await road.hire()
    await hand.work()
    await road.advance(5)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.reason) == ("retry_wait", "RETRY_BACKOFF")


async def test_what_ends_in_time_is_not_touched(road: Road) -> None:
    """A limit that is not reached is not there."""
    road.task("work", taking(road, 19))
    run = await road.enqueue("work", retry=ONCE, timeout=20)
    hand = await road.hire()
    await hand.work()
    await road.advance(19)
    await hand.work()
    await road.advance(60)
    await hand.work()
    seen = await road.look(run)
    assert (seen.state, seen.attempt) == ("succeeded", 1)
